import numpy as np
from hypothesis import given
from strategies import graphs

from ppgsl_bench.attacks.edge_presence import EdgePresence
from ppgsl_bench.attacks.neighbours import ResourceAllocation
from ppgsl_bench.graph import Graph
from ppgsl_bench.metrics import attack_metrics
from ppgsl_bench.pairs import num_pairs, pairs_at
from ppgsl_bench.split import make_split


@given(graphs())
def test_published_pairs_come_first_and_ra_decides_within(graph):
    pairs = pairs_at(np.arange(num_pairs(graph.num_nodes)), graph.num_nodes)
    rng = np.random.default_rng(0)
    scores, ra = EdgePresence().score(graph, pairs[:, ::-1], rng), ResourceAllocation().score(graph, pairs, rng)
    published = graph.has_edges(pairs)
    np.testing.assert_array_equal(np.floor(scores), published)
    for part in (published, ~published):
        np.testing.assert_array_equal(np.argsort(scores[part], kind="stable"), np.argsort(ra[part], kind="stable"))


def test_no_resource_allocation_outweighs_publication(rng):
    # 0 and 1 share six neighbours of degree two, so that RA is 3; 2 and 8 share none but are published.
    graph = Graph.from_pairs(9, [(u, z) for u in (0, 1) for z in range(2, 8)] + [(2, 8)])
    unpublished, published = EdgePresence().score(graph, np.array([[0, 1], [2, 8]]), rng)
    assert unpublished < 1 <= published


def test_a_sensitive_link_published_again_is_found(random_graph, rng):
    split = make_split(random_graph(200, 1000), 0)
    queries = split.queries()
    leaking = split.visible.with_edges(split.visible.edges, split.sensitive)
    found = attack_metrics(EdgePresence().score(leaking, queries.pairs, rng), queries.group)
    assert found["auc"] == found["auc_degree"] == found["auc_hard"] == found["tpr_at_0.1pct_fpr"] == 1.0
    # Local predictors cannot see it.
    blind = attack_metrics(ResourceAllocation().score(leaking, queries.pairs, rng), queries.group)
    assert blind["auc"] < 0.7
