"""Political blogs of 2005 (Adamic and Glance, LinkKDD 2005)."""

from io import BytesIO

import numpy as np

from ppgsl_bench.datasets import Dataset, RawFile, Sources, register
from ppgsl_bench.datasets.sources import fingerprint_of, read_raw
from ppgsl_bench.graph import Graph


@register("polblogs", version=1, tags=("paper",))
class PolBlogs(Dataset):
    """1,490 political blogs (266 without links), 16,715 hyperlinks; no features, 2 camps."""

    origin = (
        "Adamic and Glance, The Political Blogosphere and the 2004 U.S. Election, LinkKDD 2005; converted from "
        "polblogs.gml (node k becomes k - 1, repeated links removed, sorted by source and target; the value of each "
        "node is its label). The archive that PyG downloads has no published checksum, so it is not fetched"
    )
    licence = "none stated; cite the paper"
    layouts = (
        (
            RawFile("PolBlogs/raw/adjacency.tsv", "aadf21706bc68886c4493d79026520974ccb5749d5c1aaaefab2080d2fc6e39c"),
            RawFile("PolBlogs/raw/labels.tsv", "6d53ecdabe0c41da893d7115f4d1cf8fd5488e5d3b9998a2f070e1dbfeaee896"),
        ),
    )

    def fingerprint(self, sources: Sources) -> str:
        """Digest of the two raw files."""
        return fingerprint_of(self, sources)

    def load(self, sources: Sources) -> Graph:
        """Drop the direction of the links and the three self-loops; keep all nodes."""
        raw = read_raw(self, sources)
        pairs = np.loadtxt(BytesIO(raw["adjacency.tsv"]), dtype=np.int64, usecols=(0, 1))
        labels = np.loadtxt(BytesIO(raw["labels.tsv"]), dtype=np.int64)
        return Graph.from_pairs(len(labels), pairs, y=labels, name=self.label, loops="drop", duplicates="merge")
