"""What a flipped link does to the spectrum of a random walk, and so to what an embedding of given rank loses.

DeepWalk with window T and d dimensions keeps the d largest of the squares f(λ)², f(λ) = λ + λ² + … + λ^T, over the
generalised eigenvalues A u = λ D u; the loss L is the root of the sum of the others (Bojchevski and Günnemann,
"Adversarial Attacks on Node Embeddings via Graph Poisoning", ICML 2019). A flip of the link (i, j) moves an eigenvalue,
to first order, by Δλ = ±(2 u_i u_j − λ (u_i² + u_j²)), + for an addition and − for a deletion.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ppgsl_bench.pairs import Pairs

Floats = NDArray[np.float64]

# Leading eigenpairs beyond the rank that a sketch holds exactly, so that a flip can change which ones lead.
_SPARE_PAIRS = 16
# Random vectors for everything below the leading eigenpairs.
_PROBES = 128
# Relative accuracy of the leading eigenpairs of a sketch. On PubMed, losses after a flip then correlate by 0.97 with
# those at 1e-4, in a tenth of the time.
_TOLERANCE = 1e-2


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenpairs of A u = λ D u, with uᵀ D u = 1, and a sketch of those that were not computed.

    Attributes:
        values: the K leading eigenvalues, or all of them.
        vectors: their eigenvectors, shape [N, K].
        rank: how many of the largest f(λ)² an embedding keeps.
        window: number T of powers.
        remainder: the sum of f(λ)² over all other eigenvalues.
        probes, responses: Z and (h'(A) Z) of the sketch, shape [N, p], p = 0 if no eigenvalue is missing; their product
            estimates by how much a changed entry of A moves the remainder, h = f².
        own_responses: the same for a changed entry of D, shape [N].
    """

    values: Floats
    vectors: Floats
    rank: int
    window: int
    remainder: float
    probes: Floats
    responses: Floats
    own_responses: Floats

    @property
    def loss(self) -> float:
        """L before any flip."""
        squares = np.sort(power_sum(self.values, self.window) ** 2)
        kept = min(self.rank, len(squares))
        return float(np.sqrt(max(squares[: len(squares) - kept].sum() + self.remainder, 0.0)))

    def losses_after(self, pairs: Pairs, change: NDArray[np.floating]) -> Floats:
        """L after each of the flips alone; `change` is +1 where a link is added and -1 where one is removed."""
        remainder = self.remainder + change * self._remainder_slope(pairs)
        kept = min(self.rank, len(self.values))
        squares = _smallest_squares(self.values, self.vectors, pairs, change, kept, self.window)
        losses: Floats = np.sqrt(np.maximum(squares + remainder, 0.0))
        return losses

    def after(self, pairs: Pairs, change: NDArray[np.floating]) -> "Spectrum":
        """The spectrum after all of the flips, to first order: eigenvalues move, eigenvectors stay."""
        left, right = self.vectors[pairs[:, 0]], self.vectors[pairs[:, 1]]
        moves = 2 * left * right - self.values * (left**2 + right**2)
        return replace(
            self,
            values=self.values + change @ moves,
            remainder=self.remainder + float(change @ self._remainder_slope(pairs)),
        )

    def _remainder_slope(self, pairs: Pairs) -> Floats:
        """Σ h'(λ) (2 u_i u_j − λ (u_i² + u_j²)) over the eigenvalues that are not held, as far as the probes know."""
        i, j = pairs.T
        slope = np.zeros(len(pairs))
        for z, response in zip(self.probes.T, self.responses.T, strict=True):
            slope += z[i] * response[j] + z[j] * response[i]
        slope /= max(self.probes.shape[1], 1)
        slope -= self.own_responses[i] + self.own_responses[j]
        return slope


def power_sum(values: Floats, window: int) -> Floats:
    """f(λ) = λ + λ² + … + λ^T by Horner's rule (the quotient of the geometric series is 0/0 at λ = 1)."""
    result = np.zeros_like(values)
    for _ in range(window):
        result = (result + 1) * values
    return result


def exact_spectrum(adjacency: sp.csr_array, rank: int, window: int) -> Spectrum:
    """All eigenpairs, by a dense decomposition of D^(-1/2) A D^(-1/2), one connected component at a time.

    Components share the eigenvalue 1; taken together, its eigenvectors would be an arbitrary rotation. No row of
    `adjacency` may be empty.
    """
    num_nodes = adjacency.shape[0]
    scale = 1 / np.sqrt(_row_sums(adjacency))
    values = np.empty(num_nodes)
    vectors = np.zeros((num_nodes, num_nodes))
    count, component = connected_components(adjacency, directed=False)
    order = np.argsort(component, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(component, minlength=count))])
    for start, stop in itertools.pairwise(bounds):
        nodes = order[start:stop]
        block = adjacency[nodes][:, nodes].toarray().astype(np.float64) * np.outer(scale[nodes], scale[nodes])
        values[start:stop], columns = scipy.linalg.eigh(block, driver="evd", overwrite_a=True, check_finite=False)
        vectors[nodes, start:stop] = columns * scale[nodes, None]
    none = np.zeros((num_nodes, 0))
    return Spectrum(values, vectors, rank, window, 0.0, none, none, np.zeros(num_nodes))


