"""How fast PPGSL is: against the plain version, and as graphs grow.

python tests/perf/speed_ppgsl.py ratios     Cora and an Erdős–Rényi graph of 20,000 nodes, both versions in turn
python tests/perf/speed_ppgsl.py growth     shortened trainings from 10,000 to 500,000 nodes, fitted exponents
python tests/perf/speed_ppgsl.py train --nodes 100000 --steps 500 --updates 100     one training on such a graph
python tests/perf/speed_ppgsl.py page --markdown docs/ppgsl-speed.md     the first two, as a page

Times are those of the machine it runs on; what carries over is the ratios and exponents.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "defenses"))

from plain_ppgsl import PlainPPGSL

from ppgsl_bench.datasets import Sources
from ppgsl_bench.datasets import registry as datasets
from ppgsl_bench.defenses.ppgsl import PPGSL, GraphLearner, candidate_pairs
from ppgsl_bench.defenses.surrogate import SurrogateAttacker
from ppgsl_bench.link_loss import draw_non_links
from ppgsl_bench.measure import measured
from ppgsl_bench.message_passing import input_features
from ppgsl_bench.split import Split, make_split

DATA = Path(os.environ.get("PPGSL_BENCH_DATA") or Path(__file__).parents[3] / "shared" / "datasets")
# What the paper's appendix counts for one training with mu = 50.
PAPER_STEPS, PAPER_UPDATES = 500, 1000

INTRODUCTION = """# Speed of `ppgsl`

Made by `python tests/perf/speed_ppgsl.py page` with {threads} threads. The first table sets the plain version of the
tests (PyG's GCNConv, dense features, autograd through everything) against the product, both in turn on the same graph,
candidates and number of updates and steps; a whole training is 500 learner steps and 1,000 surrogate updates. The
second follows shortened trainings ({steps} learner steps, {updates} surrogate updates) on Erdős–Rényi graphs of mean
degree 10 with k = 1; `gigabytes` is what a training needs beyond libraries and graph. Whole trainings of all defenses:
[costs](costs.md)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["ratios", "growth", "train", "page"])
    parser.add_argument("--markdown", type=Path, help="where `page` writes to")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--nodes", type=int, nargs="+", help="sizes of Erdős–Rényi graphs of mean degree 10")
    parser.add_argument("--k", type=float, default=1)
    parser.add_argument("--mu", type=int, default=50)
    parser.add_argument("--steps", type=int, default=6, help="learner steps")
    parser.add_argument("--updates", type=int, default=12, help="surrogate updates a retraining")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.what == "train":
        say(json.dumps(training((options.nodes or [100_000])[0], options)))
        return
    parts = []
    if options.what != "growth":
        graphs = [("cora", {}), *(("er", {"n": n, "degree": 10}) for n in options.nodes or [20_000])]
        parts.append(tabulate([compare(*graph, options) for graph in graphs], headers="keys", tablefmt="github"))
        say(parts[-1])
    if options.what != "ratios":
        parts.append(growth(options.nodes or [10_000, 30_000, 100_000, 300_000, 500_000], options))
        say(parts[-1])
    if options.markdown:
        introduction = INTRODUCTION.format(threads=options.threads, steps=options.steps, updates=options.updates)
        options.markdown.write_text("\n\n".join([introduction, *parts]) + "\n", encoding="utf-8")


