"""A sound defense and two sound attacks as text, and ways to break one rule of each.

A break is named after the check that must notice it, and is written as replacements in the text: the table shows what
exactly is wrong. Nothing but that check may fail.
"""

from dataclasses import dataclass, field

DEFENSE = '''"""A made-up defense."""

import numpy as np

from ppgsl_bench.defenses import Defense, Field, register


@register("NAME", version=1)
class Sound(Defense):
    """Drop each link with a given probability."""

    rate: float = Field(0.3, ge=0, le=1, help="probability that a link is dropped")

    sweep = tuple({"rate": rate} for rate in (0.1, 0.3, 0.6))

    def publish(self, graph, sensitive, rng):
        """Keep each link with probability 1 - rate."""
        kept = rng.random(graph.num_edges) >= self.rate
        weights = None if graph.weights is None else graph.weights[kept]
        return graph.with_edges(graph.edges[kept], weights=weights)
'''

ATTACK = '''"""A made-up attack."""

import numpy as np

from ppgsl_bench.attacks import Attack, Field, register


@register("NAME", version=1)
class Sound(Attack):
    """Count common neighbours."""

    rate: float = Field(0.3, ge=0, le=1, help="what a common neighbour counts")

    def score(self, published, pairs, rng):
        """The rate times |N(u) ∩ N(v)|."""
        links = published.adjacency.astype(bool).astype(np.float64)
        scores = self.rate * (links[pairs[:, 0]] * links[pairs[:, 1]]).sum(axis=1)
        return scores
'''

EMBEDDING_ATTACK = '''"""A made-up attack on node vectors."""

import numpy as np

from ppgsl_bench.attacks import EmbeddingAttack, Encoder, Field, register


class Degrees(Encoder):
    """Degrees as vectors of width 1."""

    name = "degrees"
    version = 1

    def embed(self, published, rng):
        """The degree of each node."""
        return published.degrees[:, None].astype(np.float32)


@register("NAME", version=1)
class Sound(EmbeddingAttack):
    """Multiply degrees."""

    encoder_class = Degrees

    def score_embedding(self, embedding, published, pairs, rng):
        """The product of the two vectors."""
        return embedding[pairs, 0].astype(np.float64).prod(axis=1)
'''

REGISTER = '@register("NAME", version=1)\n'
FIELD = "Field(0.3, ge=0, le=1, help="
SIGNATURES = {
    "defense": "def publish(self, graph, sensitive, rng):",
    "attack": "def score(self, published, pairs, rng):",
}
# Only the four dozen nodes of the plain graph, with or without weights, features or labels, have so many links.
PLAIN = "100 < GRAPH.num_edges < 1000"


@dataclass(frozen=True)
class Broken:
    """A break: replacements, and lines that are put in.

    Attributes:
        check: which check must notice.
        replace: what is replaced by what.
        first: lines at the beginning of the method; GRAPH stands for its first argument.
        last: the expression that the method returns instead.
        member: a line of the class.
        imports: a line after the imports.
    """

    check: str
    replace: dict[str, str] = field(default_factory=dict)
    first: str = ""
    last: str = ""
    member: str = ""
    imports: str = ""

    def text(self, sound: str, kind: str) -> str:
        text = sound
        replacements = dict(self.replace)
        if self.last:
            old = text[text.rindex("        return ") :]
            replacements[old] = f"        return {self.last}\n"
        if self.first:
            (line,) = (
                line
                for line in text.splitlines(keepends=True)
                if line.startswith("        kept =") or "links = " in line
            )
            lines = "".join(f"        {part}\n" for part in self.first.splitlines())
            replacements[line] = line + lines
        if self.member:
            class_doc = next(line for line in text[text.index("class Sound") :].splitlines(keepends=True)[1:])
            replacements[class_doc] = f"{class_doc}\n    {self.member}\n"
        if self.imports:
            replacements["import numpy as np\n"] = f"import numpy as np\n{self.imports}\n"
        for old, new in replacements.items():
            assert text.count(old) == 1, f"{self.check}: {old!r} occurs {text.count(old)} times"
            text = text.replace(old, new)
        return text.replace("GRAPH", "graph" if kind == "defense" else "published")


