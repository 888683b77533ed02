import hashlib
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from ppgsl_bench.datasets import Sources, registry
from ppgsl_bench.errors import UserError
from ppgsl_bench.graph import Graph
from ppgsl_bench.pairs import num_pairs
from ppgsl_bench.split import make_split

# Chance that a correct generator fails one of the statistical checks, had the seeds not been fixed.
FALSE_ALARM = 1e-4


def make(name: str, **parameters) -> Graph:
    return registry.get(name).create(**parameters).load(Sources(offline=True))


class TestErdosRenyi:
    def test_number_of_links_is_binomial(self):
        n, degree, graphs = 60, 6, 400
        p = degree / (n - 1)
        counts = np.array([make("er", n=n, degree=degree, seed=s).num_edges for s in range(graphs)])
        total = stats.binomtest(int(counts.sum()), graphs * num_pairs(n), p)
        assert total.pvalue > FALSE_ALARM
        # The variance tells G(n, p) from G(n, M), whose number of links is fixed.
        spread = (counts.var(ddof=1) * (graphs - 1)) / (num_pairs(n) * p * (1 - p))
        low, high = stats.chi2(graphs - 1).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
        assert low < spread < high

    def test_every_pair_is_equally_likely(self):
        n, graphs = 20, 500
        hits = np.zeros(num_pairs(n))
        for seed in range(graphs):
            hits[make("er", n=n, degree=8, seed=seed).ranks] += 1
        p = 8 / (n - 1)
        # Sum of squared standardised binomials: chi-square with one degree of freedom a pair.
        statistic = ((hits - graphs * p) ** 2 / (graphs * p * (1 - p))).sum()
        assert stats.chi2(num_pairs(n)).sf(statistic) > FALSE_ALARM

    def test_degrees_are_binomial(self):
        n, degree = 20_000, 10
        observed = np.bincount(make("er", n=n, degree=degree, seed=1).degrees, minlength=40)
        law = stats.binom(n - 1, degree / (n - 1)).pmf(np.arange(len(observed))) * n
        cells = np.flatnonzero(law > 20)
        groups = [slice(None, cells[0]), *(slice(c, c + 1) for c in cells), slice(cells[-1] + 1, None)]
        seen = np.array([observed[g].sum() for g in groups])
        expected = np.array([law[g].sum() for g in groups])
        assert stats.chisquare(seen, expected * n / expected.sum()).pvalue > FALSE_ALARM

    def test_half_a_million_nodes(self):
        graph = make("er", n=500_000)
        sigma = np.sqrt(num_pairs(500_000) * 10 / 499_999)
        assert abs(graph.num_edges - 2_500_000) < 5 * sigma
        assert graph.x is None
        assert graph.y is None

    def test_extremes(self):
        assert make("er", n=10, degree=0).num_edges == 0
        assert make("er", n=10, degree=9).num_edges == 45
        assert make("er", n=2, degree=1).num_edges == 1

    def test_seeds_and_names(self):
        assert make("er", n=50).digest == make("er", n=50).digest != make("er", n=50, seed=1).digest
        assert make("er", n=50, degree=4).name == "er[n=50,degree=4]"

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n": 10, "degree": 10}, "degree=10: .*cannot exceed n - 1 = 9"),
            ({"n": 1}, "n=1: .*greater than or equal to 2"),
            ({"degree": -1}, "degree=-1"),
            ({"nodes": 5}, r"no parameter 'nodes'.*n \(int"),
        ],
    )
    def test_bad_parameters(self, parameters, message):
        with pytest.raises(UserError, match=message):
            registry.get("er").create(**parameters)


def auc(links, non_links) -> float:
    ranks = stats.rankdata(np.concatenate([links, non_links]))
    m, n = len(links), len(non_links)
    return (ranks[:m].sum() - m * (m + 1) / 2) / (m * n)


def attack_aucs(graph: Graph, split_seed: int) -> dict[str, float]:
    """Heuristic attacks by plain sparse algebra, on uniform negatives."""
    split = make_split(graph, split_seed)
    visible, x = split.visible, sp.csr_array(graph.x)
    degrees = visible.degrees.astype(float)
    norms = np.sqrt(x.multiply(x).sum(axis=1))
    weights = {
        "cn": np.ones(len(degrees)),
        "aa": 1 / np.log(np.maximum(degrees, 2)),
        "ra": 1 / np.maximum(degrees, 1),
    }

    def scores(pairs):
        u, v = pairs.T
        found = {
            name: (visible.adjacency[u] @ sp.diags_array(w)).multiply(visible.adjacency[v]).sum(axis=1)
            for name, w in weights.items()
        }
        found["features"] = x[u].multiply(x[v]).sum(axis=1) / np.maximum(norms[u] * norms[v], 1e-12)
        found["degrees"] = degrees[u] * degrees[v]
        return found

    links, non_links = scores(split.sensitive), scores(split.negatives["uniform"])
    return {name: auc(links[name], non_links[name]) for name in links}


