import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

from ppgsl_bench.errors import GraphError
from ppgsl_bench.graph import Graph, checked_sensitive


@given(graphs(), st.randoms(use_true_random=False))
def test_order_and_orientation_of_the_input_do_not_matter(graph, random):
    pairs = [tuple(random.sample(list(pair), 2)) for pair in graph.edges.tolist()]
    random.shuffle(pairs)
    again = Graph.from_pairs(graph.num_nodes, np.array(pairs, dtype=np.int64).reshape(-1, 2))
    assert again.digest == graph.digest
    assert again.edges.tolist() == graph.edges.tolist()


@given(graphs())
def test_derived_views_agree_with_the_links(graph):
    dense = np.zeros((graph.num_nodes, graph.num_nodes))
    for u, v in graph.edges:
        dense[u, v] = dense[v, u] = 1
    assert (graph.adjacency.toarray() == dense).all()
    assert graph.adjacency.indices.dtype == np.int32
    assert graph.degrees.tolist() == dense.sum(axis=0).tolist()
    everything = np.argwhere(np.triu(np.ones_like(dense), 1))
    assert graph.has_edges(everything).sum() == graph.num_edges
    assert graph.num_edges + graph.num_non_edges == len(everything)
    assert graph.with_edges(graph.edges).digest == graph.digest
    assert graph.without_edges(graph.edges).num_edges == 0


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 1], [2, 2]], "self-loops: row 1 (2, 2)"),
        ([[0, 1], [1, 0]], "duplicate links: row 1 (1, 0)"),
        ([[0, 1], [0, 4], [-1, 2]], "node ids outside 0 … 3: row 1 (0, 4), row 2 (-1, 2)"),
        ([[0, 1, 2]], "expected (number of pairs, 2)"),
        ([[0.0, 1.0]], "node ids are of type float64"),
        ([[0, 9]] * 7, "and 2 more"),
    ],
)
def test_bad_links_are_refused_by_row(pairs, message):
    with pytest.raises(GraphError) as error:
        Graph.from_pairs(4, pairs)
    assert message in str(error.value)


def test_directed_data_with_loops_are_taken_when_asked():
    graph = Graph.from_pairs(3, [[1, 0], [0, 1], [2, 2]], loops="drop", duplicates="merge")
    assert graph.edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("edges", "message"),
    [([[1, 0]], "smaller id"), ([[0, 2], [0, 1]], "out of order"), ([[0, 1], [0, 1]], "duplicate")],
)
def test_the_constructor_takes_canonical_links_only(edges, message):
    with pytest.raises(GraphError, match=message):
        Graph(num_nodes=3, edges=np.array(edges))


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"x": np.array([[1.0], [np.nan], [0.0]])}, "features that are NaN or infinite: row 1"),
        ({"x": sp.csr_array(np.array([[1.0], [0.0], [np.inf]]))}, "features that are NaN or infinite: row 2"),
        ({"x": np.ones((2, 1))}, "features have shape (2, 1); expected (3"),
        ({"x": np.ones((3, 0))}, "pass x=None"),
        ({"y": np.array([0, 1])}, "labels have shape (2,); expected (3,)"),
        ({"y": np.array([0.5, 1, 2])}, "labels are of type float64"),
        ({"y": np.array([0, -2, 2])}, "negative labels other than -1 (unknown): row 1 -2"),
        ({"weights": [1.0, np.nan]}, "weights that are not finite and positive: row 1 nan"),
        ({"weights": [0.0, 1.0]}, "weights that are not finite and positive: row 0 0.0"),
        ({"weights": [1.0]}, "expected one weight a link"),
    ],
)
def test_bad_attributes_are_refused_by_row(given_, message):
    with pytest.raises(GraphError) as error:
        Graph.from_pairs(3, [[0, 1], [1, 2]], **given_)
    assert message in str(error.value)


def test_everything_is_read_only_and_a_copy():
    edges, x = np.array([[0, 1]]), np.ones((2, 1), dtype=np.float32)
    graph = Graph(num_nodes=2, edges=edges, x=x, y=np.array([0, 1]), weights=np.array([0.5]))
    edges[0, 1] = 0
    x[0] = 7
    assert graph.edges.tolist() == [[0, 1]]
    assert graph.x[0] == 1
    for array in (graph.edges, graph.x, graph.y, graph.weights, graph.adjacency.data, graph.degrees, graph.ranks):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.name = "other"


def test_the_digest_covers_content_and_not_the_name():
    base = Graph.from_pairs(3, [[0, 1]], x=np.eye(3, dtype=np.float32), y=np.array([0, 0, 1]))
    variants = [
        dataclasses.replace(base, num_nodes=4, x=None, y=None),
        dataclasses.replace(base, edges=np.array([[0, 2]])),
        dataclasses.replace(base, weights=np.array([1.0])),
        dataclasses.replace(base, x=2 * np.eye(3, dtype=np.float32)),
        dataclasses.replace(base, y=np.array([0, 1, 1])),
        base.without_labels(),
    ]
    assert len({g.digest for g in [base, *variants]}) == 1 + len(variants)
    assert dataclasses.replace(base, name="other").digest == base.digest


def test_the_digest_knows_the_width_of_sparse_features():
    narrow = Graph.from_pairs(2, [[0, 1]], x=sp.csr_array(np.array([[1.0], [0.0]])))
    wide = Graph.from_pairs(2, [[0, 1]], x=sp.csr_array(np.array([[1.0, 0.0], [0.0, 0.0]])))
    assert narrow.digest != wide.digest


def test_weights_follow_their_links():
    graph = Graph.from_pairs(4, [[3, 2], [1, 0], [2, 1]], weights=[0.3, 0.1, 0.2])
    assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert graph.weights.tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert graph.without_edges(np.array([[2, 1]])).weights.tolist() == pytest.approx([0.1, 0.3])


def test_sensitive_pairs_must_be_links():
    graph = Graph.from_pairs(4, [[0, 1], [1, 2], [2, 3]])
    assert checked_sensitive(graph, [[3, 2], [1, 0]]).tolist() == [[0, 1], [2, 3]]
    for pairs, message in [
        ([[0, 1], [0, 3]], "sensitive pairs that are not links of the graph: row 1 (0, 3)"),
        ([[0, 1], [1, 0]], "duplicate sensitive pairs: row 1"),
        ([[1, 1]], "self-loops among the sensitive pairs"),
        ([[0, 8]], "outside 0 … 3"),
    ]:
        with pytest.raises(GraphError) as error:
            checked_sensitive(graph, pairs)
        assert message in str(error.value)
    with pytest.raises(GraphError, match="not links of the graph"):
        graph.without_edges(np.array([[0, 2]]))