def _common(kind: str) -> list[Broken]:
    signature = SIGNATURES[kind]
    method_doc = (DEFENSE if kind == "defense" else ATTACK).split(signature)[1].splitlines(keepends=True)[1]
    return [
        Broken("has-a-name", {REGISTER: ""}),
        Broken(
            "is-listed-without-an-import", {REGISTER: '@register("NAME", version=VERSION)\n'}, imports="VERSION = 1"
        ),
        Broken("has-a-version", {REGISTER: '@register("NAME", version=0)\n'}),
        Broken("has-a-summary", {'."""\n\n    rate': '"""\n\n    rate'}),
        Broken("names-its-origin", {f'"""A made-up {kind}."""': ""}),
        Broken("documents-its-method", {method_doc: ""}),
        Broken("takes-the-agreed-arguments", {signature: signature.replace("rng)", "rng, more=1)")}),
        Broken("has-valid-defaults", {FIELD: "Field(1.3, ge=0, le=1, help="}),
        Broken("documents-its-parameters", member='extra: int = Field(1, ge=0, help="")'),
        Broken("types-its-parameters", {"rate: float = ": "rate: float | None = "}),
        Broken("bounds-its-parameters", {FIELD: "Field(0.3, help="}),
        Broken("can-be-typed-in", member='note: str = Field("a,b", help="a remark")'),
        Broken("refuses-unknown-parameters", member='model_config = {"extra": "ignore"}'),
        Broken("keys-on-all-parameters", member='extra: int = Field(1, ge=0, exclude=True, help="not in the key")'),
        Broken("is-frozen", member='model_config = {"frozen": False}'),
        Broken(
            "is-picklable",
            member="_tool: object = PrivateAttr(default_factory=lambda: lambda: 0)",
            imports="from pydantic import PrivateAttr",
        ),
        Broken("works-on-a-plain-graph", first=f"if {PLAIN}:\n    raise ValueError('no')"),
        Broken(
            "differs-under-another-seed",
            first="rng.random()\nrng = np.random.default_rng(self.seed)"
            + ("\nkept = rng.random(graph.num_edges) >= self.rate" if kind == "defense" else ""),
            member='seed: int = Field(7, ge=0, help="a seed of its own")',
        ),
        Broken("leaves-shared-generators-alone", first="start(1)", imports="from numpy.random import seed as start"),
        Broken("makes-no-generator-of-its-own", first="np.random.default_rng(7).random()"),
        Broken("prints-nothing", first="print('done')"),
        Broken("writes-no-files", first="Path('left.txt').touch()", imports="from pathlib import Path"),
        Broken("leaves-no-process-behind", first="subprocess.Popen(['sleep', '5'])", imports="import subprocess"),
        Broken("computes-without-warnings", first="np.float64(0) / np.float64(0)"),
        Broken(
            "gives-reasons-as-text",
            {signature: f"def why_not(self, graph):\n        return {{0: ''}}.get(graph.num_edges)\n\n    {signature}"},
        ),
        Broken(
            "leaves-the-graph-alone",
            first="if GRAPH.weights is not None:\n    GRAPH.weights.flags.writeable = True\n    GRAPH.weights[0] += 1",
        ),
        Broken("works-without-features", first=f"if {PLAIN}:\n    GRAPH.x.shape"),
        Broken("works-with-dense-features", first="if GRAPH.x is not None:\n    GRAPH.x.indptr"),
        Broken("works-with-weights", first="if GRAPH.weights is not None:\n    raise ValueError('no')"),
        Broken("works-with-isolated-nodes", first="if GRAPH.num_edges > 100 and not GRAPH.degrees.all():\n    1 / 0"),
        Broken(
            "works-on-several-components",
            first="if GRAPH.num_nodes == 48 and connected_components(GRAPH.adjacency)[0] > 1:\n    1 / 0",
            imports="from scipy.sparse.csgraph import connected_components",
        ),
        Broken("works-on-a-single-link", first="if GRAPH.num_edges == 1:\n    1 / 0"),
        Broken("works-without-links", first="if GRAPH.num_edges == 0:\n    1 / 0"),
        Broken("works-on-a-star", first="if (GRAPH.degrees == 1).sum() == GRAPH.num_nodes - 1:\n    1 / 0"),
        Broken(
            "works-on-a-nearly-complete-graph",
            first="sample_pairs_outside(GRAPH.ranks, GRAPH.num_nodes, 5, np.random.default_rng(GRAPH.num_nodes))",
            imports="from ppgsl_bench.pairs import sample_pairs_outside",
        ),
        Broken("works-where-all-nodes-are-alike", first="if GRAPH.num_edges and not np.ptp(GRAPH.degrees):\n    1 / 0"),
        Broken(
            "stores-no-table-of-all-pairs", first="np.ones((GRAPH.num_nodes, GRAPH.num_nodes), dtype=np.int8).sum()"
        ),
    ]


