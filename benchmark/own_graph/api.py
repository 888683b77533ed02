"""The suite from Python: protect a graph, audit a published one, run the benchmark.

import ppgsl_bench as pb

published = pb.protect(graph, sensitive, defense="ppgsl")
table = pb.audit(published, sensitive, original=graph)
rows = pb.run(dataset="cora", defense="ppgsl[sweep]", attack="cn,ra")
"""

import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppgsl_bench.datasets import Sources
from ppgsl_bench.defenses import Defense
from ppgsl_bench.device import resolve_device
from ppgsl_bench.execute import Observer, Settings, execute
from ppgsl_bench.expressions import split_list
from ppgsl_bench.graph import Graph
from ppgsl_bench.own_graph.bench import MakeObserver
from ppgsl_bench.own_graph.conversion import aligned, converted, named_pairs, with_features
from ppgsl_bench.own_graph.evaluation import DEFAULT_ATTACKS, DEFAULT_UTILITIES, Request
from ppgsl_bench.own_graph.naming import resolved
from ppgsl_bench.own_graph.rendering import refuse_unknown_format
from ppgsl_bench.own_graph.reporting import audited, protected
from ppgsl_bench.own_graph.search import Wanted
from ppgsl_bench.own_graph.writing import write_graph
from ppgsl_bench.processes import Limits
from ppgsl_bench.quantities import parse_duration, parse_seeds
from ppgsl_bench.run_options import DEFAULT_TIMEOUT, cells_at_once, load_plugins

if TYPE_CHECKING:
    import pandas as pd

    from ppgsl_bench.plan import Cell

Texts = str | Sequence[str]


def protect(
    graph: Any,
    sensitive: Any,
    defense: str | Defense = "ppgsl",
    *,
    features: Any = None,
    labels: Any = None,
    target_auc: float | None = None,
    keep_utility: float | None = None,
    attack: Texts = DEFAULT_ATTACKS,
    utility: Texts = DEFAULT_UTILITIES,
    seed: int = 0,
    report: str | Path | None = None,
    return_report: bool = False,
    jobs: int | None = None,
    timeout: str = DEFAULT_TIMEOUT,
    device: str = "cpu",
    plugins: Sequence[str | Path] = (),
    progress: bool = False,
) -> Any:
    """Hide sensitive links of a graph, run a defense, and give back the graph to publish.

    Args:
        graph: a networkx Graph, PyTorch Geometric Data, SciPy sparse matrix, pandas DataFrame of links or `Graph`.
        sensitive: pairs of nodes, each a link of the graph: a list, an array or a DataFrame.
        defense: `NAME`, `NAME[param=value,…]`, several of them, `auto`, or an instance of a registered defense.
        features: of the nodes, in their order or indexed by their names.
        labels: of the nodes, likewise; they are used to measure utility.
        target_auc: search for the weakest setting that keeps every attack's max(AUC, 1 - AUC) at or below this.
        keep_utility: search for the strongest setting that keeps this share of the utility.
        attack: which attacks to evaluate with.
        utility: which utility tasks, or `none`.
        seed: of every random stream: the same seed gives the same graph.
        report: where to write a report (.html, .md, .json); it names the most exposed links.
        return_report: whether to return the report as well.
        jobs: cells side by side; by default one a core.
        timeout: time limit of each step.
        device: cpu, cuda or auto.
        plugins: Python files that register defenses or attacks.
        progress: whether to show progress on standard error.

    Returns:
        The graph to publish, of the type of `graph`; with `return_report`, a pair of it and the report.
    """
    if report is not None:
        refuse_unknown_format(Path(report))
    source = converted(graph)
    nodes = with_features(source.nodes, features, labels)
    pairs = resolved(named_pairs(sensitive), nodes, title="sensitive", where=_pair_number).pairs
    request = make_request(attack, utility, seed, run_settings(jobs, timeout, device, plugins), progress=progress)
    graph_to_publish, made = protected(nodes, pairs, defense, Wanted(target_auc, keep_utility), request)
    if report is not None:
        made.save(report)
    published = source.back(graph_to_publish)
    return (published, made) if return_report else published


def audit(
    published: Any,
    sensitive: Any,
    *,
    original: Any = None,
    features: Any = None,
    labels: Any = None,
    attack: Texts = DEFAULT_ATTACKS,
    utility: Texts = DEFAULT_UTILITIES,
    seed: int = 0,
    report: str | Path | None = None,
    return_report: bool = False,
    jobs: int | None = None,
    timeout: str = DEFAULT_TIMEOUT,
    device: str = "cpu",
    plugins: Sequence[str | Path] = (),
    progress: bool = False,
) -> Any:
    """How well would each attack do on a published graph?

    Args:
        published: a graph of any type that `protect` takes.
        sensitive: pairs of nodes; links of the original, if that is given.
        original: the graph before it was protected, of any type.
        features: of the nodes of the original or, without one, of the published graph.
        labels: likewise.
        attack: which attacks to run.
        utility: which utility tasks, or `none`; only with an original, and only those that need no held-back links.
        seed: of every random stream.
        report: where to write a report (.html, .md, .json); it names the most exposed links.
        return_report: whether to return the whole report instead of the table.
        jobs: cells side by side; by default one a core.
        timeout: time limit of each step.
        device: cpu, cuda or auto.
        plugins: Python files that register attacks.
        progress: whether to show progress on standard error.

    Returns:
        One line an attack: AUC, its 95 % interval, AUC against pairs two hops apart, share found at 1 % false alarms.
    """
    if report is not None:
        refuse_unknown_format(Path(report))
    nodes = converted(published).nodes
    before = None
    if original is not None:
        before = with_features(converted(original).nodes, features, labels)
        nodes = aligned(nodes, before)
    else:
        nodes = with_features(nodes, features, labels)
    reference = nodes if before is None else before
    pairs = resolved(
        named_pairs(sensitive), reference, title="sensitive", where=_pair_number, must_be_links=before is not None
    ).pairs
    request = make_request(attack, utility, seed, run_settings(jobs, timeout, device, plugins), progress=progress)
    made = audited(nodes, pairs, before, request)
    if report is not None:
        made.save(report)
    return made if return_report else made.attacks


