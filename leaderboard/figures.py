"""Static figures for papers, drawn with matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter

from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard.costs import Growth, growth
from ppgsl_bench.leaderboard.front import CHANCE
from ppgsl_bench.leaderboard.measurements import (
    UNDEFENDED,
    UTILITIES,
    Entry,
    Grid,
    Measurements,
    floor_curve,
    undefended_curve,
)
from ppgsl_bench.leaderboard.points import Point, points_of
from ppgsl_bench.leaderboard.ranking import SUMMARIES, rank

SUFFIXES = (".pdf", ".png", ".svg")

# Okabe and Ito's colours, which colour-blind readers can tell apart, and markers for when they run out.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#555555", "#b5a400", "#7a3b9c")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
_MAX_COLUMNS = 3
_MAX_LABEL = 30
# Width of a legend's entry beside its text, and of a character, in inches.
_HANDLE_WIDTH, _CHARACTER_WIDTH = 0.55, 0.075
_DOTS_PER_INCH = 200

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    # Names come from rows: a dollar sign in one is no formula.
    "text.parse_math": False,
}


def tradeoff(measurements: Measurements, datasets: Sequence[str], attack: str, utility: str) -> Figure:
    """One panel a dataset: attack strength against utility, a curve a defense, dominated points hollow."""
    grids = measurements.grids_of(datasets, attack, utility)
    if not grids:
        raise UserError(f"no dataset has both the attack {attack!r} and the utility task {utility!r} undefended")
    labels = [entry.label for entry in measurements.entries]
    columns = min(len(grids), _MAX_COLUMNS)
    lines = -(-len(grids) // columns)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(3.4 * columns, 2.9 * lines + 0.6), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, grid in zip(panels, grids, strict=False):
            _draw_panel(axes, grid, measurements.entries, attack, utility)
            axes.set(title=grid.dataset, xlabel=UTILITIES[utility].title, ylabel=f"attack strength ({attack})")
        for axes in panels[len(grids) :]:
            axes.set_axis_off()
        handles = _handles(labels)
        handles.append(Line2D([], [], color="black", marker="*", linestyle="", markersize=9, label="undefended"))
        handles.append(Line2D([], [], color="grey", linestyle=":", label="features only"))
        _add_legend(figure, handles)
    return figure


def heatmap(measurements: Measurements, datasets: Sequence[str], utility: str, summary: str) -> Figure:
    """Defenses against attacks: a summary of the curve, averaged over the datasets, for each attack alone."""
    views = [view for view in measurements.attack_views if measurements.grids_of(datasets, view, utility)]
    if not views:
        raise UserError(f"no dataset has the utility task {utility!r} undefended")
    rankings = [rank(measurements, datasets, view, utility, summary) for view in views]
    labels = [s.label for s in rankings[0].standings if not s.is_reference or s.label == UNDEFENDED]
    found = [{s.label: s.estimates[summary].value for s in ranking.standings} for ranking in rankings]
    values = np.array([[of_view[label] for of_view in found] for label in labels])
    measure = SUMMARIES[summary]
    with mpl.rc_context({**_STYLE, "axes.grid": False}):
        figure = Figure(figsize=(0.62 * len(views) + 2.2, 0.34 * len(values) + 1.6), layout="constrained")
        axes = figure.subplots()
        colours = mpl.colormaps["viridis"]
        image = axes.imshow(values, cmap=colours, vmin=measure.lowest, vmax=measure.highest, aspect="auto")
        axes.set_xticks(range(len(views)), views, rotation=40, ha="right")
        axes.set_yticks(range(len(labels)), [_shortened(label) for label in labels])
        axes.spines[:].set_visible(False)
        for (i, j), value in np.ndenumerate(values):
            brightness = np.dot(
                colours((value - measure.lowest) / (measure.highest - measure.lowest))[:3], (0.299, 0.587, 0.114)
            )
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", color="black" if brightness > 0.5 else "white")
        figure.colorbar(image, label=measure.title)
    return figure


def scaling(measurements: Measurements) -> Figure:
    """Time and memory of publishing against the number of nodes: Erdős–Rényi graphs joined, real graphs as dots."""
    found = growth(measurements.rows)
    if not found:
        raise UserError("no publication has a graph size to draw against; run `ppgsl-bench run --suite scale`")
    labels = sorted({g.label for g in found})
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        time_axes, memory_axes = figure.subplots(1, 2)
        for k, label in enumerate(labels):
            own = [g for g in found if g.label == label]
            _draw_growth(time_axes, [(g, g.cost.seconds) for g in own], *_look(k))
            _draw_growth(memory_axes, [(g, _mebibytes(g.cost.host_bytes)) for g in own], *_look(k))
        for axes, label in ((time_axes, "time to publish (s)"), (memory_axes, "peak host memory (MiB)")):
            axes.set(xscale="log", yscale="log", xlabel="nodes", ylabel=label)
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        _add_legend(figure, _handles(labels))
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's suffix, without dates, so that equal results give equal files."""
    dates = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix.lower(), {})
    try:
        with mpl.rc_context({"svg.hashsalt": "ppgsl-bench", **_STYLE}):
            figure.savefig(path, dpi=_DOTS_PER_INCH, metadata=dates)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _look(index: int) -> tuple[str, str]:
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]


