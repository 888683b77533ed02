"""Dividing a plan among machines that know nothing of each other.

All of them make the same plan, order it by keys so that what builds on one split, publication or embedding is
neighbours, and each takes its stretch. The cut goes between publications, the dear part, as long as there are enough of
them, else between embeddings, else between single cells. What a stretch builds on is run in each shard that needs it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ppgsl_bench.errors import UserError
from ppgsl_bench.plan import Cell

# Cells of these kinds only serve others.
_SERVING = frozenset({"split", "embed"})

_Place = tuple[str, str, str, str]
"""Keys of the split, publication and embedding that a cell belongs to, and its own."""


@dataclass(frozen=True)
class Shard:
    """Part `index` of `count`, counted from 1."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The shard that `i/n` means."""
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise UserError(f"--shard {text}: expected i/n with i from 1 to n, for example 2/3")
        return cls(int(match[1]), int(match[2]))

    def of(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells of this shard and all that they build on, in the order of the plan."""
        by_key = {cell.key: cell for cell in cells}
        places = {cell.key: _place(cell, by_key) for cell in by_key.values() if cell.kind not in _SERVING}
        stretch = _stretches(places.values(), self.count)
        chosen = {key for key, place in places.items() if stretch[place] == self.index - 1}
        for cell in reversed(by_key.values()):  # the plan has each cell after those that it requires
            if cell.key in chosen:
                chosen.update(cell.requires)
        return [cell for cell in by_key.values() if cell.key in chosen]


def _place(cell: Cell, by_key: dict[str, Cell]) -> _Place:
    keys = {"publish": "", "embed": ""}
    found = [cell]
    for near in found:
        keys[near.kind] = near.key
        found += [by_key[key] for key in near.requires]
    return keys["split"], keys["publish"], keys["embed"], cell.key


def _stretches(places: Iterable[_Place], count: int) -> dict[_Place, int]:
    """Which of `count` stretches each place lies in: units are kept whole, and go where their middle falls."""
    ordered = sorted(places)
    depth = next((d for d in (2, 3) if len({place[:d] for place in ordered}) >= count), 4)
    sizes = Counter(place[:depth] for place in ordered)
    begun, stretch = 0, {}
    for unit, size in sizes.items():
        stretch[unit] = (2 * begun + size) * count // (2 * len(ordered))
        begun += size
    return {place: stretch[place[:depth]] for place in ordered}
