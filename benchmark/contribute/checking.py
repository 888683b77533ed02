"""Running the conformance checks: here, or in processes that a plugin may hang or crash without harm."""

import faulthandler
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ppgsl_bench.contribute.subject import AnySubject, find_subjects, subject_of
from ppgsl_bench.contribute.verdicts import Check, Group, Kind, Verdict, checks_for
from ppgsl_bench.plugin import Plugin
from ppgsl_bench.processes import CellProcesses, Limits, Message, Outcome

# The graphs have some dozens of nodes, but on a fresh machine kernels are compiled first, and the machine may be busy.
CHECK_SECONDS = 120
# Enough for the libraries and what a check allows; a table of all pairs of the long path ends the process first.
WORKER_BYTES = 3 * 2**30
# A plugin that has ended its process so often will do it again.
_MOST_DEATHS = 2

GROUPS: tuple[Group, ...] = ("rules", "graphs")
OnVerdict = Callable[[Verdict], None]


@dataclass(frozen=True)
class Report:
    """All verdicts on one plugin."""

    plugin: str
    kind: Kind
    verdicts: Sequence[Verdict]

    @property
    def failures(self) -> list[Verdict]:
        """The checks that failed."""
        return [verdict for verdict in self.verdicts if verdict.outcome == "fail"]

    @property
    def conforms(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    def __str__(self) -> str:
        """What failed, and how to mend it; for the message of an assertion."""
        lines = [f"{v.check}: {v.message}\n    {v.hint}" for v in self.failures]
        return "\n".join([f"{self.kind} {self.plugin}: {len(lines)} of {len(self.verdicts)} checks failed", *lines])


def check_plugin(cls: type[Plugin]) -> Report:
    """Check a plugin class in this process: what a plugin's own tests call."""
    return check_here(subject_of(cls))


def check_here(subject: AnySubject) -> Report:
    """Check a subject in this process."""
    names = [check.name for check in checks_for(subject.kind)]
    return Report(subject.cls.name or subject.cls.__name__, subject.kind, list(subject.verdicts(names)))


def check_apart(target: str, class_name: str, on_verdict: OnVerdict = lambda _: None) -> Report:
    """Check one plugin of a target in processes of its own, two at a time.

    Args:
        target: NAME, FILE.py or MODULE:CLASS.
        class_name: which of the classes that the target defines.
        on_verdict: called with each verdict as it comes.
    """
    subject = _subject(target, class_name)
    checks = checks_for(subject.kind)
    found: dict[str, Verdict] = {}
    with tempfile.TemporaryDirectory() as folder:
        batches = [
            _Batch(target, class_name, [c for c in checks if c.group == group], Path(folder) / f"{group}.jsonl")
            for group in GROUPS
        ]
        with CellProcesses(_run_batch, Limits(memory_bytes=WORKER_BYTES)) as processes:
            for i, batch in enumerate(batches):
                processes.start(str(i), batch.request())
            while len(processes):
                ended = processes.wait(0.1)
                for batch in batches:
                    for verdict in batch.news():
                        found[verdict.check] = verdict
                        on_verdict(verdict)
                for token, outcome in ended:
                    batch = batches[int(token)]
                    for verdict in batch.after_the_end(outcome):
                        found[verdict.check] = verdict
                        on_verdict(verdict)
                    if batch.remaining:
                        processes.start(token, batch.request())
    verdicts = [found[check.name] for check in checks]
    return Report(subject.cls.name or subject.cls.__name__, subject.kind, verdicts)


class _Batch:
    """Checks that share a process, and a file in which the process enters what it has begun and found."""

    def __init__(self, target: str, class_name: str, checks: Sequence[Check], file: Path) -> None:
        self.target = target
        self.class_name = class_name
        self.file = file
        self.remaining = {check.name: check for check in checks}
        self.deaths = 0
        self._read = 0
        self._begun: str | None = None
        file.touch()

    def request(self) -> Message:
        """What the process is asked to do."""
        return {
            "target": self.target,
            "class": self.class_name,
            "checks": list(self.remaining),
            "file": str(self.file),
            "seconds": CHECK_SECONDS,
        }

    def news(self) -> list[Verdict]:
        """Verdicts entered since the last look."""
        lines = self.file.read_text(encoding="utf-8").splitlines(keepends=True)[self._read :]
        found = []
        for line in lines:
            if not line.endswith("\n"):
                break
            self._read += 1
            entry = json.loads(line)
            if "begun" in entry:
                self._begun = entry["begun"]
            else:
                verdict = Verdict(**entry)
                found.append(verdict)
                self.remaining.pop(verdict.check, None)
                self._begun = None
        return found

    def after_the_end(self, outcome: Outcome) -> list[Verdict]:
        """What is to be said when the process has ended: the check in progress, if any, has failed."""
        found = self.news()
        if not self.remaining:
            return found
        self.deaths += 1
        culprit = self.remaining.pop(self._begun or next(iter(self.remaining)))
        reason = outcome.reason
        if "Timeout (" in outcome.log:
            reason = f"it had not returned after {CHECK_SECONDS} s"
        found.append(Verdict(culprit.name, "fail", reason, culprit.hint))
        if self.deaths >= _MOST_DEATHS:
            for name in list(self.remaining):
                del self.remaining[name]
                found.append(Verdict(name, "not applicable", f"not run: {self.deaths} checks ended their process"))
        return found


def _run_batch(request: Message) -> Message:
    """What happens inside a process: check after check, each entered in the file before it begins and after it ends."""
    subject = _subject(request["target"], request["class"])
    with Path(request["file"]).open("a", encoding="utf-8") as file:

        def enter(entry: dict[str, Any]) -> None:
            file.write(json.dumps(entry) + "\n")
            file.flush()

        for name in request["checks"]:
            enter({"begun": name})
            # A watchdog outside Python's own thread: it also ends a plugin that is lost in compiled code.
            faulthandler.dump_traceback_later(request["seconds"], exit=True, file=sys.stderr)
            (verdict,) = subject.verdicts([name])
            faulthandler.cancel_dump_traceback_later()
            enter(asdict(verdict))
    return {"status": "ok"}


def _subject(target: str, class_name: str) -> AnySubject:
    return next(subject for subject in find_subjects(target) if subject.cls.__name__ == class_name)