def run(
    *,
    dataset: Any = None,
    defense: Texts | None = None,
    attack: Texts | None = None,
    utility: Texts | None = None,
    seeds: int | Sequence[int] | None = None,
    suite: str = "quick",
    results: str | Path | None = None,
    jobs: int | None = None,
    timeout: str | None = None,
    device: str = "cpu",
    plugins: Sequence[str | Path] = (),
    data_dirs: Sequence[str | Path] = (),
    offline: bool = False,
    progress: bool = False,
) -> "pd.DataFrame":
    """Run defenses against attacks and utility tasks, as `ppgsl-bench run` does.

    Args:
        dataset: names or paths, or a graph of any type that `protect` takes.
        defense: expressions such as `all` or `ppgsl[sweep],random`.
        attack: likewise, or `none`.
        utility: likewise, or `none`.
        seeds: how many, or which.
        suite: what to run where nothing else is said.
        results: folder that keeps the rows, so that the same call goes on where it stopped; by default nothing is kept.
        jobs: cells side by side; by default one a core.
        timeout: time limit of each cell; by default the suite's.
        device: cpu, cuda or auto.
        plugins: Python files that register plugins.
        data_dirs: folders of raw dataset files.
        offline: whether to keep off the network.
        progress: whether to show progress on standard error.

    Returns:
        A long table, one line a metric, as `ppgsl-bench export` writes it.
    """
    from ppgsl_bench.export import long_table
    from ppgsl_bench.plan import choose, plan
    from ppgsl_bench.progress import RunProgress
    from ppgsl_bench.store import Results
    from ppgsl_bench.suite import load_suite

    chosen = load_suite(suite)
    sources = Sources.from_environment([Path(folder).resolve() for folder in data_dirs], offline=offline)
    settings = run_settings(jobs, timeout or chosen.timeout, device, plugins, sources)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ppgsl-bench-")))
        choice = choose(
            datasets=_datasets(dataset, chosen.datasets, folder),
            defenses=_listed(defense, chosen.defenses),
            attacks=_listed(attack, chosen.attacks, may_be_none=True),
            utilities=_listed(utility, chosen.utilities, may_be_none=True),
            seeds=_seeds(chosen.seeds if seeds is None else seeds),
        )
        cells = plan(choice, sources)
        store = stack.enter_context(Results(Path(results) if results else folder / "results").writing())
        observer = stack.enter_context(RunProgress(_console(), settings.jobs)) if progress else None
        execute(cells, store, settings, observer)
        keys = {cell.key for cell in cells}
        return long_table(row for row in store.rows() if row.key in keys)


def make_request(attack: Texts, utility: Texts, seed: int, settings: Settings, *, progress: bool) -> Request:
    """What `protect` and `audit` ask of an evaluation."""
    attacks, utilities = _texts(attack), _texts(utility)
    if not progress:
        return Request(attacks, utilities, seed, settings)
    console = _console()
    return Request(
        attacks, utilities, seed, settings, _observer(settings), lambda text: console.print(text, markup=False)
    )


def run_settings(
    jobs: int | None,
    timeout: str,
    device: str,
    plugins: Sequence[str | Path],
    sources: Sources | None = None,
) -> Settings:
    """How cells are run; plugin files are loaded here and in every cell."""
    files = load_plugins(plugins)
    return Settings(
        jobs=cells_at_once(jobs),
        device=resolve_device(device),
        limits=Limits(parse_duration(timeout)),
        sources=sources or Sources(offline=True),
        plugin_files=files,
    )


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def _observer(settings: Settings) -> MakeObserver:
    from ppgsl_bench.progress import RunProgress

    class FreshProgress(RunProgress):
        """Says nothing of cells that are done already: here those are the splits, which were never to be run."""

        def planned(self, remaining: "list[Cell]", done: int) -> None:  # noqa: ARG002
            super().planned(remaining, 0)

    def make() -> AbstractContextManager[Observer]:
        return FreshProgress(_console(), settings.jobs)

    return make


def _pair_number(i: int) -> str:
    return f"pair {i}"


def _texts(given: Texts) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _listed(given: Texts | None, otherwise: Sequence[str], *, may_be_none: bool = False) -> list[str]:
    texts = list(otherwise) if given is None else _texts(given)
    if may_be_none and texts == ["none"]:
        return []
    return [item for text in texts for item in split_list(text)]


def _datasets(given: Any, otherwise: Sequence[str], folder: Path) -> list[str]:
    if given is None or isinstance(given, str) or (isinstance(given, list | tuple) and all(map(_is_text, given))):
        return _listed(given, otherwise)
    graph: Graph = converted(given).nodes.graph
    path = folder / "graph.npz"
    write_graph(path, graph, [])
    return [str(path)]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _seeds(given: int | Sequence[int]) -> list[int]:
    return parse_seeds(str(given) if isinstance(given, int) else ",".join(map(str, given)) + ",")
