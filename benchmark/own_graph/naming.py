"""From the names that people give their nodes to node numbers. Messages about sensitive pairs never name the nodes."""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ppgsl_bench.datasets.edge_list import listed, read_edge_list
from ppgsl_bench.datasets.files import EDGE_LIST_SUFFIXES, existing_file
from ppgsl_bench.errors import GraphError, UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import Pairs, pairs_at, ranks_of

Name = Hashable
NamePair = tuple[Name, Name]

_LOST_NODES = (
    "; a published edge list does not mention nodes that have lost all their links: if that is it, name the graph as "
    "it was before as the original"
)


@dataclass(frozen=True, eq=False)
class NamedGraph:
    """A graph whose nodes have names.

    Attributes:
        graph: the graph.
        ids: node i is called `ids[i]`.
        title: what messages call it: the file's name, say.
    """

    graph: Graph
    ids: Sequence[Name]
    title: str

    @cached_property
    def index(self) -> dict[Name, int]:
        """Node numbers by name."""
        return {name: i for i, name in enumerate(self.ids)}


@dataclass(frozen=True, eq=False)
class SensitivePairs:
    """Sensitive pairs as node numbers.

    Attributes:
        pairs: shape [S, 2], smaller number first, sorted, each once.
        notes: what was dropped, each a sentence for the user.
    """

    pairs: Pairs
    notes: tuple[str, ...] = ()


def read_sensitive(path: Path, nodes: NamedGraph, *, must_be_links: bool = True) -> SensitivePairs:
    """Read sensitive pairs, one a line, from a text file."""
    path = existing_file(path)
    if path.suffix.lower() not in EDGE_LIST_SUFFIXES:
        raise UserError(
            f"{path}: unknown ending {path.suffix!r}; sensitive pairs come as text, one pair a line, in a file that "
            f"ends in {', '.join(EDGE_LIST_SUFFIXES)}"
        )
    listing = read_edge_list(path, untidy="drop", weighted=False, confidential=True)
    names = [(listing.ids[u], listing.ids[v]) for u, v in listing.pairs]
    lines = listing.lines.tolist()
    if listing.layout.titles is None and _is_header(names, nodes):
        names, lines = names[1:], lines[1:]
    found = resolved(names, nodes, title=str(path), where=lambda i: f"line {lines[i]}", must_be_links=must_be_links)
    dropped = {"pairs of a node with itself": listing.loops, "pairs given twice": listing.repeats}
    notes = [f"{path}: dropped {count} {what}" for what, count in dropped.items() if count]
    return SensitivePairs(found.pairs, (*notes, *found.notes))


def resolved(
    names: Sequence[NamePair],
    nodes: NamedGraph,
    *,
    title: str,
    where: Callable[[int], str],
    must_be_links: bool = True,
) -> SensitivePairs:
    """Node numbers of named pairs; errors say `where` the pairs are that cannot be right.

    Args:
        names: the pairs.
        nodes: the graph that they belong to.
        title: what messages call the pairs.
        where: of the i-th pair, where the user finds it.
        must_be_links: whether a pair that is no link of the graph is an error.
    """
    if not names:
        raise GraphError(f"{title}: no pairs; name the links of {nodes.title} that must stay hidden, one pair a line")
    index = nodes.index
    numbers = np.array([[index.get(u, -1), index.get(v, -1)] for u, v in names], dtype=np.int64)
    unknown = np.flatnonzero((numbers < 0).any(axis=1))
    if len(unknown):
        missing = [name for i in unknown.tolist() for name in names[i] if name not in index]
        which = ("both names", "the first name", "the second name")

        def described(i: int) -> str:
            return f"{where(i)} ({which[int((numbers[i] >= 0) @ [2, 1])]})"

        raise GraphError(
            f"{title}: {_count(unknown, names)} a node that {nodes.title} does not have: {listed(unknown, described)}; "
            f"{_spelling_hint(missing, nodes)}{'' if must_be_links else _LOST_NODES}"
        )
    loops = numbers[:, 0] == numbers[:, 1]
    if loops.any():
        raise GraphError(f"{title}: pairs of a node with itself: {listed(np.flatnonzero(loops), where)}; delete them")
    absent = np.flatnonzero(~nodes.graph.has_edges(numbers))
    if must_be_links and len(absent):
        raise GraphError(
            f"{title}: {len(absent)} of {len(names)} pairs are no links of {nodes.title}: {listed(absent, where)}; "
            "only an existing link can be hidden: correct or delete these pairs, or add the links to the graph"
        )
    ranks = np.unique(ranks_of(numbers, nodes.graph.num_nodes))
    repeats = len(names) - len(ranks)
    notes = (f"{title}: dropped {repeats} pairs given twice",) if repeats else ()
    return SensitivePairs(pairs_at(ranks, nodes.graph.num_nodes), notes)


def _count(rows: np.ndarray[tuple[int], np.dtype[np.intp]], names: Sequence[NamePair]) -> str:
    return f"{len(rows)} of {len(names)} pairs {'names' if len(rows) == 1 else 'name'}"


def _is_header(names: Sequence[NamePair], nodes: NamedGraph) -> bool:
    """Whether the first of several pairs, and no other one, is made of two names that no node has."""
    known = [sum(name in nodes.index for name in pair) for pair in names]
    return len(known) > 1 and known[0] == 0 and all(count == 2 for count in known[1:])


_WHOLE_NUMBER = re.compile(r"-?\d+")

# Ways in which the same name gets spelled differently in two files, and what to say about each.
_SPELLINGS: tuple[tuple[Callable[[str], str], str], ...] = (
    (str.casefold, "they match but for capitals"),
    (lambda name: re.sub(r"\.0+$", "", name), "they match without '.0': whole numbers were saved as decimal numbers"),
    (lambda name: re.sub(r"^0+(?=\d)", "", name), "they match without leading zeros"),
    (lambda name: re.sub(r"\s+", "", name), "they match but for blanks"),
    (
        lambda name: re.sub(r"^[^\d]+(?=\d+$)", "", name),
        "they match without what stands before the number: the two files use different ids for the same nodes",
    ),
)


def _spelling_hint(missing: Sequence[Name], nodes: NamedGraph) -> str:
    """What to do about names that the graph does not know, without saying what they are."""
    wanted, known = {str(name) for name in missing}, {str(name) for name in nodes.ids}
    advice = "spell each name as in the graph, or delete these pairs"
    if wanted <= known:
        types = sorted({type(name).__name__ for name in missing})
        ids = sorted({type(name).__name__ for name in nodes.ids})
        return (
            f"the ids are of type {', '.join(types)} here and {', '.join(ids)} in the graph: use the same type for both"
        )
    for spelled, what in _SPELLINGS:
        if {spelled(name) for name in wanted} <= {spelled(name) for name in known}:
            return f"{what}; {advice}"
    numbers = [all(map(_WHOLE_NUMBER.fullmatch, names)) for names in (wanted, known)]
    if any(numbers) and not all(numbers):
        kinds = ("whole numbers", "other names")
        return (
            f"the unknown ids are {kinds[not numbers[0]]}, those of the graph {kinds[not numbers[1]]}: "
            "use the same ids in both"
        )
    return advice