USES = "uses_sensitive = True"
DROP_AT_FIRST = "kept &= ~np.isin(graph.edges, sensitive[:1]).any(axis=1)"
GUARANTEE = "guarantee = property(lambda self: {})"
WITHOUT_WEIGHTS = {"weights = None if graph.weights is None else graph.weights[kept]": "weights = None"}

BROKEN_DEFENSES = [
    *_common("defense"),
    Broken(
        "repeats-under-the-same-seed",
        first="kept[np.random.default_rng(time.time_ns()).random(len(kept)) < 0.2] = False",
        imports="import time",
    ),
    Broken(
        "keeps-no-memory",
        first="self._calls += 1\nkept[: 9 * (self._calls - 1)] = False",
        member="_calls: int = PrivateAttr(0)",
        imports="from pydantic import PrivateAttr",
    ),
    Broken("leaves-the-pairs-alone", first=f"sensitive.sort(axis=1)\n{DROP_AT_FIRST}", member=USES),
    Broken("publishes-a-graph", last="graph.edges[kept]"),
    Broken(
        "keeps-the-nodes",
        last="Graph.from_pairs(graph.num_nodes + 1, graph.edges[kept])",
        imports="from ppgsl_bench.graph import Graph",
    ),
    Broken(
        "keeps-features-and-labels",
        last="Graph.from_pairs(graph.num_nodes, graph.edges[kept], weights=weights, x=graph.x)",
        imports="from ppgsl_bench.graph import Graph",
    ),
    Broken(
        "keeps-sparse-features-sparse",
        last="replace(graph.with_edges(graph.edges[kept], weights=weights), "
        "x=graph.x.toarray() if hasattr(graph.x, 'toarray') else graph.x)",
        imports="from dataclasses import replace",
    ),
    Broken(
        "hides-added-links-among-weights",
        first="added = sample_pairs_outside(graph.ranks, graph.num_nodes, min(4, graph.num_non_edges), rng)",
        last="graph.with_edges(graph.edges[kept], added, weights=None if weights is None else "
        "np.concatenate([weights, np.full(len(added), 99.0)]))",
        imports="from ppgsl_bench.pairs import sample_pairs_outside",
    ),
    Broken(
        "traces-in-plain-arrays",
        last="Publication(graph.with_edges(graph.edges[kept], weights=weights), {'kept': np.ones((2, 2))})",
        imports="from ppgsl_bench.defenses import Publication",
    ),
    Broken("sees-only-what-it-declares", first="kept[: 3 * len(sensitive)] = False"),
    Broken("uses-what-it-declares", member=USES),
    Broken(
        "publishes-no-sensitive-link",
        WITHOUT_WEIGHTS,
        member=USES,
        last="graph.with_edges(graph.edges[kept], sensitive)",
    ),
    Broken("works-without-sensitive-links", first="kept &= ~(graph.edges == sensitive[0, 0]).any(axis=1)", member=USES),
    Broken("works-without-labels", first="if graph.x is not None:\n    graph.y.max()"),
    Broken("works-with-unknown-labels", first="if graph.y is not None:\n    np.bincount(graph.y)"),
    Broken("has-a-sweep", {'    sweep = tuple({"rate": rate} for rate in (0.1, 0.3, 0.6))\n': ""}),
    Broken("sweeps-over-valid-settings", {"(0.1, 0.3, 0.6)": "(0.1, 0.3, 1.6)"}),
    Broken("changes-along-the-sweep", {">= self.rate": ">= 0.3"}),
    Broken("sweeps-from-weak-to-strong", {"(0.1, 0.3, 0.6)": "(0.6, 0.3, 0.1)"}),
    Broken(
        "states-its-guarantee-in-full",
        member=GUARANTEE.format("Guarantee('edge-dp', 1 - self.rate, '')"),
        imports="from ppgsl_bench.defenses import Guarantee",
    ),
    Broken(
        "tightens-its-guarantee-along-the-sweep",
        WITHOUT_WEIGHTS,
        member=GUARANTEE.format("Guarantee.edge_dp(1.0)"),
        imports="from ppgsl_bench.defenses import Guarantee",
    ),
    Broken(
        "publishes-no-weights-under-a-guarantee",
        member=GUARANTEE.format("Guarantee.edge_dp(1 - self.rate)"),
        imports="from ppgsl_bench.defenses import Guarantee",
    ),
]

