"""A results folder that things happen to, and the account of what became of its rows."""

import contextlib
import csv
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
PLUGINS = HERE.parent / "plugins"

# What a run measures of the machine, and when; and the checkout, in which somebody may commit meanwhile.
VOLATILE = {"wall_seconds", "peak_host_bytes", "baseline_host_bytes", "finished", "revision", "threads", "jobs"}
EXIT_USAGE = 2


@dataclass
class Tally:
    """Of one kind of fault: how many were injected, and what they did to rows.

    Attributes:
        injected: faults that really happened.
        points: at how many points they can; 0 for those that have no points.
        finished: rows that had been stored when they happened.
        lost: of these, rows that a later run had to compute again although nothing had damaged them, or that the final
            export lacks.
        again: of these, rows that the fault itself had damaged, computed again.
        wrong: lines of the final export that a quiet run does not have.
        tracebacks: commands that ended in one.
        how: how the fault was made, for the report.
    """

    injected: int = 0
    points: int = 0
    finished: int = 0
    lost: int = 0
    again: int = 0
    wrong: int = 0
    tracebacks: int = 0
    how: str = ""


@dataclass
class Ending:
    """How a command ended."""

    code: int
    output: str
    acknowledged: list[str]
    points: list[str]


@dataclass
class Account:
    """All tallies, by kind of fault, and what was left out."""

    tallies: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    left_out: list[str] = field(default_factory=list)


class Zygote:
    """The process that commands are forked from."""

    def __init__(self):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, HERE / "zygote.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def start(self, request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()["pid"]

    def ended(self):
        return self._answer()["code"]

    def close(self):
        self._process.stdin.close()
        self._process.wait()

    def _answer(self):
        return json.loads(self._process.stdout.readline())


class World:
    """A folder to work in, with the results folder `results` in it or at a place of its own."""

    def __init__(self, zygote, folder, arguments, results=None):
        self.zygote = zygote
        self.folder = folder
        self.results = results or folder / "results"
        self.arguments = [*map(str, arguments)]
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, *arguments, fault=None, clock_seed=None):
        for name in ("trace", "acknowledged"):
            (self.folder / name).write_text("")
        request = {
            "arguments": [*map(str, arguments)],
            "cwd": str(self.folder),
            "output": str(self.folder / "output"),
            "trace": str(self.folder / "trace"),
            "acknowledged": str(self.folder / "acknowledged"),
            "fault": fault or {},
            "clock_seed": clock_seed,
        }
        return self.zygote.start(request)

    def ended(self):
        code = self.zygote.ended()
        self._wait_for_cells()
        return Ending(
            code, *((self.folder / "output").read_text(),), *(self._lines(n) for n in ("acknowledged", "trace"))
        )

    def command(self, *arguments, **options):
        self.start(*arguments, **options)
        return self.ended()

    def run(self, *, jobs=1, **options):
        """The command that the world is about; always the same, whatever happens."""
        return self.command(*self.arguments, "--jobs", jobs, "--results", self.results, **options)

    def retry(self, *arguments):
        return self.command("retry", *arguments, "--jobs", 1, "--results", self.results)

    def exported(self):
        """What an export says, except times, memory and machine."""
        path = self.folder / "export.csv"
        path.unlink(missing_ok=True)
        ending = self.command("export", path, "--results", self.results)
        assert ending.code == 0, ending.output
        with path.open() as file:
            return sorted(tuple((k, v) for k, v in row.items() if k not in VOLATILE) for row in csv.DictReader(file))

    def _lines(self, name):
        return (self.folder / name).read_text().split("\n")[:-1]

    def _wait_for_cells(self):
        """Forked cells share their supervisor's lock until they have died with it."""
        lock = self.results / "lock"
        if not lock.exists() or not os.access(lock, os.W_OK):
            return
        try:
            descriptor = os.open(lock, os.O_RDWR)
        except OSError:
            return
        for _ in range(1000):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(0.01)
        os.close(descriptor)


def judge(tally, world, quiet, before, resumed, *, damage=False, hit=()):
    """Compare the end with a quiet run's, and book what became of the rows.

    Args:
        tally: of the fault's kind.
        world: after the command went through.
        quiet: the export of a quiet run.
        before: keys of the rows that had been stored when the fault happened.
        resumed: endings of the commands after the fault, the last of which must have gone through.
        hit: endings of the commands that the fault hit and that could still say so.
        damage: whether the fault damages what is stored, so that some rows must be computed again.
    """
    final = world.exported()
    repeated = set(before) & {key for ending in resumed for key in ending.acknowledged}
    missing = {dict(line)["key"] for line in quiet} - {dict(line)["key"] for line in final}
    tally.injected += 1
    tally.finished += len(set(before))
    tally.lost += len(missing) + (0 if damage else len(repeated))
    tally.again += len(repeated) if damage else 0
    tally.wrong += len(set(final) - set(quiet)) + (len(final) - len(set(final)))
    tally.tracebacks += sum("Traceback" in ending.output for ending in (*hit, *resumed))
    assert resumed[-1].code == 0, resumed[-1].output
    return tally


class SmallDisk:
    """A disk in memory of a chosen size, if this user may mount one."""

    def __init__(self, folder, size):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs")

    @staticmethod
    def possible(folder):
        try:
            SmallDisk(folder, "64k").unmount()
        except (OSError, subprocess.CalledProcessError):
            return False
        return True

    def remount(self, options):
        # A killed cell may still be about to die with a file of the disk open for writing.
        for _ in range(100):
            with contextlib.suppress(subprocess.CalledProcessError):
                return self._mount("-o", f"remount,{options}")
            time.sleep(0.1)
        return self._mount("-o", f"remount,{options}")

    def unmount(self):
        subprocess.run(["umount", "-l", self.folder], check=True, capture_output=True)

    def _mount(self, *arguments):
        subprocess.run(["mount", *arguments, self.folder], check=True, capture_output=True)


def damage_one_byte(results, draw, pattern):
    """Flip a bit in, or cut off the end of, one of the files that match; returns the file, None if there is none."""
    files = sorted(p for p in results.glob(pattern) if p.is_file() and p.stat().st_size)
    if not files:
        return None
    path = draw.choice(files)
    content = bytearray(path.read_bytes())
    offset = draw.randrange(len(content))
    if draw.random() < 0.5:
        content[offset] ^= 1 << draw.randrange(8)
    else:
        del content[offset:]
    path.write_bytes(content)
    return path


def copied(world, folder):
    """The same world once more, as it is now."""
    twin = World(world.zygote, folder, world.arguments)
    shutil.copytree(world.results, twin.results)
    return twin


def kill_at_random(world, draw, longest):
    """Start the command and kill it after a while; returns the ending."""
    pid = world.start(*world.arguments, "--jobs", 2, "--results", world.results)
    time.sleep(draw.uniform(0, longest))
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return world.ended()


def new_draw(seed):
    return random.Random(seed)
