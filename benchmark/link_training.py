"""The training loop that link-trained encoders share: the graph-autoencoder attacks and the link-prediction task."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch

from ppgsl_bench.graph import Graph
from ppgsl_bench.link_loss import draw_non_links, link_loss
from ppgsl_bench.message_passing import Encoder, Features, SparseMatrix
from ppgsl_bench.pairs import Pairs

View: TypeAlias = tuple[Pairs, SparseMatrix]


def train_on_links(
    encoder: Encoder,
    features: Features,
    graph: Graph,
    rng: np.random.Generator,
    *,
    view: Callable[[], View],
    epochs: int,
    learning_rate: float,
) -> None:
    """Fit the encoder so that inner products tell links from unlinked pairs, by Adam, one full-batch step an epoch.

    A graph without links teaches nothing: the weights stay as they are.

    Args:
        encoder: changed in place.
        features: its input.
        graph: where unlinked pairs come from, afresh in each epoch, as many as there are links to learn.
        rng: draws the unlinked pairs.
        view: called once an epoch; the links to learn, and the adjacency that messages travel along.
        epochs: number of steps. The last step's weights stand: stopping where hidden links score best would be
            looking at them.
        learning_rate: step size of Adam.
    """
    optimizer = torch.optim.Adam(encoder.parameters(), lr=learning_rate)
    for _ in range(epochs if graph.num_edges else 0):
        links, adjacency = view()
        non_links = draw_non_links(graph, len(links), rng)
        optimizer.zero_grad()
        loss = link_loss(encoder(adjacency, features), links, non_links)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
