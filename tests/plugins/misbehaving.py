"""Plugins that do everything wrong, one thing each."""

import errno
import os
import subprocess
import sys
import time
from typing import ClassVar

import networkx as nx
import numpy as np

from ppgsl_bench.attacks import Attack, Field
from ppgsl_bench.attacks import register as register_attack
from ppgsl_bench.defenses import Defense
from ppgsl_bench.defenses import register as register_defense
from ppgsl_bench.graph import Graph


@register_attack("bad-raises", version=1)
class Raises(Attack):
    """Raises."""

    def score(self, published, pairs, rng):
        raise ValueError("the reactor is leaking")


@register_attack("bad-hangs", version=1)
class Hangs(Attack):
    """Never returns, and starts a process that would outlive it."""

    pidfile: str = Field("", help="where to write the pid of the process it starts")

    def score(self, published, pairs, rng):
        child = subprocess.Popen(["sleep", "600"])
        if self.pidfile:
            with open(self.pidfile, "w") as file:
                file.write(str(child.pid))
        while True:
            time.sleep(1)


@register_attack("bad-allocates", version=1)
class Allocates(Attack):
    """Allocates without end."""

    def score(self, published, pairs, rng):
        hoard = []
        while True:
            hoard.append(np.ones(2**21))


@register_attack("bad-prints", version=1)
class Prints(Attack):
    """Writes to stdout, in Python and below it."""

    def score(self, published, pairs, rng):
        print("noise from print")
        sys.stdout.flush()
        os.write(1, b"noise from the descriptor\n")
        return np.zeros(len(pairs))


@register_attack("bad-exits", version=1)
class Exits(Attack):
    """Leaves without a word."""

    def score(self, published, pairs, rng):
        os._exit(7)


@register_attack("bad-nan", version=1)
class NotANumber(Attack):
    """Returns NaN scores."""

    def score(self, published, pairs, rng):
        scores = np.zeros(len(pairs))
        scores[3] = np.nan
        return scores


@register_attack("bad-count", version=1)
class WrongCount(Attack):
    """Returns the wrong number of scores."""

    def score(self, published, pairs, rng):
        return np.zeros(len(pairs) - 1)


@register_attack("bad-writes-input", version=1)
class WritesInput(Attack):
    """Tries to change the graph it was given."""

    def score(self, published, pairs, rng):
        published.edges[0] = 0
        return np.zeros(len(pairs))


@register_defense("bad-loops", version=1)
class Loops(Defense):
    """Publishes a graph with a loop."""

    def publish(self, graph, sensitive, rng):
        return graph.with_edges(graph.edges, np.array([[2, 2]]))


@register_defense("bad-nodes", version=1)
class OtherNodes(Defense):
    """Publishes a graph on other nodes."""

    def publish(self, graph, sensitive, rng):
        return Graph(num_nodes=graph.num_nodes + 1, edges=graph.edges)


@register_defense("bad-type", version=1)
class OtherType(Defense):
    """Publishes something else."""

    def publish(self, graph, sensitive, rng):
        return nx.path_graph(3)


@register_defense("sees-sensitive", version=1)
class Sees(Defense):
    """Publishes a link for each sensitive pair that it is shown, though it does not declare that it looks."""

    def publish(self, graph, sensitive, rng):
        return graph.with_edges(graph.edges, sensitive)


@register_defense("refuses", version=1)
class Refuses(Defense):
    """Cannot work on anything."""

    def why_not(self, graph):
        return "it is too small for me"

    def publish(self, graph, sensitive, rng):
        raise AssertionError("must not be called")


@register_attack("bad-fills-disk", version=1)
class FillsDisk(Attack):
    """Runs into a full disk."""

    def score(self, published, pairs, rng):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@register_attack("long-winded", version=1)
class LongWinded(Attack):
    """Does nothing wrong: it notes how long it was asked to take, and on how many nodes."""

    steps: int = Field(1000, ge=1, help="how long it takes")
    scale: int = Field(1, help="anything else")
    notes: str = Field("", help="where to write them")

    brief: ClassVar = {"steps": 1}

    def score(self, published, pairs, rng):
        with open(self.notes, "a") as file:
            file.write(f"{published.num_nodes} nodes, {self.steps} steps, scale {self.scale}\n")
        return np.zeros(len(pairs))
