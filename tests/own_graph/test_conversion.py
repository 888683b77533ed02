"""What goes in as one type comes out as that type, with the same nodes, names, attributes and weights."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs
from torch_geometric.data import Data

from ppgsl_bench.errors import GraphError, UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.own_graph.conversion import aligned, converted, named_pairs, with_features
from ppgsl_bench.own_graph.naming import NamedGraph

NAMES = st.sampled_from(
    [
        lambda i: f"node {i:02d}",
        lambda i: 7 * i - 20,
        lambda i: ("tuple", i),
        lambda i: i if i % 2 else f"n{i}",
    ]
)
# 0.1 is no float32: it must come back as it was all the same.
WEIGHTS = (0.1, 2, 3.5, 1e-3)


def weight_of(i):
    return WEIGHTS[i % len(WEIGHTS)]


@given(graphs(), NAMES, st.booleans())
def test_networkx(graph, name, weighted):
    source = nx.Graph(title="mine")
    source.add_nodes_from((name(i), {"age": i}) for i in range(graph.num_nodes))
    for i, (u, v) in enumerate(graph.edges.tolist()):
        source.add_edge(name(v), name(u), since=1999, **({"weight": weight_of(i)} if weighted else {}))
    there = converted(source)
    back = there.back(there.nodes.graph)
    assert type(back) is nx.Graph
    assert list(back.nodes(data=True)) == list(source.nodes(data=True))
    assert back.graph == source.graph
    expected = {frozenset((u, v)): w for u, v, w in source.edges(data="weight")}
    assert {frozenset((u, v)): w for u, v, w in back.edges(data="weight")} == expected
    # Other attributes of links would tell real links from added ones.
    assert all(set(attributes) <= {"weight"} for *_, attributes in back.edges(data=True))


FORMATS = [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_array]


@given(graphs(), st.sampled_from(FORMATS), st.sampled_from(["bool", "int64", "float64"]), st.booleans())
def test_scipy(graph, make, dtype, triangular):
    dense = np.zeros((graph.num_nodes, graph.num_nodes))
    for i, (u, v) in enumerate(graph.edges):
        dense[u, v] = weight_of(i) if dtype == "float64" else 1
    source = make((dense if triangular else dense + dense.T).astype(dtype))
    there = converted(source)
    back = there.back(there.nodes.graph)
    assert type(back) is type(source)
    assert back.dtype == source.dtype
    assert np.array_equal(back.toarray(), source.toarray())


@given(graphs(min_edges=1), NAMES, st.booleans(), st.sampled_from([("source", "target"), ("a", "b"), (0, 1)]))
def test_pandas(graph, name, weighted, titles):
    table = pd.DataFrame([(name(v), name(u)) for u, v in graph.edges[::-1].tolist()], columns=list(titles))
    if weighted:
        table["weight"] = [weight_of(i) for i in range(len(table))]
    table["note"] = "x"
    table.index = table.index[::-1]
    there = converted(table)
    back = there.back(there.nodes.graph)
    assert list(back.columns) == [*titles, "weight"][: 2 + weighted]
    assert back.dtypes.tolist() == table[list(back.columns)].dtypes.tolist()

    def links(frame):
        ends = [frozenset(pair) for pair in zip(frame[titles[0]], frame[titles[1]], strict=True)]
        return dict(zip(ends, frame["weight"] if weighted else ends, strict=True))

    assert links(back) == links(table)


@given(graphs(), st.data())
def test_the_order_of_an_edge_list_does_not_survive(graph, data):
    rows = [(f"n{u}", f"n{v}") for u, v in graph.edges.tolist()]
    shuffled = [pair[::-1] if data.draw(st.booleans()) else pair for pair in data.draw(st.permutations(rows))]
    tables = [pd.DataFrame(r, columns=["source", "target"], dtype=object) for r in (rows, shuffled)]
    first, second = (there.back(there.nodes.graph) for there in map(converted, tables))
    assert first.equals(second)


@given(graphs(), st.booleans(), st.booleans())
def test_torch_geometric(graph, both_ways, weighted):
    n = graph.num_nodes
    pairs = np.concatenate([graph.edges, graph.edges[:, ::-1]]) if both_ways else graph.edges
    data = Data(edge_index=torch.from_numpy(pairs.T.copy()), x=torch.eye(n), y=torch.arange(n) % 3, num_nodes=n)
    data.age = torch.arange(n)
    # What people keep for link prediction holds the very links that are to be hidden.
    data.edge_label_index = data.edge_index.clone()
    if weighted:
        values = torch.tensor([weight_of(i) for i in range(graph.num_edges)])
        data.edge_weight = values.repeat(2 if both_ways else 1)
    there = converted(data)
    assert np.array_equal(there.nodes.graph.y, np.arange(n) % 3)
    back = there.back(there.nodes.graph)
    assert type(back) is Data
    assert back.num_nodes == n
    assert torch.equal(back.x, data.x)
    assert torch.equal(back.y, data.y)
    assert torch.equal(back.age, data.age)
    assert "edge_label_index" not in back

    def links(d):
        weights = d.edge_weight.tolist() if weighted and d.num_edges else [1] * d.num_edges
        return dict(zip(map(tuple, d.edge_index.T.tolist()), weights, strict=True))

    assert links(back) == links(data)
    assert data.edge_label_index is not None


@given(graphs())
def test_our_own(graph):
    there = converted(graph)
    assert there.back(there.nodes.graph) is graph


def test_isolated_nodes_and_a_changed_graph():
    source = nx.Graph([("a", "b"), ("b", "c")])
    source.add_node("z")
    there = converted(source)
    back = there.back(there.nodes.graph.with_edges(np.array([[0, 3]])))
    assert set(back.nodes) == {"a", "b", "c", "z"}
    assert list(back.edges) == [("a", "z")]


class TestRefusals:
    @pytest.mark.parametrize(
        ("source", "message"),
        [
            (nx.DiGraph([(0, 1)]), r"DiGraph.*no direction.*networkx\.Graph\(graph\)"),
            (nx.MultiGraph([(0, 1)]), "MultiGraph"),
            (sp.csr_array(np.array([[0, 1, 1], [1, 0, 0], [0, 1, 0]])), r"not symmetric.*A\.maximum\(A\.T\)"),
            (sp.csr_array((2, 3)), "square"),
            ([(0, 1)], "type list; expected a networkx Graph"),
            (pd.DataFrame({"source": [1]}), "1 column"),
            (Data(x=torch.eye(2)), "without edge_index"),
        ],
    )
    def test_type(self, source, message):
        with pytest.raises(UserError, match=message):
            converted(source)

    def test_content(self):
        some = nx.Graph([(0, 1, {"weight": 1}), (1, 2)])
        with pytest.raises(GraphError, match="1 of 2 links have no weight"):
            converted(some)
        with pytest.raises(GraphError, match="1 rows, the first is row 1"):
            converted(pd.DataFrame({"source": ["a", None], "target": ["b", "c"]}))
        with pytest.raises(UserError, match="entry 1 is not a pair"):
            named_pairs([(1, 2), (1, 2, 3)])

    def test_untidy_links_are_counted(self):
        table = pd.DataFrame({"source": list("aabc"), "target": list("bbac")})
        with pytest.warns(UserWarning, match="dropped") as caught:
            there = converted(table)
        assert [str(w.message)[:9] for w in caught] == ["dropped 1", "dropped 2"]
        assert there.nodes.graph.num_edges == 1


def test_pairs_of_every_kind():
    expected = [(1, 2), (3, 4)]
    assert named_pairs(expected) == expected
    assert named_pairs(np.array(expected)) == expected
    assert named_pairs(torch.tensor(expected)) == expected
    assert named_pairs(pd.DataFrame(expected, columns=["u", "v"])) == expected
    assert named_pairs(nx.Graph(expected).edges) == expected


def test_features_and_labels_by_name_or_in_order():
    nodes = NamedGraph(Graph.from_pairs(3, [(0, 1)]), ["a", "b", "c"], "x")
    table = pd.DataFrame({"f": [3.0, 1.0, 2.0]}, index=["c", "a", "b"])
    by_name = with_features(nodes, table, {"a": "red", "b": "blue", "c": "red"})
    in_order = with_features(nodes, np.array([[1.0], [2.0], [3.0]]), [1, 0, 1])
    assert by_name.graph.digest == in_order.graph.digest


def test_aligned_knows_nodes_that_an_edge_list_lost():
    original = NamedGraph(Graph.from_pairs(4, [(0, 1), (1, 2), (2, 3)]), list("abcd"), "original.csv")
    published = NamedGraph(Graph.from_pairs(2, [(0, 1)], weights=[2.0]), ["d", "b"], "published.csv")
    graph = aligned(published, original).graph
    assert graph.edges.tolist() == [[1, 3]]
    assert graph.weights.tolist() == [2.0]
    with pytest.raises(GraphError, match=r"1 of 2 nodes of published.csv are not in original.csv"):
        aligned(NamedGraph(published.graph, ["d", "q"], "published.csv"), original)