def _handles(labels: Sequence[str]) -> list[Line2D]:
    looks = [_look(k) for k in range(len(labels))]
    return [
        Line2D([], [], color=colour, marker=marker, label=_shortened(label))
        for label, (colour, marker) in zip(labels, looks, strict=True)
    ]


def _add_legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    """Below all panels, as many columns as fit."""
    widest = max(len(str(handle.get_label())) for handle in handles)
    columns = int(figure.get_figwidth() / (_HANDLE_WIDTH + _CHARACTER_WIDTH * widest))
    figure.legend(handles=handles, loc="outside lower center", ncols=max(1, min(columns, len(handles))))


def _shortened(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 1]}…"


def _draw_panel(axes: Axes, grid: Grid, entries: Sequence[Entry], attack: str, utility: str) -> None:
    """All curves from the undefended graph down, and what features alone reach."""
    reference = undefended_curve(grid, attack, utility)
    top = (float(reference.undefended_utility.mean()), float(reference.undefended.mean()))
    heights = [top[1]]
    for k, entry in enumerate(entries):
        points = points_of(grid, entry, attack, utility)
        heights += [p.strength.mean for p in points]
        _draw_curve(axes, points, top, *_look(k))
    axes.plot(*top, "k*", ms=9, zorder=5)
    floor = floor_curve(grid, attack, utility)
    if floor is not None:
        heights.append(float(floor.strength.mean()))
        axes.axhline(heights[-1], color="grey", ls=":", lw=1)
        axes.axvline(float((floor.kept[0] * floor.undefended_utility).mean()), color="grey", ls=":", lw=1)
    # With two seeds a band can be wider than all curves together: the points set the scale.
    margin = 0.06 * (max(heights) - min(heights)) + 0.004
    axes.set_ylim(max(CHANCE - 0.01, min(heights) - margin), max(heights) + margin)


def _draw_curve(axes: Axes, points: Sequence[Point], top: tuple[float, float], colour: str, marker: str) -> None:
    front = sorted((p for p in points if not p.dominated), key=lambda p: p.utility.mean)
    line = [*((p.utility.mean, p.strength.mean) for p in front), top]
    axes.plot(*zip(*line, strict=True), color=colour, marker=marker, ms=4, lw=1.2)
    banded = [p for p in front if not np.isnan(p.strength.low)]
    axes.fill_between(
        [p.utility.mean for p in banded],
        [p.strength.low for p in banded],
        [p.strength.high for p in banded],
        color=colour,
        alpha=0.12,
        lw=0,
    )
    hollow = [(p.utility.mean, p.strength.mean) for p in points if p.dominated]
    if hollow:
        axes.plot(*zip(*hollow, strict=True), ls="", marker=marker, ms=4, mfc="none", mec=colour, alpha=0.6)


def _draw_growth(axes: Axes, values: Sequence[tuple[Growth, float | None]], colour: str, marker: str) -> None:
    known = [(g, value) for g, value in values if value]
    generated = [(g.nodes, value) for g, value in known if g.generated]
    real = [(g.nodes, value) for g, value in known if not g.generated]
    if generated:
        axes.plot(*zip(*generated, strict=True), color=colour, marker=marker, ms=4, lw=1.2)
    if real:
        axes.plot(*zip(*real, strict=True), color=colour, marker=marker, ms=4, ls="", alpha=0.45)


def _mebibytes(count: int | None) -> float | None:
    return None if count is None else count / 2**20
