"""A defense that does not use the sensitive links must not depend on them; one that does use them, does."""

import numpy as np
import pytest

from ppgsl_bench.defenses import Defense, Field, registry
from ppgsl_bench.pairs import sample_pairs_outside

OBLIVIOUS = ("edgerand", "lapgraph", "none", "privgraph", "random", "rw-lp")


def digests(defense, graph):
    """Digests of publications with one seed and three sensitive sets, the first of them empty."""
    found = set()
    for count in (0, 10, 25):
        sensitive = sample_pairs_outside(graph.ranks, graph.num_nodes, count, np.random.default_rng(count))
        result = defense.publish(graph, sensitive, np.random.default_rng(7))
        found.add(getattr(result, "graph", result).digest)
    return found


@pytest.mark.parametrize("name", OBLIVIOUS)
def test_same_output_whatever_is_sensitive(name, random_graph):
    defense = registry.get(name).create()
    assert not defense.uses_sensitive
    assert len(digests(defense, random_graph(120, 400))) == 1


def test_the_check_notices_a_defense_that_peeks(random_graph):
    class Peeking(Defense):
        rate: float = Field(0.1, help="unused")

        def publish(self, graph, sensitive, rng):
            return graph.with_edges(graph.edges, sensitive[:1])

    assert len(digests(Peeking(), random_graph(120, 400))) > 1


def test_dice_uses_them(random_graph):
    dice = registry.get("dice").create()
    assert dice.uses_sensitive
    assert len(digests(dice, random_graph(120, 400))) == 3