BROKEN_ATTACKS = [
    *_common("attack"),
    Broken(
        "repeats-under-the-same-seed",
        last="scores + 0.1 * np.random.default_rng(time.time_ns()).random(len(scores))",
        imports="import time",
    ),
    Broken(
        "keeps-no-memory",
        first="self._calls += 1",
        last="scores + self._calls",
        member="_calls: int = PrivateAttr(0)",
        imports="from pydantic import PrivateAttr",
    ),
    Broken("leaves-the-pairs-alone", first="pairs.sort(axis=1)"),
    Broken("scores-every-pair", last="scores[:-1]"),
    Broken("scores-are-numbers", last="scores > 1"),
    Broken("scores-are-finite", last="np.where(np.arange(len(scores)) == 3, np.nan, scores)"),
    Broken("scores-either-order-of-ends-alike", last="scores + 0.1 * (pairs[:, 0] < pairs[:, 1])"),
    Broken("scores-any-order-of-pairs-alike", last="scores + 0.001 * np.arange(len(scores))"),
    Broken("scores-a-single-pair", last="scores / (len(scores) != 1 or np.nan)"),
    Broken(
        "scores-a-repeated-pair-alike",
        first="first = np.unique(pairs, axis=0, return_index=True)[1]",
        last="scores * np.isin(np.arange(len(scores)), first)",
    ),
    Broken(
        "looks-at-no-labels",
        last="scores if published.y is None else scores + (published.y[pairs[:, 0]] == published.y[pairs[:, 1]])",
    ),
    Broken("reads-nothing-into-node-numbers", last="scores + 0.001 * pairs.sum(axis=1)"),
    Broken("finds-planted-links", last="-scores"),
    Broken("states-its-knowledge", member='knowledge = ""'),
]

BROKEN_EMBEDDING_ATTACKS = [
    Broken("names-its-encoder", {'name = "degrees"': 'name = ""'}),
    Broken(
        "passes-parameters-to-its-encoder",
        {"    version = 1\n": '    version = 1\n    width: int = Field(1, ge=1, help="width")\n'},
    ),
    Broken("embeds-every-node", {"np.float32": "np.float64"}),
]
