import re

import networkx as nx
import numpy as np
import pytest

from ppgsl_bench.datasets import Sources
from ppgsl_bench.datasets import registry as datasets
from ppgsl_bench.reproduce import table1, table2
from ppgsl_bench.reproduce.evidence import Evidence
from ppgsl_bench.reproduce.running import Wish, scope_of
from ppgsl_bench.reproduce.table2 import Counted, Size
from ppgsl_bench.rows import Row
from ppgsl_bench.similarity import row_cosines
from ppgsl_bench.split import make_split
from ppgsl_bench.store import Objects


@pytest.fixture(scope="module")
def split():
    return make_split(datasets.get("synthetic").create(n=150).load(Sources(offline=True)), 0)


def test_table1_agrees_with_networkx(split, monkeypatch):
    monkeypatch.setattr(table1, "UNLINKED_SAMPLE", 10**9)
    vectors = np.random.default_rng(0).standard_normal((split.visible.num_nodes, 4)).astype(np.float32)
    found = table1.measure(split, vectors)
    visible = nx.Graph(split.visible.edges.tolist())
    visible.add_nodes_from(range(split.visible.num_nodes))
    original = nx.Graph(visible)
    original.add_edges_from([*split.sensitive.tolist(), *split.test_links.tolist()])
    pairs = {
        "visible link": list(visible.edges),
        "hidden link": split.sensitive.tolist(),
        "no link": list(nx.non_edges(original)),
    }
    lengths = dict(nx.all_pairs_shortest_path_length(visible))
    for kind, asked in pairs.items():
        hops = [lengths[u].get(v) for u, v in asked]
        known = [h for h in hops if h is not None]
        assert found[kind]["distance"].mean() == pytest.approx(np.mean(known)), kind
        assert found[kind]["disconnected"].mean() == pytest.approx(hops.count(None) / len(hops)), kind
        ends = np.array(asked)
        assert found[kind]["embedding"].mean() == pytest.approx(row_cosines(vectors, ends).mean()), kind
        x = split.visible.x.toarray()
        shares = x / np.maximum(x.sum(axis=1, keepdims=True), 1e-12)
        products = (shares[ends[:, 0]] * shares[ends[:, 1]]).sum(axis=1)
        assert found[kind][table1.ATTRIBUTE_PRODUCT].mean() == pytest.approx(products.mean(), rel=1e-5), kind


def test_unlinked_pairs_are_unlinked_in_the_original_graph(split):
    sample = table1.unlinked_sample(split)
    assert not split.visible.has_edges(sample).any()
    hidden = split.visible.with_edges(split.sensitive, split.test_links)
    assert not hidden.has_edges(sample).any()


@pytest.mark.dataset
def test_distances_on_cora_are_near_the_paper(datasets_dir):
    split = make_split(datasets.get("cora").create().load(Sources((datasets_dir,), offline=True)), 0)
    found = table1.measure(split, None)
    assert found["hidden link"]["distance"].mean() == pytest.approx(3.2, abs=0.2)
    assert found["no link"]["distance"].mean() == pytest.approx(7.0, abs=0.35)


@pytest.mark.parametrize(
    ("counted", "outcome"),
    [
        (Counted(Size(10, 20, 3, 2), None), "confirmed"),
        (Counted(Size(10, 10, 3, 2), None), "confirmed"),
        (Counted(Size(10, 13, 3, 2), 20), "confirmed"),
        (Counted(Size(10, 20, 0, 2), None), "partly"),
        (Counted(Size(10, 21, 3, 2), None), "not confirmed"),
        (Counted(Size(11, 20, 3, 2), None), "not confirmed"),
    ],
)
def test_table2_knows_the_ways_of_counting(counted, outcome):
    assert table2.verdict("toy", Size(10, 20, 3, 2), counted).outcome == outcome


@pytest.mark.dataset
def test_table2_agrees_with_the_readme_of_the_datasets(datasets_dir, tmp_path):
    names = {
        "Cora": "cora",
        "CiteSeer": "citeseer",
        "PubMed": "pubmed",
        "PolBlogs": "polblogs",
        "DeezerEurope": "deezer-europe",
        "LastFMAsia": "lastfm-asia",
    }
    documented = {}
    for line in (datasets_dir / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 9 and cells[0] in names:
            features = re.search(r"\d+", cells[5])
            features = int(features[0]) if features else 0
            documented[names[cells[0]]] = (int(cells[2]), int(cells[4]), features, int(cells[6]), int(cells[3]))
    sources = Sources((datasets_dir,), offline=True)
    objects = Objects(tmp_path)
    scope = scope_of(table2.EXPERIMENT, Wish())
    rows = []
    for dataset in scope.datasets:
        graph = dataset.load(sources)
        features = 0 if graph.x is None else graph.x.shape[1]
        metrics = {"nodes": float(graph.num_nodes), "links": float(graph.num_edges), "features": float(features)}
        artifacts = objects.put_graph(graph)
        rows.append(
            Row(dataset.label, "split", dataset.name, "{}", dataset.label, 0, metrics=metrics, artifacts=artifacts)
        )
    result = table2.conclude(Evidence(rows, objects, sources), scope)
    for name, nodes, links, both_ways, recorded, features, labels, _ in result.table.lines:
        assert (nodes, links, features, labels) == documented[name][:4], name
        assert documented[name][4] in {both_ways, recorded}, name
    outcomes = {verdict.statement: verdict.outcome for verdict in result.verdicts}
    assert outcomes.pop("size of lastfm-asia") == "partly"
    assert set(outcomes.values()) == {"confirmed"}
    assert any("3 different ways" in note for note in result.notes)
