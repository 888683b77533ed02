"""Write docs/results.md and docs/figures/tradeoff-*.png from the rows that ship with the package."""

from collections import defaultdict
from pathlib import Path

from tabulate import tabulate

from ppgsl_bench.leaderboard import figures
from ppgsl_bench.leaderboard.measurements import FEATURES_ATTACK, UNDEFENDED, UTILITIES, Measurements, floor_curve
from ppgsl_bench.leaderboard.ranking import DEFAULT_SUMMARY, rank
from ppgsl_bench.leaderboard.sources import shipped_rows
from ppgsl_bench.leaderboard.tables import ranking_text

DOCS = Path(__file__).parents[1]
TARGET = DOCS / "results.md"
HEADLINE = "gae-cos"
TASKS = ("link-prediction", "node-classification")
VIEWS = {HEADLINE: f"`{HEADLINE}`", "worst-paper": "worst of the paper's eight", "worst": "worst of all"}

PAGE = """# Results

Made by `python docs/scripts/results.py` from the rows in leaderboard/results/, which `ppgsl-bench run --suite paper`
measured and `python docs/scripts/ship.py` packed. Columns, charges and intervals are defined in [the
leaderboard](leaderboard.md). The same rows as a page with plots, a slider and the command behind every point:

```sh
ppgsl-bench leaderboard --html board.html
```

## What has been measured

The whole matrix takes days on a small machine and is filled by resuming. A dataset's seed is shown once every setting
of every defense is done there; attacks and tasks that are not complete on it are left out rather than charged. Times
are of the wall clock, with other work on the same machine; [costs](costs.md) has those of one cell at a time.

{coverage}

## In short

Which defense leaves an attack weakest while 95 % of the undefended link prediction is kept, and what the attack reaches
on the undefended graph. The attack is one, or the strongest of the paper's eight, or the strongest of all that ran; a
view counts only the splits on which all of its attacks ran:

{short}

## {headline} against what the graph is good for

{plots}

{tables}

## Where this differs from the paper, and why

- **Features alone.** {features} No defense of links changes that, and a curve that reaches 0.5 against `{headline}`
  says nothing about an attacker who never looks at a link. The paper has no such line.
- **PPGSL** comes close to the paper's 0.50 at a link-prediction AUC of 0.81, not all the way: [point by
  point](ppgsl-curve.md), with what was tried in [PPGSL](ppgsl.md).
- **EdgeRand and LapGraph** are reported to run out of memory on DeezerEurope. Drawn exactly from the dense
  mechanism's distribution but without its matrix, they take 0.6 s and 0.1 s there ([costs](costs.md)).
- **PrivGraph**'s released code starts every link between communities in the last one. Here they start where they
  should, which `privgraph[as_released=true]` undoes; on graphs with three links a node neither finds communities
  ([defenses](defenses.md)).
- **PPNE**'s released code is given the pairs that it is judged on. Here it draws its own.
- **Settings are chosen with hindsight** in every such table, here as in the paper; intervals are over splits.
"""


def main() -> None:
    """Read rows, write the page and its figures."""
    rows = shipped_rows()
    measurements = Measurements(rows)
    met: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for row in rows:
        if row.evaluator:
            met[row.dataset_label, row.evaluator_label].add(row.seed)
    seeds: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for (dataset, evaluator), found in sorted(met.items()):
        seeds[dataset, len(found)].add(evaluator)
    everything = {evaluator for _, evaluator in met}
    lines = [[f"`{dataset}`", count, _told(names, everything)] for (dataset, count), names in sorted(seeds.items())]
    plots, tables = [], []
    for dataset in measurements.datasets:
        for task in TASKS:
            name = f"tradeoff-{dataset}-{task}.png"
            figures.save(figures.tradeoff(measurements, [dataset], HEADLINE, task), DOCS / "figures" / name)
            plots.append(f"![{dataset}, {UTILITIES[task].title}](figures/{name})")
            text = ranking_text(rank(measurements, [dataset], HEADLINE, task), "markdown")
            tables.append(f"### {dataset}, {UTILITIES[task].title}\n\n{text}")
    short = [
        [f"`{dataset}`" if dataset else "all"]
        + [_best(measurements, [dataset] if dataset else [], attack) for attack in VIEWS]
        for dataset in (*measurements.datasets, "")
    ]
    page = PAGE.format(
        short=tabulate(short, headers=["graph", *VIEWS.values()], tablefmt="github"),
        coverage=tabulate(lines, headers=["graph", "seeds", "attacks and utility tasks"], tablefmt="github"),
        headline=HEADLINE,
        plots="\n\n".join(plots),
        tables="\n\n".join(tables),
        features=" ".join(_features(measurements, dataset) for dataset in measurements.datasets),
    )
    TARGET.write_text(page, encoding="utf-8")


def _told(names: set[str], everything: set[str]) -> str:
    """Some of the attacks and tasks, by whichever list is shorter: those that are there, or those that are missing."""
    missing = everything - names
    listed = ", ".join(f"`{name}`" for name in sorted(missing if len(missing) < len(names) else names))
    if not missing:
        return f"all {len(everything)}"
    return f"all but {listed}" if len(missing) < len(names) else listed


def _best(measurements: Measurements, datasets: list[str], attack: str) -> str:
    """The first of a view, or those that share its rank, with the interval, the undefended graph and the splits."""
    ranking = rank(measurements, datasets, attack, TASKS[0])
    undefended = next(s for s in ranking.standings if s.label == UNDEFENDED).estimates[DEFAULT_SUMMARY].value
    first = [s for s in ranking.standings if not s.is_reference and s.place[DEFAULT_SUMMARY].rank == 1]
    strength = first[0].estimates[DEFAULT_SUMMARY]
    interval = "" if strength.low is None else f" [{strength.low:.3f}, {strength.high:.3f}]"
    counts = sorted(set(ranking.seeds.values()))
    splits = f"{counts[0]} split" if counts == [1] else f"{'–'.join(map(str, {counts[0]: 0, counts[-1]: 0}))} splits"
    return (
        f"{', '.join(f'`{s.label}`' for s in first)} {strength.value:.3f}{interval}"
        f" (undefended {undefended:.3f}; {splits})"
    )


def _features(measurements: Measurements, dataset: str) -> str:
    (grid,) = measurements.grids_of([dataset], HEADLINE, TASKS[0])
    floor = floor_curve(grid, HEADLINE, TASKS[0])
    if floor is None:
        return ""
    if FEATURES_ATTACK not in grid.attacks:
        return f"`{dataset}`, as measured here, has no features."
    return f"On `{dataset}` the cosine of raw features reaches an AUC of {floor.strength.mean():.3f}."


if __name__ == "__main__":
    main()