def compare(name: str, parameters: dict[str, object], options: argparse.Namespace) -> dict[str, object]:
    """Time a surrogate update and a learner step of both versions, in turn, on the same graph and candidates."""
    split = load(name, parameters)
    rng = np.random.default_rng(0)
    pairs = candidate_pairs(split.visible, split.sensitive, options.k, rng)
    attacker = SurrogateAttacker("gcn", "cos", input_features(split.visible), rng, rate=0.01, tolerance=0)
    fast = GraphLearner(split.visible, split.sensitive, pairs, alpha=0.03)
    plain = PlainPPGSL(split.visible, split.sensitive, pairs, alpha=0.03)
    plain.initialise()
    attacker.train(fast.links("gcn"), 2)
    for _ in range(2):
        plain.train(draw_non_links(split.visible, split.visible.num_edges, rng))
    fast.step(attacker, 0.5)
    plain.step()
    times: dict[str, list[float]] = {}
    for _ in range(options.updates):
        # A training builds its matrix once; here each update is charged with a tenth of that.
        clock(times, "fast update", lambda: attacker.train(fast.links("gcn"), 10), per=10)
        clock(times, "plain update", lambda: plain.train(draw_non_links(split.visible, len(split.visible.edges), rng)))
    for _ in range(options.steps):
        clock(times, "fast step", lambda: fast.step(attacker, 0.5))
        clock(times, "plain step", plain.step)
    median = {what: float(np.median(values)) for what, values in times.items()}
    fast_total, plain_total = (
        PAPER_UPDATES * median[f"{which} update"] + PAPER_STEPS * median[f"{which} step"] for which in ("fast", "plain")
    )
    return {
        "graph": split.visible.name,
        "plain update": f"{median['plain update'] * 1e3:.0f} ms",
        "fast update": f"{median['fast update'] * 1e3:.1f} ms",
        "plain step": f"{median['plain step'] * 1e3:.0f} ms",
        "fast step": f"{median['fast step'] * 1e3:.1f} ms",
        "whole training": f"{plain_total:.0f} s → {fast_total:.0f} s",
        "ratio": f"{plain_total / fast_total:.1f}×",
    }


def clock(times: dict[str, list[float]], what: str, work: Callable[[], object], per: int = 1) -> None:
    started = time.perf_counter()
    work()
    times.setdefault(what, []).append((time.perf_counter() - started) / per)


def growth(sizes: list[int], options: argparse.Namespace) -> str:
    """Time and peak memory of a shortened training in a process of its own, for each size, and fitted exponents."""
    rows = []
    for nodes in sizes:
        command = [sys.executable, __file__, "train", "--nodes", str(nodes), "--k", str(options.k)]
        command += ["--mu", str(options.mu), "--steps", str(options.steps), "--updates", str(options.updates)]
        output = subprocess.run([*command, "--threads", str(options.threads)], check=True, capture_output=True)
        rows.append(json.loads(output.stdout))
        say(json.dumps(rows[-1]))
    exponents = []
    for what in ("seconds", "gigabytes"):
        exponent = np.polyfit(np.log(sizes), np.log([row[what] for row in rows]), 1)[0]
        exponents.append(f"{what} grow with the number of nodes to the power {exponent:.2f}")
    return tabulate(rows, headers="keys", tablefmt="github") + f"\n\nFitted: {', '.join(exponents)}."


def training(nodes: int, options: argparse.Namespace) -> dict[str, float]:
    """One training; memory is what it needs beyond the libraries and the split."""
    small, split = (load("er", {"n": n, "degree": 10}) for n in (1000, nodes))
    compiling = PPGSL(learner_steps=1, surrogate_updates=1)
    compiling.publish(small.visible, small.sensitive, np.random.default_rng(0))
    defense = PPGSL(k=options.k, mu=options.mu, learner_steps=options.steps, surrogate_updates=options.updates)
    publication, cost = measured(lambda: defense.publish(split.visible, split.sensitive, np.random.default_rng(0)))
    return {
        "nodes": nodes,
        "links": split.visible.num_edges,
        "steps": options.steps,
        "updates": int(publication.trace["surrogate_updates"][-1]),
        "seconds": round(cost.wall_seconds, 2),
        "gigabytes": round(cost.peak_host_bytes / 1e9, 3),
    }


def load(name: str, parameters: dict[str, object]) -> Split:
    return make_split(datasets.get(name)(**parameters).load(Sources(data_dirs=(DATA,), offline=True)), 0)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
