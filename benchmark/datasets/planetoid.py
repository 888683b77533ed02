"""Citation networks in the files of Planetoid (Yang, Cohen, Salakhutdinov, ICML 2016).

The files are Python 2 pickles. Their checksums are verified before anything is unpickled, and even then the unpickler
knows arrays, CSR matrices and lists only. Links, features and labels equal those of PyG's `Planetoid`; features keep
their raw values (no row normalisation) and stay sparse.
"""

import pickle
from collections import defaultdict
from io import BytesIO
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ppgsl_bench.datasets import Dataset, Layout, RawFile, Sources, register
from ppgsl_bench.datasets.sources import fingerprint_of, read_raw
from ppgsl_bench.graph import Graph

_URL = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data"
_FILES = "files of kimiyoung/planetoid, unchanged"
_LICENCE = "MIT for the files (kimiyoung/planetoid); none stated for the citation data"


def _layout(folder: str, **pins: str) -> tuple[Layout, ...]:
    """The eight files of one network; `test_index` stands for the file `ind.*.test.index`."""
    names = {f"ind.{folder.lower()}.{part.replace('_', '.')}": sha256 for part, sha256 in pins.items()}
    return (tuple(RawFile(f"{folder}/raw/{name}", sha256, url=f"{_URL}/{name}") for name, sha256 in names.items()),)


class Planetoid(Dataset):
    """Base of the three networks."""

    def fingerprint(self, sources: Sources) -> str:
        """Digest of the eight raw files."""
        return fingerprint_of(self, sources)

    def load(self, sources: Sources) -> Graph:
        """Read and assemble the raw files."""
        raw = {name.split(".", 2)[2]: data for name, data in read_raw(self, sources).items()}
        objects = {part: restricted_unpickle(raw[part]) for part in ("allx", "ally", "tx", "ty", "graph")}
        test_index = np.array(raw["test.index"].split(), dtype=np.int64)
        x, y = assemble(objects, test_index)
        neighbours: dict[int, list[int]] = objects["graph"]
        sizes = np.fromiter((len(n) for n in neighbours.values()), np.int64, len(neighbours))
        pairs = np.stack(
            [
                np.repeat(np.fromiter(neighbours, np.int64, len(neighbours)), sizes),
                np.concatenate([np.array(n, dtype=np.int64) for n in neighbours.values()]),
            ],
            axis=1,
        )
        return Graph.from_pairs(len(y), pairs, x=x, y=y, name=self.label, loops="drop", duplicates="merge")


def assemble(objects: dict[str, Any], test_index: NDArray[np.int64]) -> tuple[sp.csr_array, NDArray[np.int64]]:
    """Features and labels of all nodes in node order.

    `allx` and `ally` hold the nodes before the test nodes, `tx` and `ty` the test nodes in the order of `test_index`,
    which shuffles a range of ids. In CiteSeer that range has gaps: 15 nodes with links but without words or topic. They
    get no features and, as in PyG, label 0.
    """
    first, last = int(test_index.min()), int(test_index.max())
    slot = test_index - first
    # Row i of `tx` belongs to the i-th test id: a selection matrix moves it there, and leaves gaps empty.
    move = sp.csr_array(
        (np.ones(len(slot), np.float32), (slot, np.arange(len(slot)))), shape=(last - first + 1, len(slot))
    )
    x = sp.csr_array(sp.vstack([sp.csr_array(objects["allx"]), move @ sp.csr_array(objects["tx"])], format="csr"))
    x.eliminate_zeros()
    one_hot = np.zeros((x.shape[0], objects["ally"].shape[1]))
    one_hot[:first] = objects["ally"]
    one_hot[test_index] = objects["ty"]
    return x, one_hot.argmax(axis=1)


def restricted_unpickle(data: bytes) -> Any:
    """Unpickle arrays, CSR matrices, lists and dictionaries of lists; anything else is an error."""
    return _RestrictedUnpickler(BytesIO(data), encoding="latin1").load()


class _RestrictedUnpickler(pickle.Unpickler):
    # By the names that Python, NumPy and SciPy had when the files were written: no deprecated alias is imported.
    known: ClassVar[dict[tuple[str, str], Any]] = {
        ("__builtin__", "list"): list,
        ("collections", "defaultdict"): defaultdict,
        ("numpy", "dtype"): np.dtype,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("scipy.sparse.csr", "csr_matrix"): sp.csr_matrix,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.known:
            raise pickle.UnpicklingError(f"a Planetoid file may not refer to {module}.{name}")
        return self.known[module, name]


@register("cora", version=1, tags=("paper",))
class Cora(Planetoid):
    """2,708 machine-learning papers, 5,278 citations; 1,433 binary words, 7 topics."""

    origin = f"Sen et al., Collective Classification in Network Data, AI Magazine 29(3), 2008; {_FILES}"
    licence = _LICENCE
    layouts = _layout(
        "Cora",
        allx="9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        ally="2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        graph="58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        test_index="297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
        tx="b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        ty="41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        x="23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        y="94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    )


@register("citeseer", version=1, tags=("paper",))
class CiteSeer(Planetoid):
    """3,327 papers, 4,552 citations, some isolated; 3,703 binary words, 6 topics."""

    origin = f"Sen et al., Collective Classification in Network Data, AI Magazine 29(3), 2008; {_FILES}"
    licence = _LICENCE
    layouts = _layout(
        "CiteSeer",
        allx="2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        ally="f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        graph="d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        test_index="2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
        tx="539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        ty="55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        x="d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
        y="8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
    )


@register("pubmed", version=1, tags=("paper",))
class PubMed(Planetoid):
    """19,717 diabetes papers, 44,324 citations; 500 TF-IDF values, 3 classes."""

    origin = f"Namata et al., Query-driven Active Surveying for Collective Classification, MLG 2012; {_FILES}"
    licence = _LICENCE
    layouts = _layout(
        "PubMed",
        allx="508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        ally="0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        graph="5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        test_index="b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
        tx="4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        ty="ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        x="fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        y="e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
    )
