from hypothesis import given
from strategies import graphs

from ppgsl_bench.defenses import registry


@given(graphs())
def test_publishes_the_very_graph(graph):
    defense = registry.get("none").create()
    assert defense.publish(graph, graph.edges[:0], None) is graph
    assert defense.guarantee is None
