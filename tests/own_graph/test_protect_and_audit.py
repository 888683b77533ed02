"""Both commands from end to end, on sixty people with string ids."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import ppgsl_bench as pb
from ppgsl_bench.datasets.files import read_tidied
from ppgsl_bench.errors import UserError
from ppgsl_bench.own_graph.division import rehearsal_split, release_split
from ppgsl_bench.own_graph.findings import AttackFinding
from ppgsl_bench.pairs import ranks_of
from ppgsl_bench.rows import Row

CHEAP = ["--attack", "cn,ra", "--utility", "structure"]
PROTECT = ["protect", "friends.csv", "--sensitive", "secret.csv", "-o", "published.csv"]


def links_of(path):
    content = read_tidied(path)
    return {frozenset((content.ids[u], content.ids[v])) for u, v in content.graph.edges.tolist()}


def pairs_in(path):
    return {frozenset(line.split(",")) for line in path.read_text().split()}


@pytest.mark.usefixtures("in_this_process")
class TestCommands:
    def test_protect_then_audit(self, friends, bench_command):
        result = bench_command(*PROTECT, "--defense", "random[rate=0.2]", *CHEAP)
        assert "Graph protected with random[rate=0.2]" in result.stdout
        assert "wrote published.csv: 160 links, nothing else" in result.stdout
        published, hidden = links_of(friends / "published.csv"), pairs_in(friends / "secret.csv")
        original = links_of(friends / "friends.csv")
        assert len(published & (original - hidden)) == 128
        assert (friends / "published.csv").read_text().startswith("source,target\n")
        audit = ["audit", "published.csv", "--sensitive", "secret.csv", *CHEAP]
        result = bench_command(*audit, "--original", "friends.csv", "--json")
        report = json.loads(result.stdout)
        assert report["links"]["kept"] == 128
        assert report["links"]["sensitive_published"] == len(published & hidden)
        assert [attack["name"] for attack in report["attacks"]] == ["cn", "ra"]
        assert len(report["most_exposed"]) == 10
        assert {frozenset(e["pair"]) for e in report["most_exposed"]} <= hidden
        risks = [(not e["published"], -e["risk"]) for e in report["most_exposed"]]
        assert risks == sorted(risks)
        text = bench_command(*audit).stdout
        assert "The original was not given" in text
        assert "The most exposed links" in text

    def test_the_same_seed_gives_the_same_graph(self, friends, bench_command):
        texts = []
        for seed in ("3", "3", "4"):
            bench_command(*PROTECT, "--defense", "random", "--attack", "cn", "--utility", "none", "--seed", seed)
            texts.append((friends / "published.csv").read_text())
        assert texts[0] == texts[1] != texts[2]

    def test_a_target_is_reached(self, friends, bench_command, thinning):
        options = ["--defense", "thinning", "--plugin", thinning, "--attack", "cn", "--utility", "none", "--json"]
        undefended = json.loads(bench_command(*PROTECT, *options).stdout)["attacks_before"][0]["auc"]
        assert undefended > 0.9
        report = json.loads(bench_command(*PROTECT, *options, "--target-auc", "0.7").stdout)
        assert report["attacks_after"][0]["auc"] <= 0.7
        tried = {trial["defense"]: trial["strength"] for trial in report["tried"]}
        assert tried[report["defense"]] <= 0.7
        assert min(tried.values()) < tried[report["defense"]]

    def test_nothing_is_written_if_the_target_is_out_of_reach(self, friends, bench_command):
        # Places on a circle give the links away, whatever is done to these.
        places = [(f"person{i:02d}", np.cos(i * np.pi / 30), np.sin(i * np.pi / 30)) for i in range(60)]
        (friends / "features.csv").write_text("".join(f"{name},{x},{y}\n" for name, x, y in places))
        options = ["--features", "features.csv", "--defense", "random", "--attack", "feature-cos", "--utility", "none"]
        result = bench_command(*PROTECT, *options, "--target-auc", "0.6", code=1)
        assert "nothing was written: no setting of random" in result.stderr
        assert "looks at the features alone" in result.stderr
        assert not (friends / "published.csv").exists()

    def test_candidates_are_compared(self, friends, bench_command, thinning):
        options = ["--defense", "thinning[keep=0.6],thinning[keep=0.2],random", "--plugin", thinning, "--attack", "cn"]
        report = json.loads(
            bench_command(
                *PROTECT, *options, "--utility", "link-prediction[epochs=20]", "--target-auc", "0.75", "--json"
            ).stdout
        )
        fit = [trial for trial in report["tried"] if trial["strength"] <= 0.75]
        assert {trial["defense"] for trial in report["tried"]} == {"thinning[keep=0.6]", "thinning[keep=0.2]", "random"}
        assert report["defense"] == max(fit, key=lambda trial: trial["utility_kept"])["defense"]

    @pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
    def test_report(self, friends, bench_command, suffix):
        (friends / "features.csv").write_text("".join(f"person{i:02d},{i % 7},{i % 5}\n" for i in range(60)))
        result = bench_command(
            *PROTECT,
            *("--defense", "edgerand[epsilon=5]", "--features", "features.csv", "--report", f"report{suffix}"),
            *("--attack", "cn,feature-cos", "--utility", "structure"),
        )
        text = (friends / f"report{suffix}").read_text()
        assert "Features: an attack that looks at the features alone" in text.replace("\\", "")
        assert any(name in text for pair in pairs_in(friends / "secret.csv") for name in pair)
        assert "ε = 5" in text
        assert "person" not in result.output
        # What a file of its own says about nodes is no part of the published one.
        assert set((friends / "published.csv").read_text().split()[0].split(",")) == {"source", "target"}

    @pytest.mark.parametrize("suffix", [".graphml", ".gml", ".npz", ".tsv"])
    def test_other_formats(self, friends, bench_command, suffix):
        content = read_tidied(friends / "friends.csv")
        if suffix == ".npz":
            x = np.ones((60, 2), dtype=np.float32)
            np.savez(friends / "g.npz", edges=content.graph.edges, num_nodes=60, x=x)
            (friends / "secret.csv").write_text("0,1\n5,6\n")
        elif suffix == ".tsv":
            (friends / "g.tsv").write_text((friends / "friends.csv").read_text().replace(",", "\t"))
        else:
            source = nx.Graph([(content.ids[u], content.ids[v]) for u, v in content.graph.edges])
            nx.set_node_attributes(source, 1, "age")
            (nx.write_graphml if suffix == ".graphml" else nx.write_gml)(source, friends / f"g{suffix}")
        out = f"published{suffix}"
        command = ["protect", f"g{suffix}", "--sensitive", "secret.csv", "-o", out, "--defense", "random", *CHEAP]
        bench_command(*command)
        published = read_tidied(friends / out)
        assert published.ids == read_tidied(friends / f"g{suffix}").ids
        if suffix == ".npz":
            with np.load(friends / out) as archive:
                assert set(archive) == {"edges", "num_nodes", "x"}
        else:
            assert "age" not in (friends / out).read_text()

    def test_everything_in_a_page_is_escaped(self, friends, bench_command):
        evil = "<script>alert(1)</script>"
        (friends / "friends.csv").write_text((friends / "friends.csv").read_text().replace("person00", evil))
        (friends / "secret.csv").write_text(f"{evil},person01\n")
        bench_command("audit", "friends.csv", "--sensitive", "secret.csv", "--attack", "cn", "--report", "a.html")
        page = (friends / "a.html").read_text()
        assert "&lt;script&gt;" in page
        tags = set()

        class Tags(HTMLParser):
            def handle_starttag(self, tag, attrs):
                tags.add(tag)
                assert not {"src", "href"} & {name for name, _ in attrs}

        Tags().feed(page)
        assert "script" not in tags
        assert {"svg", "table", "style"} <= tags

    def test_help_shows_examples(self, bench_command):
        for command in ("protect", "audit"):
            assert "Examples" in bench_command(command, "--help").stdout


SECRETS = ("zz-planted-one", "zz-planted-two")


@pytest.mark.usefixtures("in_this_process")
class TestNothingLeaks:
    """Two people whose only link is the sensitive one: their names turn up where the user asked, and nowhere else."""

    @pytest.fixture
    def planted(self, friends, monkeypatch):
        with (friends / "friends.csv").open("a") as file:
            file.write(",".join(SECRETS) + "\n")
        with (friends / "secret.csv").open("a") as file:
            file.write(",".join(SECRETS[::-1]) + "\n")
        for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME"):
            monkeypatch.setenv(name, str(friends / name))
            (friends / name).mkdir()
        monkeypatch.setattr("tempfile.tempdir", None)
        return friends

    def leaks(self, folder, result):
        found = [name for name in SECRETS if name in result.output]
        for path in folder.rglob("*"):
            if path.is_file() and path.name not in {"friends.csv", "secret.csv"}:
                content = path.read_bytes()
                found += [f"{name} in {path.name}" for name in SECRETS if name.encode() in content or name in path.name]
        return found

    def test_protect(self, planted, bench_command, thinning):
        options = ["--defense", "thinning", "--plugin", thinning, *CHEAP]
        result = bench_command(*PROTECT, *options)
        assert self.leaks(planted, result) == []
        assert list((planted / "TMPDIR").iterdir()) == []
        assert not links_of(planted / "published.csv") & pairs_in(planted / "secret.csv")
        result = bench_command(*PROTECT, *options, "--target-auc", "0.8")
        assert self.leaks(planted, result) == []
        # The search is seen to find something: a report that was asked for does name links.
        result = bench_command(*PROTECT, *options, "--report", "report.md")
        assert SECRETS[0] not in result.output
        shown = (planted / "report.md").read_text()
        assert sum(name in shown for name in {name for pair in pairs_in(planted / "secret.csv") for name in pair})

    def test_audit(self, planted, bench_command, thinning):
        bench_command(*PROTECT, "--defense", "thinning", "--plugin", thinning, *CHEAP)
        (planted / "secret.csv").write_text(",".join(SECRETS) + "\n")
        audit = ["audit", "published.csv", "--sensitive", "secret.csv", "--original", "friends.csv", *CHEAP]
        result = bench_command(*audit)
        assert all(name in result.stdout for name in SECRETS)
        assert not any(name in result.stderr for name in SECRETS)
        assert self.leaks(planted, type("Empty", (), {"output": ""})) == []

    def test_a_leak_would_be_found(self, planted, bench_command):
        (planted / "careless.log").write_text(f"hiding {SECRETS[0]}")
        assert self.leaks(planted, type("Empty", (), {"output": SECRETS[1]})) != []


GOSSIP = '''"""Plugins that name every node they are shown, in everything they can say."""

from ppgsl_bench.attacks import Attack, register as register_attack
from ppgsl_bench.defenses import Defense, Field, register


@register("gossip", version=1)
class Gossip(Defense):
    """Tells what it was to hide."""

    refuses: bool = Field(False, help="whether to give a reason instead of raising")

    uses_sensitive = True

    def why_not(self, graph):
        return f"cannot hide links of node {graph.edges.max()} or {graph.edges.tolist()}" if self.refuses else None

    def publish(self, graph, sensitive, rng):
        raise RuntimeError(f"cannot hide {sensitive.tolist()}")


@register_attack("gossip-attack", version=1)
class GossipAttack(Attack):
    """Tells what it was asked."""

    def score(self, published, pairs, rng):
        raise KeyError(tuple(map(tuple, pairs.tolist())))


@register_attack("gossip-refusal", version=1)
class GossipRefusal(Attack):
    """Tells what it was shown."""

    def why_not(self, graph):
        return f"node {graph.edges.max()} is too far out"

    def score(self, published, pairs, rng):
        raise NotImplementedError
'''


@pytest.mark.usefixtures("in_this_process")
class TestPluginsThatTell:
    """Files that number their nodes, so that what a plugin says could name them; none of it is passed on."""

    # Five digits, so that no count or AUC in the output is mistaken for a node.
    FIRST = 10_200
    SENSITIVE = (10_207, 10_208)

    @pytest.fixture
    def numbered(self, friends):
        ring = [(self.FIRST + i, self.FIRST + (i + k) % 60) for i in range(60) for k in (1, 2, 3)]
        np.savez(friends / "g.npz", edges=np.array(ring), num_nodes=self.FIRST + 60)
        (friends / "secret.csv").write_text("{},{}\n".format(*self.SENSITIVE))
        (friends / "gossip.py").write_text(GOSSIP)
        return friends

    def named(self, text):
        return re.findall(r"(?<![\d.])102\d\d(?!\d)", text)

    def protect(self, defense, attack):
        files = ["protect", "g.npz", "--sensitive", "secret.csv", "-o", "out.npz", "--plugin", "gossip.py"]
        return [*files, "--defense", defense, "--attack", attack, "--utility", "none"]

    @pytest.mark.parametrize("how", ["gossip", "gossip[refuses=true]"])
    def test_the_only_defense(self, numbered, refusal, how):
        message = refusal(*self.protect(how, "cn"))
        assert "cannot hide" in message
        assert self.named(message) == []
        assert not (numbered / "out.npz").exists()

    def test_one_defense_of_several_and_the_attacks(self, numbered, bench_command):
        candidates = "random[rate=0.2],gossip,gossip[refuses=true]"
        command = self.protect(candidates, "cn,gossip-attack,gossip-refusal")
        for options in ([], ["--json"]):
            result = bench_command(*command, *options)
            assert self.named(result.output) == []
        result = bench_command(*command, "--report", "report.md")
        assert self.named(result.output) == []
        report = (numbered / "report.md").read_text()
        assert "Not run: gossip: RuntimeError: cannot hide \\[\\[…, …\\]\\] (gossip.py, line 19)" in report
        assert "node … is too far out" in report
        assert "gossip-attack failed: KeyError: ((…, …)," in report
        # What was asked for is there, and nothing else: the link itself, once.
        assert self.named(report) == [str(node) for node in self.SENSITIVE]

    def test_an_audit(self, numbered, bench_command):
        command = ["audit", "g.npz", "--sensitive", "secret.csv", "--plugin", "gossip.py"]
        result = bench_command(*command, "--attack", "cn,gossip-attack,gossip-refusal")
        assert "node … is too far out" in result.output
        assert self.named(result.output) == [str(node) for node in self.SENSITIVE]

    def test_the_benchmark_keeps_its_plugins_words(self, numbered, bench_command):
        run = ["run", "--dataset", "g.npz", "--plugin", "gossip.py", "--defense", "gossip[refuses=true]"]
        result = bench_command(*run, "--attack", "cn", "--utility", "none", "--seeds", "1", "--json")
        assert self.named(result.stdout) != []


@pytest.mark.usefixtures("in_this_process")
class TestPython:
    OPTIONS = MappingProxyType({"defense": "random[rate=0.2]", "attack": "cn", "utility": "none"})
    LINKS = tuple((i, (i + k) % 40) for i in range(40) for k in (1, 2))
    SENSITIVE = LINKS[::8]

    def sources(self):
        u, v = np.array(self.LINKS).T
        both = np.concatenate([u, v]), np.concatenate([v, u])
        yield nx.Graph(self.LINKS)
        yield sp.csr_array((np.ones(160), both), shape=(40, 40))
        yield pd.DataFrame(self.LINKS, columns=["source", "target"])
        yield Data(edge_index=torch.from_numpy(np.stack(both)), num_nodes=40)
        yield pb.Graph.from_pairs(40, self.LINKS)

    def test_every_type_gives_the_same_answer(self):
        tables = []
        for source in self.sources():
            published = pb.protect(source, self.SENSITIVE, **self.OPTIONS)
            assert type(published) is type(source)
            tables.append(pb.audit(published, self.SENSITIVE, original=source, attack="cn", utility="none"))
        assert all(table.equals(tables[0]) for table in tables)
        assert tables[0]["name"].tolist() == ["cn"]

    def test_report(self, tmp_path):
        graph = nx.Graph(self.LINKS)
        published, report = pb.protect(graph, self.SENSITIVE, return_report=True, **self.OPTIONS)
        assert isinstance(published, nx.Graph)
        assert "strongest attack" in report.summary
        assert report.attacks["auc"].between(0, 1).all()
        assert len(report.most_exposed) == 10
        assert "most exposed" not in str(report)
        assert "<table>" in report._repr_html_()
        report.save(tmp_path / "report.html")
        assert (tmp_path / "report.html").exists()
        defense = pb.audit(published, self.SENSITIVE, attack="cn", return_report=True)
        assert "The original was not given" in defense.summary

    def test_refusals_speak_of_pairs_by_number(self):
        graph = nx.Graph(self.LINKS)
        with pytest.raises(UserError, match="pair 1"):
            pb.protect(graph, [(0, 1), (0, 20)], **self.OPTIONS)
        with pytest.raises(UserError, match="of type str here and int in the graph"):
            pb.protect(graph, [("0", "1")], **self.OPTIONS)

    def test_run(self):
        table = pb.run(dataset="karate", defense="none,random", attack="cn", utility="none", seeds=2)
        chosen = table[(table.metric == "auc") & (table.status == "ok")]
        assert len(chosen) == 4
        own = pb.run(dataset=nx.Graph(self.LINKS), defense="none", attack="cn", utility="none", seeds=[3])
        assert own["seed"].unique().tolist() == [3]


def test_a_perfect_ranking_has_an_interval_all_the_same():
    def finding(auc, error):
        metrics = {"auc": auc, "auc_se": error, "strength": max(auc, 1 - auc), "tpr_at_1pct_fpr": 0.5}
        return AttackFinding.of(Row("k", "attack", "d", "{}", "d", 0, evaluator="cn", metrics=metrics), hidden=30)

    assert (finding(1.0, 0.0).low, finding(1.0, 0.0).high) == (0.9, 1.0)
    assert finding(0.0, 0.0).strength_interval == (0.9, 1.0)
    assert finding(0.8, 0.1).strength_interval == pytest.approx((0.604, 0.996))
    assert finding(0.2, 0.1).strength_interval == pytest.approx((0.604, 0.996))


class TestDivision:
    def test_search_and_report_draw_their_own_negatives(self, random_graph):
        graph = random_graph(200, 800)
        sensitive = graph.edges[::20]
        visible = graph.without_edges(sensitive)
        splits = [release_split(visible, sensitive, graph.ranks, purpose, 0) for purpose in ("search", "report")]
        for family in ("uniform", "degree", "hard"):
            found = [set(ranks_of(split.negatives[family], 200)) for split in splits]
            assert len(found[0]) == len(found[1]) == 200
            # Uniform pairs coincide by chance only: 200 of 19,100, so about 2 in common.
            assert len(found[0] & found[1]) < (20 if family == "uniform" else 200)
            assert not found[0] & set(graph.ranks)
        everything = np.concatenate([ranks_of(pairs, 200) for pairs in splits[0].negatives.values()])
        assert len(np.unique(everything)) == 600

    def test_a_rehearsal_holds_back_links_that_are_not_sensitive(self, random_graph):
        graph = random_graph(60, 200)
        sensitive = graph.edges[:20]
        visible = graph.without_edges(sensitive)
        split = rehearsal_split(visible, sensitive, graph.ranks, "report", 0)
        assert len(split.test_links) == 18
        assert visible.has_edges(split.test_links).all()
        assert not split.visible.has_edges(split.test_links).any()
        assert not graph.has_edges(split.test_non_links).any()
        assert rehearsal_split(random_graph(10, 12), sensitive[:0], graph.ranks[:0], "report", 0) is None

    def test_few_sensitive_links_meet_many_unlinked_pairs(self, random_graph):
        graph = random_graph(100, 300)
        split = release_split(graph.without_edges(graph.edges[:2]), graph.edges[:2], graph.ranks, "report", 0)
        assert {len(pairs) for pairs in split.negatives.values()} == {200}


def test_in_processes_of_their_own(friends):
    """As a user runs it: cells in processes, progress on standard error, results on standard output."""
    command = [str(Path(sys.executable).parent / "ppgsl-bench"), *PROTECT, "--defense", "random"]
    result = subprocess.run(
        [*command, "--attack", "cn", "--utility", "none"],
        cwd=friends,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(friends)},
    )
    assert result.returncode == 0, result.stderr
    assert "publishing with random" in result.stderr
    assert "The strongest attack (cn)" in result.stdout
    assert sorted(path.name for path in friends.iterdir()) == ["friends.csv", "published.csv", "secret.csv"]
