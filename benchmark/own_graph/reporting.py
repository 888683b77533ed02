"""From graphs whose nodes have names to reports: what the commands and the Python functions have in common."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ppgsl_bench.defenses import Defense
from ppgsl_bench.graph import Graph
from ppgsl_bench.own_graph.document import Document, audit_document, protection_document
from ppgsl_bench.own_graph.evaluation import Request, audit_graph, protect_graph
from ppgsl_bench.own_graph.naming import NamedGraph
from ppgsl_bench.own_graph.rendering import as_html, as_text, refuse_unknown_format, rendered
from ppgsl_bench.own_graph.search import Wanted
from ppgsl_bench.own_graph.writing import write_whole
from ppgsl_bench.pairs import Pairs

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Report:
    """What is to be said about a published graph. It may name sensitive links: see `most_exposed`."""

    document: Document

    @property
    def summary(self) -> str:
        """The answer in plain words."""
        return "\n".join(self.document.summary)

    @property
    def attacks(self) -> "pd.DataFrame":
        """One line an attack on the published graph."""
        import pandas as pd

        data = self.document.data
        return pd.DataFrame(data.get("attacks_after", data.get("attacks")))

    @property
    def utility(self) -> "pd.DataFrame":
        """One line a measure."""
        import pandas as pd

        return pd.DataFrame(self.document.data["utility"])

    @property
    def most_exposed(self) -> "pd.DataFrame":
        """The sensitive links that are most exposed."""
        import pandas as pd

        return pd.DataFrame(self.document.data["most_exposed"])

    def save(self, path: str | Path) -> None:
        """Write it to a .html, .md or .json file."""
        refuse_unknown_format(Path(path))
        write_whole(Path(path), rendered(self.document, Path(path).suffix).encode())

    def __str__(self) -> str:
        return as_text(self.document.public())

    def _repr_html_(self) -> str:
        return as_html(self.document.public())


def protected(
    nodes: NamedGraph, sensitive: Pairs, defense: str | Defense, wanted: Wanted, request: Request
) -> tuple[Graph, Report]:
    """The graph to publish, and the report on it."""
    protection = protect_graph(nodes.graph, sensitive, defense, wanted, request)
    return protection.published, Report(protection_document(protection, lambda i: str(nodes.ids[i])))


def audited(published: NamedGraph, sensitive: Pairs, original: NamedGraph | None, request: Request) -> Report:
    """The report on a published graph, whose nodes are those of the original if there is one."""
    findings = audit_graph(published.graph, sensitive, None if original is None else original.graph, request)
    return Report(audit_document(findings, lambda i: str(published.ids[i])))
