"""Dividing a plan: nothing is lost, nothing is run twice that need not be, and the parts are alike in size."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppgsl_bench.errors import UserError
from ppgsl_bench.plan import Cell, PluginRef, _hash
from ppgsl_bench.sharding import Shard


def made_up_plan(splits, defenses, attacks, encoders):
    """A plan of plain names: each attack on each publication, every other one on one of the encoders' embeddings."""
    cells = []

    def add(kind, *names, requires=()):
        ref = PluginRef(names[-1], names[-1], "{}", names[-1])
        cells.append(Cell(kind, ref, 0, None, None, tuple(requires), _hash(kind, *names)))
        return cells[-1].key

    for s in map(str, range(splits)):
        split = add("split", s)
        for d in map(str, range(defenses)):
            published = add("publish", s, d, requires=(split,))
            embedded = [add("embed", s, d, str(e), requires=(published,)) for e in range(encoders)]
            for a in range(attacks):
                on = [embedded[a % encoders]] if encoders and a % 2 else []
                add("attack", s, d, str(a), requires=(published, *on))
    return cells


plans = st.builds(made_up_plan, st.integers(1, 4), st.integers(1, 4), st.integers(0, 5), st.integers(0, 2))


def shards_of(cells, count):
    return [Shard(i + 1, count).of(cells) for i in range(count)]


def wanted(cells):
    return {cell.key for cell in cells if cell.kind not in {"split", "embed"}}


@given(plans, st.integers(1, 7))
def test_shards_together_are_the_plan_and_each_has_what_it_builds_on(cells, count):
    shards = shards_of(cells, count)
    assert set().union(*map(wanted, shards)) == wanted(cells)
    order = {cell.key: i for i, cell in enumerate(cells)}
    for shard in shards:
        keys = [cell.key for cell in shard]
        assert {key for cell in shard for key in cell.requires} <= set(keys)
        assert keys == sorted(keys, key=order.__getitem__)


@given(plans, st.integers(1, 7))
def test_no_publication_is_repeated_while_there_are_enough_of_them(cells, count):
    times = Counter(cell.key for shard in shards_of(cells, count) for cell in shard)
    published = [cell.key for cell in cells if cell.kind == "publish"]
    repeated = sum(times[key] - 1 for key in published)
    assert repeated == 0 if len(published) >= count else repeated < count
    assert sum(times[cell.key] - 1 for cell in cells if cell.kind == "split") < count


@given(plans, st.integers(1, 7))
def test_shards_of_a_full_grid_differ_by_one_publication_at_most(cells, count):
    published = [{c.key for c in shard if c.kind == "publish"} for shard in shards_of(cells, count)]
    total = sum(cell.kind == "publish" for cell in cells)
    if total >= count:
        sizes = [len(keys) for keys in published]
        assert max(sizes) - min(sizes) <= 1


@given(plans, st.integers(1, 7), st.randoms())
def test_the_order_of_the_plan_does_not_matter(cells, count, random):
    parts = {cell.key: cell for cell in cells}
    depth = {"split": 0, "publish": 1, "embed": 2, "attack": 3}
    shuffled = sorted(parts.values(), key=lambda cell: (depth[cell.kind], random.random()))
    for one, other in zip(shards_of(cells, count), shards_of(shuffled, count), strict=True):
        assert {cell.key for cell in one} == {cell.key for cell in other}


@pytest.mark.parametrize("text", ["", "3", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "a/b", "1 / 3", "²/3"])
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(UserError, match="expected i/n"):
        Shard.parse(text)


def test_a_shard_is_counted_from_one():
    assert Shard.parse("2/3") == Shard(2, 3)
