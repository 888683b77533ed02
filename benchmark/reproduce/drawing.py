"""What the figures have in common."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from PIL import Image

from ppgsl_bench.leaderboard.figures import COLOURS, MARKERS, save
from ppgsl_bench.leaderboard.measurements import UTILITIES
from ppgsl_bench.reproduce.curves import Curve, Curves

STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 9,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "text.parse_math": False,
}
# Line drawings need few colours; a palette makes the file a quarter as large.
_PALETTE = 128
_PANEL = (3.1, 2.5)


def panels(lines: int, columns: int) -> tuple[Figure, list[list[Axes]]]:
    """A figure with a grid of axes."""
    figure = Figure(figsize=(_PANEL[0] * columns, _PANEL[1] * lines + 0.4), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    return figure, [list(line) for line in grid]


def look(index: int) -> dict[str, Any]:
    """Colour and marker of the i-th line."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "markersize": 3.5,
        "linewidth": 1.1,
    }


def draw_tradeoff(axes: Axes, curves: Sequence[Curve], labels: Sequence[str] = ()) -> None:
    """Attack AUC against utility, means over seeds with error bars, from each curve's end to the undefended graph.

    `labels` are those of all panels, so that a curve looks the same in each, whichever others are missing there.
    """
    places = list(labels) or [curve.label for curve in curves]
    for curve in curves:
        order = np.argsort(curve.utility.mean(axis=1), kind="stable")
        x, y = curve.utility.mean(axis=1)[order], curve.attack.mean(axis=1)[order]
        spread = curve.attack.std(axis=1, ddof=1)[order] if curve.attack.shape[1] > 1 else None
        axes.errorbar(x, y, yerr=spread, elinewidth=0.6, label=curve.label, **look(places.index(curve.label)))
    if curves:
        last = curves[0]
        axes.plot(last.undefended_utility, last.attack[-1].mean(), "k*", markersize=8, zorder=5)
    axes.axhline(0.5, color="grey", linestyle=":", linewidth=0.8)


def draw_tradeoffs(curves: Curves, attack: str) -> Figure:
    """A line of panels for each graph, a column for each utility task, one legend."""
    datasets, tasks = (list(dict.fromkeys(axis)) for axis in zip(*curves, strict=True)) if curves else ([], [])
    labels = list(dict.fromkeys(curve.label for found in curves.values() for curve in found))
    figure, grid = panels(max(1, len(datasets)), max(1, len(tasks)))
    for line, dataset in zip(grid, datasets, strict=False):
        for axes, task in zip(line, tasks, strict=True):
            draw_tradeoff(axes, curves.get((dataset, task), []), labels)
            axes.set(title=dataset, xlabel=UTILITIES[task].title, ylabel=attack)
    legend_below(figure, *(axes for line in grid for axes in line))
    return figure


def log_scale(axes: Axes, *, x: bool = True, y: bool = False) -> None:
    """Logarithmic axes with plain numbers: labels are not read as formulas here (see `STYLE`)."""
    for wanted, scale, axis in ((x, axes.set_xscale, axes.xaxis), (y, axes.set_yscale, axes.yaxis)):
        if wanted:
            scale("log")
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())


def legend_inside(axes: Axes) -> None:
    """A legend of one panel's own, if it has anything to explain."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6)


def legend_below(figure: Figure, *panels: Axes) -> None:
    """One legend for all panels, of whatever stands in any of them."""
    explained: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            explained.setdefault(label, handle)
    if explained:
        columns = max(1, min(len(explained), int(figure.get_figwidth() / 1.5)))
        figure.legend(list(explained.values()), list(explained), loc="outside lower center", ncols=columns)


def save_both(figure: Figure, stem: Path) -> None:
    """As .pdf and, with a palette, as .png."""
    save(figure, stem.with_suffix(".pdf"))
    target = stem.with_suffix(".png")
    save(figure, target)
    with Image.open(io.BytesIO(target.read_bytes())) as image:
        image.convert("RGB").quantize(_PALETTE, dither=Image.Dither.NONE).save(target, optimize=True)
