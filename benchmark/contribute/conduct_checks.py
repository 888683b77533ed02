"""How a plugin behaves when it is called: repeatable, without memory, and without a trace."""

import ast
import contextlib
import io
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from ppgsl_bench.contribute import cases
from ppgsl_bench.contribute.subject import DefenseSubject, Subject, check_rng
from ppgsl_bench.contribute.verdicts import REPEATABLE, SOUND, check, fail, not_applicable
from ppgsl_bench.graph import Graph

# Three seeds that all give the same result by chance would take a plugin that hardly ever uses its randomness.
SEEDS = (0, 1, 2)


@check(
    hint="Run it on a graph of your own first: the message says what it raised, and where.",
    needs=("has-valid-defaults", "takes-the-agreed-arguments", "passes-parameters-to-its-encoder"),
)
def works_on_a_plain_graph(subject: Subject[Any]) -> None:
    """A connected graph of four dozen nodes, with sparse features and labels."""
    subject.usual_result()


@check(
    hint="Draw from rng alone (in torch: ppgsl_bench.device.torch_generator(rng)); do not rely on the order of a set.",
    needs=SOUND,
)
def repeats_under_the_same_seed(subject: Subject[Any]) -> None:
    """The same seed gives the same result, bit for bit."""
    if subject.fingerprint(subject.fresh(cases.standard())) != subject.fingerprint(subject.usual_result()):
        fail("two calls with equal seeds gave different results")


@check(hint="Use the numbers that you draw from rng, and no stream of a fixed seed.", needs=SOUND)
def differs_under_another_seed(subject: Subject[Any]) -> str:
    """A plugin that draws random numbers gives another result for another seed."""
    if not subject.is_random:
        not_applicable("it draws nothing from rng: it is deterministic")
    if len({subject.fingerprint(subject.result(cases.standard(), seed)) for seed in SEEDS}) == 1:
        fail(f"{len(SEEDS)} seeds gave the same result, although it draws from rng")
    return "random"


@check(hint="Keep everything in local variables: an instance is a set of parameters, not a worker.", needs=REPEATABLE)
def keeps_no_memory(subject: Subject[Any]) -> None:
    """An instance that has worked on another graph before gives the same result as a new one."""
    plugin = subject.plugin()
    subject.call(plugin, cases.rewired(), check_rng())
    result = subject.call(plugin, cases.standard(), check_rng())
    if subject.fingerprint(result) != subject.fingerprint(subject.usual_result()):
        fail("an instance that had worked on another graph before gave another result than a new one")


@check(
    hint="Copy an array before you change it: np.array(graph.edges). Never set flags.writeable.",
    needs=(*SOUND, "works-with-weights"),
)
def leaves_the_graph_alone(subject: Subject[Any]) -> None:
    """The graph that is passed in stays as it is."""
    case = cases.weighted()
    if subject.kind == "attack":
        case = replace(case, graph=case.graph.without_labels())
    # A graph remembers its digest: only one made anew from its arrays tells what they hold now.
    before = _anew(case.graph).digest
    subject.call(subject.plugin(), case, check_rng())
    if _anew(case.graph).digest != before:
        fail("the graph was changed in place")


def _anew(graph: Graph) -> Graph:
    return Graph(num_nodes=graph.num_nodes, edges=graph.edges, weights=graph.weights, x=graph.x, y=graph.y)


@check(hint="Copy the array of pairs before you sort, swap or shuffle it.", needs=SOUND)
def leaves_the_pairs_alone(subject: Subject[Any]) -> None:
    """The pairs that are passed in stay as they are."""
    case = cases.standard()
    # Larger end first, as nobody promises otherwise: sorting the ends in place would show.
    given = (case.hidden if isinstance(subject, DefenseSubject) else case.pairs)[:, ::-1].copy()
    passed = given.copy()
    if isinstance(subject, DefenseSubject):
        if not subject.cls.uses_sensitive:
            not_applicable("it is not given the sensitive pairs")
        subject.plugin().publish(case.graph, passed, check_rng())
    else:
        subject.plugin().score(case.graph.without_labels(), passed, check_rng())
    if not np.array_equal(given, passed):
        fail("the array of pairs was changed in place")


