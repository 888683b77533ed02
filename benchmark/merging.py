"""Bringing rows of several machines together."""

from dataclasses import dataclass, replace

from ppgsl_bench.store import DamagedObjectError, Results


@dataclass(frozen=True)
class MergeReport:
    """What became of the rows of one folder."""

    added: int = 0
    known: int = 0
    damaged: int = 0
    differing: int = 0


def merge(source: Results, target: Results) -> MergeReport:
    """Copy sound rows, and the arrays they name, that `target` lacks.

    A row whose arrays are damaged is left out. Where both have a row, the target's stays, unless only the source's
    cell succeeded.
    """
    report = MergeReport()
    present = {row.key: row for row in target.rows()}
    for row in source.rows():
        ours = present.get(row.key)
        if ours is not None and (ours.status == "ok" or row.status != "ok"):
            differs = ours.status == row.status == "ok" and ours.metrics != row.metrics
            report = replace(report, known=report.known + (not differs), differing=report.differing + differs)
            continue
        try:
            for digest in row.artifacts.values():
                target.objects.copy(digest, source.objects)
        except DamagedObjectError:
            report = replace(report, damaged=report.damaged + 1)
            continue
        target.put(row)
        report = replace(report, added=report.added + 1)
    return report