class TestSynthetic:
    @pytest.mark.parametrize("seed", range(3))
    def test_every_attack_has_something_to_find(self, seed):
        graph = make("synthetic", seed=seed)
        runs = [attack_aucs(graph, split_seed) for split_seed in range(3)]
        lowest = {name: min(run[name] for run in runs) for name in runs[0]}
        highest = {name: max(run[name] for run in runs) for name in runs[0]}
        assert min(lowest["cn"], lowest["aa"], lowest["ra"]) >= 0.75
        assert lowest["features"] >= 0.62
        assert lowest["degrees"] >= 0.6
        assert highest["features"] < min(lowest["cn"], lowest["aa"], lowest["ra"])

    def test_a_random_graph_would_not_pass(self):
        plain = make("er")
        features = make("synthetic").x
        aucs = attack_aucs(Graph(num_nodes=1000, edges=plain.edges, x=features), 0)
        assert max(aucs.values()) < 0.6

    def test_looks_like_a_social_network(self):
        graph = make("synthetic")
        source = nx.Graph(graph.edges.tolist())
        assert graph.num_nodes == 1000
        assert graph.num_edges == 5000
        # An Erdős–Rényi graph of this size has clustering 0.01 and no degree above 30.
        assert nx.average_clustering(source) > 0.2
        assert graph.degrees.max() >= 4 * graph.degrees.mean()
        same = graph.y[graph.edges[:, 0]] == graph.y[graph.edges[:, 1]]
        by_chance = (np.bincount(graph.y) ** 2).sum() / graph.num_nodes**2
        assert same.mean() > 2.5 * by_chance

    def test_features_are_sparse_and_tell_labels(self):
        from sklearn.linear_model import LogisticRegression

        graph = make("synthetic")
        assert sp.issparse(graph.x)
        assert graph.x.nnz < 0.1 * np.prod(graph.x.shape)
        assert len(np.unique(graph.y)) == 6
        split = make_split(graph, 0)
        model = LogisticRegression(max_iter=500).fit(graph.x[split.train_nodes], graph.y[split.train_nodes])
        accuracy = model.score(graph.x[split.test_nodes], graph.y[split.test_nodes])
        most_frequent = np.bincount(graph.y).max() / graph.num_nodes
        assert accuracy > most_frequent + 0.2

    @pytest.mark.parametrize("n", [100, 333, 3000])
    def test_other_sizes(self, n):
        graph = make("synthetic", n=n)
        assert (graph.num_nodes, graph.num_edges) == (n, 5 * n)
        assert graph.name == f"synthetic[n={n}]"

    def test_same_in_another_process(self):
        code = (
            "from ppgsl_bench.datasets import registry, Sources\n"
            "for name in ('synthetic', 'er'): print(registry.get(name)().load(Sources(offline=True)).digest)"
        )
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert run.stdout.split() == [make("synthetic").digest, make("er").digest]

    def test_seeds_differ(self):
        assert make("synthetic", seed=1).digest != make("synthetic").digest


# Raise the dataset's version together with its digest: results on the old graph must not be mixed with new ones.
GENERATED = {
    ("synthetic", 1): "313fc4fcd08ca18806c949008688e5a34c8fac84c16c7c15f9a208ab84156d7f",
    ("er", 1): "a427bfade648691eab782d400e1deb0c1ee0a7871f4727e93d1bf5eaff4fb7e5",
}


@pytest.mark.parametrize("name", ["synthetic", "er"])
def test_content_changes_with_the_version_only(name):
    graph = make(name)
    sha = hashlib.sha256(graph.edges.astype("<i8").tobytes())
    if graph.x is not None:
        for array in (graph.x.indptr, graph.x.indices, graph.y):
            sha.update(array.astype("<i8").tobytes())
    assert sha.hexdigest() == GENERATED[name, registry.get(name).version]


def test_generated_fingerprints_need_no_files(tmp_path):
    sources = Sources((), tmp_path / "cache", offline=True)
    for name in ("er", "synthetic", "karate", "lesmis"):
        dataset = registry.get(name)()
        assert dataset.fingerprint(sources) == dataset.fingerprint(Sources())


def test_karate():
    graph = make("karate")
    source = nx.karate_club_graph()
    assert (graph.num_nodes, graph.num_edges) == (34, 78)
    assert graph.weights is None
    assert graph.edges.tolist() == sorted(sorted(edge) for edge in source.edges)
    assert [("Mr. Hi", "Officer")[label] for label in graph.y] == [club for _, club in source.nodes(data="club")]


def test_lesmis():
    graph = make("lesmis")
    assert (graph.num_nodes, graph.num_edges) == (77, 254)
    assert graph.weights is None
    assert graph.y is None
    assert np.array_equal(np.sort(graph.degrees), sorted(d for _, d in nx.les_miserables_graph().degree))