@check(hint="Do not seed or use the generators of numpy.random, random and torch that all code shares.", needs=SOUND)
def leaves_shared_generators_alone(subject: Subject[Any]) -> None:
    """The global random states are not touched."""
    # Seeding a generator that was just seeded the same way would leave no trace, so it is moved on first.
    random.random()  # noqa: S311
    np.random.random()  # noqa: NPY002
    if "torch" in sys.modules:
        sys.modules["torch"].rand(1)
    before = _global_states()
    subject.fresh(cases.standard())
    for name, state in _global_states().items():
        if name in before and state != before[name]:
            fail(f"the global state of {name} was changed")


def _global_states() -> dict[str, str]:
    states = {"random": str(random.getstate()), "numpy.random": str(np.random.get_state(legacy=False))}  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = str(torch.get_rng_state().tolist())
    return states


@check(hint="Draw from the rng that you are given, or from rng.spawn(…); a constant seed makes all runs one run.")
def makes_no_generator_of_its_own(subject: Subject[Any]) -> None:
    """The code has no random stream that does not follow from rng."""
    for node in ast.walk(ast.parse(subject.module_source)):
        if isinstance(node, ast.Import) and any(alias.name == "random" for alias in node.names):
            fail(f"line {node.lineno} imports the module random")
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        constant = all(isinstance(argument, ast.Constant) for argument in node.args)
        if name.rpartition(".")[2] in {"default_rng", "RandomState"} and constant:
            fail(f"line {node.lineno} makes a generator of its own: {ast.unparse(node)}")
        if name in {"np.random.seed", "numpy.random.seed", "torch.manual_seed", "torch.seed"}:
            fail(f"line {node.lineno} seeds a shared generator: {ast.unparse(node)}")


@check(hint="Remove the print; what is worth keeping belongs into a Publication's trace.", needs=SOUND)
def prints_nothing(subject: Subject[Any]) -> None:
    """Nothing is written to the terminal."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        subject.fresh(cases.standard())
    text = (out.getvalue() + err.getvalue()).strip()
    if text:
        fail(f"it printed {text.splitlines()[0]!r}")


@check(hint="Keep intermediate results in memory; the harness stores what is to be stored.", needs=SOUND)
def writes_no_files(subject: Subject[Any]) -> None:
    """No file appears in the working folder."""
    with _empty_working_folder() as folder:
        subject.fresh(cases.standard())
        left = sorted(path.name for path in folder.iterdir())
    if left:
        fail(f"it left {', '.join(left)}")


@contextlib.contextmanager
def _empty_working_folder() -> Iterator[Path]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


@check(hint="Wait for what you start, or start nothing: cells run side by side already (--jobs).", needs=SOUND)
def leaves_no_process_behind(subject: Subject[Any]) -> None:
    """No process is still running when the call returns."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    subject.fresh(cases.standard())
    left = [process for process in psutil.Process().children(recursive=True) if process.pid not in before]
    for process in left:
        process.kill()
        process.wait()
    if left:
        fail(f"{len(left)} of its processes still ran")


@check(
    hint="Find the division by zero or the empty mean; handle nodes without links or features.",
    needs=(*SOUND, "works-with-isolated-nodes"),
)
def computes_without_warnings(subject: Subject[Any]) -> None:
    """No division by zero, overflow or invalid value on the way."""
    for case in (cases.standard(), cases.with_isolated_nodes()):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            subject.fresh(case)
        numeric = [w for w in caught if issubclass(w.category, RuntimeWarning)]
        if numeric:
            where = f"{Path(numeric[0].filename).name}, line {numeric[0].lineno}"
            fail(f"on a graph with {case.name}: {numeric[0].message} ({where})")


@check(
    hint="Return None, or a sentence that says what is missing or how much memory it would take.",
    needs=("has-valid-defaults",),
)
def gives_reasons_as_text(subject: Subject[Any]) -> None:
    """`why_not` returns a reason or None, on any graph, and never raises."""
    for make in (cases.standard, cases.without_features, cases.no_links, cases.ring, cases.weighted, cases.long_path):
        reason = subject.plugin().why_not(make().graph)
        if reason is not None and not (isinstance(reason, str) and reason.strip()):
            fail(f"why_not returned {reason!r}")