def sketched_spectrum(
    adjacency: sp.csr_array, rank: int, window: int, rng: np.random.Generator, probes: int = _PROBES
) -> Spectrum:
    """The leading eigenpairs by Lanczos iterations, the rest through random probes: O(entries · (rank + probes · T)).

    Over the eigenvalues that are not held, L needs tr h(M) and its derivative, h = f², M = D^(-1/2) A D^(-1/2), both
    of which are polynomials of M. With random signs z, less their part along the leading eigenvectors, E[z zᵀ h'(M)]
    is h'(M) on the rest of the space (Hutchinson 1990), without bias and at the price of 2T sparse products a probe.
    No row of `adjacency` may be empty.
    """
    num_nodes = adjacency.shape[0]
    root = np.sqrt(_row_sums(adjacency))
    normalised = sp.csr_array(sp.diags_array(1 / root) @ adjacency.astype(np.float64) @ sp.diags_array(1 / root))
    values, columns = _leading_pairs(adjacency, normalised, root, rank + _SPARE_PAIRS, rng)
    z = rng.choice([-1.0, 1.0], size=(num_nodes, probes))
    z -= columns @ (columns.T @ z)
    powers = _sum_of_powers(normalised, z, window)
    derived = 2 * _sum_of_powers(normalised, _derived_sum_of_powers(normalised, z, window), window)
    own = np.einsum("np,np->n", z, normalised @ derived) / probes
    return Spectrum(
        values,
        columns / root[:, None],
        rank,
        window,
        float((powers**2).sum() / probes),
        z / root[:, None],
        derived / root[:, None],
        own / root**2,
    )


def _leading_pairs(
    adjacency: sp.csr_array, normalised: sp.csr_array, root: Floats, count: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """The largest eigenvalues of the normalised adjacency and orthonormal eigenvectors.

    The eigenvalue 1 of each component has the known vector D^(1/2) 1. Lanczos iterations, which are slow to find
    repeated eigenvalues, are left with the others.
    """
    num_nodes = len(root)
    count = min(count, num_nodes - 1)
    components, component = connected_components(adjacency, directed=False)
    volume = np.bincount(component, weights=root**2, minlength=components)
    largest = np.argsort(-volume, kind="stable")[:count]
    known = np.zeros((num_nodes, len(largest)))
    for column, label in enumerate(largest):
        inside = component == label
        known[inside, column] = root[inside] / np.sqrt(volume[label])
    missing = count - len(largest)
    if missing == 0:
        return np.ones(count), known

    def without_known(x: Floats) -> Floats:
        # Moves the eigenvalues of what is known from 1 to -1, below all others.
        shifted: Floats = normalised @ x - 2 * (known @ (known.T @ x))
        return shifted

    operator = LinearOperator((num_nodes, num_nodes), matvec=without_known, dtype=np.float64)
    start = rng.standard_normal(num_nodes)
    try:
        values, columns = eigsh(operator, k=missing, which="LA", tol=_TOLERANCE, v0=start)
    except ArpackNoConvergence as partial:
        values, columns = partial.eigenvalues, partial.eigenvectors
    return np.concatenate([np.ones(len(largest)), values]), np.concatenate([known, columns], axis=1)


def _sum_of_powers(matrix: sp.csr_array, z: Floats, window: int) -> Floats:
    """(M + M² + … + M^T) z."""
    result = np.zeros_like(z)
    for _ in range(window):
        result = matrix @ (result + z)
    return result


def _derived_sum_of_powers(matrix: sp.csr_array, z: Floats, window: int) -> Floats:
    """f'(M) z = (I + 2M + … + T M^(T-1)) z."""
    result = window * z
    for factor in range(window - 1, 0, -1):
        result = matrix @ result + factor * z
    return result


def _row_sums(adjacency: sp.csr_array) -> Floats:
    return np.asarray(adjacency.sum(axis=1), dtype=np.float64).ravel()


@njit(cache=True)
def _smallest_squares(values: Floats, vectors: Floats, pairs: Pairs, change: Floats, rank: int, window: int) -> Floats:
    """Sum of all but the `rank` largest f(λ')² after each flip."""
    result = np.zeros(len(pairs))
    squares = np.empty(len(values))
    left_out = len(values) - rank
    if left_out == 0:
        return result
    for p in range(len(pairs)):
        left, right = vectors[pairs[p, 0]], vectors[pairs[p, 1]]
        for k in range(len(values)):
            moved = values[k] + change[p] * (
                2 * left[k] * right[k] - values[k] * (left[k] * left[k] + right[k] * right[k])
            )
            power = 0.0
            for _ in range(window):
                power = (power + 1) * moved
            squares[k] = power * power
        result[p] = np.partition(squares, left_out - 1)[:left_out].sum()
    return result
