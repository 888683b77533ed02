import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.metrics.pairwise
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ppgsl_bench import similarity
from ppgsl_bench.attacks.features import FeatureCosine
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs, pairs_at
from ppgsl_bench.similarity import row_cosines

FEATURES = hnp.arrays(
    np.float32,
    st.tuples(st.integers(2, 9), st.integers(1, 6)),
    elements=st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.5, 1e-12, 3e4]),
)


@given(FEATURES)
def test_dense_and_sparse_features_give_the_cosine(x):
    n = len(x)
    pairs = pairs_at(np.arange(num_pairs(n)), n)
    expected = sklearn.metrics.pairwise.cosine_similarity(x.astype(np.float64))[pairs[:, 0], pairs[:, 1]]
    np.testing.assert_allclose(row_cosines(x, pairs), expected, atol=1e-9)
    np.testing.assert_allclose(row_cosines(sp.csr_array(x), pairs), expected, atol=1e-9)
    np.testing.assert_array_equal(row_cosines(x, pairs), row_cosines(x, pairs[:, ::-1]))


def test_zero_rows_score_zero_not_nan():
    x = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]], dtype=np.float32)
    pairs = np.array([[0, 1], [0, 2]])
    assert row_cosines(x, pairs).tolist() == [0.0, 0.0]
    assert row_cosines(sp.csr_array(x), pairs).tolist() == [0.0, 0.0]


def test_chunks_do_not_show(monkeypatch, rng):
    x = rng.standard_normal((40, 7)).astype(np.float32)
    pairs = rng.integers(40, size=(101, 2))
    whole, sparse = row_cosines(x, pairs), row_cosines(sp.csr_array(x), pairs)
    monkeypatch.setattr(similarity, "_VALUES_AT_ONCE", 30)
    np.testing.assert_allclose(row_cosines(x, pairs), whole, rtol=1e-14)
    np.testing.assert_allclose(row_cosines(sp.csr_array(x), pairs), sparse, rtol=1e-14)


def test_a_graph_without_features_is_refused(random_graph, rng):
    bare, featured = random_graph(5, 4), random_graph(5, 4, features=3)
    assert FeatureCosine().why_not(bare) == "the graph has no features"
    assert FeatureCosine().why_not(featured) is None
    with pytest.raises(ValueError, match="without features"):
        FeatureCosine().score(bare, np.array([[0, 1]]), rng)


def test_links_play_no_part(random_graph, rng):
    graph = random_graph(12, 30, features=4)
    other = Graph.from_pairs(12, [(0, 1)], x=graph.x)
    pairs = pairs_at(np.arange(num_pairs(12)), 12)
    np.testing.assert_array_equal(FeatureCosine().score(graph, pairs, rng), FeatureCosine().score(other, pairs, rng))
