"""Graphs that methods tend to forget, and one too large to be stored as a matrix."""

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import psutil

from ppgsl_bench.contribute import cases
from ppgsl_bench.contribute.cases import Case
from ppgsl_bench.contribute.subject import DefenseSubject, Subject, published
from ppgsl_bench.contribute.verdicts import SOUND, check, fail
from ppgsl_bench.measure import measured

# Below the smallest possible table of all pairs of the long path, which has a byte a pair: 400 MB.
MOST_BYTES = 300_000_000
# A slow method need not finish on the long path: what it has allocated after so much computing tells enough.
LONG_PATH_SECONDS = 10.0
# On a busy machine that takes longer, but no more than this.
_MOST_PATIENCE = 6 * LONG_PATH_SECONDS
_POLL_SECONDS = 0.1

_REFUSE = "or return a reason from why_not"


def _usable(subject: Subject[Any], case: Case) -> None:
    """The plugin works on the case, or gives a reason why not."""
    result = subject.unless_refused(case)
    if isinstance(subject, DefenseSubject):
        graph = published(result)
        if graph.num_nodes != case.graph.num_nodes:
            fail(f"{graph.num_nodes} nodes were published of {case.graph.num_nodes}")
        return
    scores = np.asarray(result)
    if scores.shape != (len(case.pairs),) or not np.isfinite(scores).all():
        fail(f"{len(case.pairs)} pairs got {np.isfinite(scores).sum()} finite scores")


@check(hint=f"Do without graph.x, {_REFUSE}.", needs=SOUND, group="graphs")
def works_without_features(subject: Subject[Any]) -> None:
    """A graph whose nodes have no features."""
    _usable(subject, cases.without_features())


@check(hint="graph.x is a CSR matrix or a dense array; treat both.", needs=SOUND, group="graphs")
def works_with_dense_features(subject: Subject[Any]) -> None:
    """Features as a dense array instead of a sparse one."""
    _usable(subject, cases.with_dense_features())


@check(hint=f"Do without graph.y, {_REFUSE}.", kinds=("defense",), needs=SOUND, group="graphs")
def works_without_labels(subject: Subject[Any]) -> None:
    """A graph whose nodes have no labels."""
    _usable(subject, cases.without_labels())


@check(hint="A label of -1 is unknown: leave such nodes out.", kinds=("defense",), needs=SOUND, group="graphs")
def works_with_unknown_labels(subject: Subject[Any]) -> None:
    """A graph in which some labels are unknown."""
    _usable(subject, cases.with_unknown_labels())


@check(hint=f"Use graph.weights or ignore them, {_REFUSE}.", needs=SOUND, group="graphs")
def works_with_weights(subject: Subject[Any]) -> None:
    """A weighted graph."""
    _usable(subject, cases.weighted())


@check(hint="Hiding links leaves nodes of degree 0, which are published like all others.", needs=SOUND, group="graphs")
def works_with_isolated_nodes(subject: Subject[Any]) -> None:
    """A graph with nodes that have no links, some of which had hidden ones."""
    _usable(subject, cases.with_isolated_nodes())


@check(hint=f"Do not assume that a path leads from each node to each other, {_REFUSE}.", needs=SOUND, group="graphs")
def works_on_several_components(subject: Subject[Any]) -> None:
    """A graph of several components."""
    _usable(subject, cases.several_components())


@check(hint=f"Samples and training sets may come out empty: handle that, {_REFUSE}.", needs=SOUND, group="graphs")
def works_on_a_single_link(subject: Subject[Any]) -> None:
    """A graph of one link."""
    _usable(subject, cases.one_link())


@check(hint=f"Handle an array of links of shape (0, 2), {_REFUSE}.", needs=SOUND, group="graphs")
def works_without_links(subject: Subject[Any]) -> None:
    """A graph without a single link."""
    _usable(subject, cases.no_links())


@check(
    hint=f"One node may have nearly all links, and most pairs no more than one common neighbour, {_REFUSE}.",
    needs=SOUND,
    group="graphs",
)
def works_on_a_star(subject: Subject[Any]) -> None:
    """A star."""
    _usable(subject, cases.star())


@check(
    hint="There may be fewer unlinked pairs than you want to draw: cut the number to graph.num_non_edges.",
    needs=SOUND,
    group="graphs",
)
def works_on_a_nearly_complete_graph(subject: Subject[Any]) -> None:
    """A graph with hardly an unlinked pair."""
    _usable(subject, cases.nearly_complete())


@check(
    hint="All degrees, and all scores, may be equal: do not divide by a spread without looking.",
    needs=SOUND,
    group="graphs",
)
def works_where_all_nodes_are_alike(subject: Subject[Any]) -> None:
    """A ring, on which all nodes have the same degree and neighbourhood."""
    _usable(subject, cases.ring())


@check(
    hint="Never store all pairs: use graph.adjacency (CSR), sample pairs by rank (ppgsl_bench.pairs), work in chunks; "
    "or estimate the need in why_not and return it as the reason.",
    needs=SOUND,
    group="graphs",
)
def stores_no_table_of_all_pairs(subject: Subject[Any]) -> str:
    """Memory on a path of 20,000 nodes stays below a byte a pair."""
    case = cases.long_path()
    reason = subject.plugin().why_not(case.graph)
    if reason is not None:
        return f"it refuses: {reason}"
    peak, finished = _peak_apart(lambda: subject.fresh(case), LONG_PATH_SECONDS)
    used = f"{peak / 1e6:,.0f} MB"
    if peak > MOST_BYTES:
        fail(f"it took {used} on a path of {case.graph.num_nodes:,} nodes")
    return used if finished else f"{used} in the {LONG_PATH_SECONDS:g} s of computing that it was given"


def _peak_apart(call: Callable[[], object], seconds: float) -> tuple[int, bool]:
    """Peak memory of a call in a process of its own, and whether it came to its end within its time of computing.

    A signal would do in Python code, but not in compiled code, which hears of it when it returns.
    """
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_send_peak, args=(call, sending))
    inherited, _ = _anonymous_bytes_and_seconds(os.getpid())
    process.start()
    sending.close()
    deadline, peak = time.monotonic() + _MOST_PATIENCE, 0
    while not receiving.poll(_POLL_SECONDS):
        held, computed = _anonymous_bytes_and_seconds(process.pid)
        peak = max(peak, held - inherited)
        if peak > MOST_BYTES or computed > seconds or time.monotonic() > deadline:
            process.kill()
            process.join()
            return peak, False
    try:
        answer: int | str = receiving.recv()
    except EOFError:
        process.join()
        fail(f"its process ended with code {process.exitcode}")
    process.join()
    if isinstance(answer, str):
        fail(answer)
    return answer, True


def _send_peak(call: Callable[[], object], sending: Connection) -> None:
    try:
        _, cost = measured(call)
    except Exception as error:  # noqa: BLE001 - the other process turns it into a verdict
        sending.send(f"it raised {type(error).__name__}: {error}")
    else:
        sending.send(cost.peak_host_bytes)


def _anonymous_bytes_and_seconds(pid: int | None) -> tuple[int, float]:
    """Memory of a process that no file stands behind, and its time of computing.

    What a process shares with nobody would not do: it grows, too, when the one that it was forked from writes to what
    they have shared so far.
    """
    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        memory = process.memory_info()
        return memory.rss - getattr(memory, "shared", 0), times.user + times.system
    except psutil.Error:
        return 0, 0.0  # it has just ended
