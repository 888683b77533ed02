"""The faults, each tried for real on a small suite: after it, the same command must end as if nothing had happened."""

import functools
import itertools
import os
import shutil
import signal
import time

from points import FAULT
from world import EXIT_USAGE, PLUGINS, SmallDisk, World, copied, damage_one_byte, judge, kill_at_random

SUITE = ["run", "--dataset", "karate", "--defense", "none,random", "--attack", "cn", "--utility", "structure"]
MORE_ATTACKS = ["run", "--dataset", "karate", "--defense", "none,random", "--attack", "cn,ra", "--utility", "structure"]

LINKS = [(u, v) for u, v in itertools.combinations(range(24), 2) if (3 * u + 5 * v) % 7 < 2 or v == u + 1]

_FOLDERS_A_KILL = 5


class Trial:
    """What the faults share: a place, a source of chance, quiet runs to compare with, and the account."""

    def __init__(self, zygote, folder, account, draw):
        self.zygote = zygote
        self.folder = folder
        self.account = account
        self.draw = draw
        self._worlds = itertools.count()
        self._quiet_runs = {}

    def world(self, arguments=SUITE, results=None):
        return World(self.zygote, self.folder / f"world{next(self._worlds)}", arguments, results)

    def twin(self, world):
        return copied(world, self.folder / f"world{next(self._worlds)}")

    @functools.cached_property
    def quiet_world(self):
        return self._quiet_run(SUITE)[0]

    @functools.cached_property
    def quiet(self):
        return self.quiet_world.exported()

    @functools.cached_property
    def quiet_with_more_attacks(self):
        return self._quiet_run(MORE_ATTACKS)[0].exported()

    def points(self, which=lambda name: True, *, of=SUITE):
        """The numbers of the points of a quiet run, from 1."""
        return [number for number, name in enumerate(self._quiet_run(of)[1].points, 1) if which(name)]

    def _quiet_run(self, arguments):
        """The world in which the command went through undisturbed, and how it ended."""
        if str(arguments) not in self._quiet_runs:
            world = self.world(arguments)
            ending = world.run()
            assert ending.code == 0, ending.output
            self._quiet_runs[str(arguments)] = world, ending
        return self._quiet_runs[str(arguments)]

    def chosen(self, tally, items, count):
        """All points, or some of them, the first and the last among them."""
        tally.points = len(items)
        if count is None or count >= len(items):
            return items
        inner = self.draw.sample(items[1:-1], count - 2)
        return sorted([items[0], items[-1], *inner])


def kill_the_supervisor(trial, count=None):
    """SIGKILL of the supervisor at each point in turn; its cell dies with it."""
    tally = trial.account.tallies["SIGKILL of the supervisor, at commit points"]
    tally.how = "the process kills itself, or its cell kills it, when the point is reached"
    for at in trial.chosen(tally, trial.points(), count):
        world = trial.world()
        ending = world.run(fault={"action": "kill-supervisor", "at": at})
        assert ending.code == -signal.SIGKILL, (at, ending)
        judge(tally, world, trial.quiet, ending.acknowledged, [world.run()])
        shutil.rmtree(world.folder)


def kill_the_supervisor_at_random(trial, count):
    """SIGKILL at a random time, several times in one folder, two cells side by side."""
    tally = trial.account.tallies["SIGKILL of the supervisor, at a random time"]
    tally.how = "from outside, again and again in one folder, two cells side by side"
    begun = time.monotonic()
    assert trial.world().run(jobs=2).code == 0
    longest = time.monotonic() - begun
    # A run that goes through before it is hit ends its folder; the next kill is in a new one.
    for _ in range(_FOLDERS_A_KILL * count):
        world, before, kills = trial.world(), [], 0
        while tally.injected + kills < count:
            ending = kill_at_random(world, trial.draw, longest)
            assert not set(before) & set(ending.acknowledged)
            before += ending.acknowledged
            if ending.code == 0:
                break
            assert ending.code == -signal.SIGKILL, ending
            kills += 1
        judge(tally, world, trial.quiet, before, [world.run()])
        tally.injected += kills - 1
        if tally.injected >= count:
            return


def kill_a_cell(trial, count=None):
    """SIGKILL of a cell's process at each of its points: a row says so, and `retry` runs it again."""
    tally = trial.account.tallies["SIGKILL of a cell, at commit points"]
    tally.how = "the cell's process kills itself; `retry` after it"
    for at in trial.chosen(tally, trial.points(lambda name: name.startswith("cell")), count):
        world = trial.world()
        ending = world.run(fault={"action": "kill-cell", "at": at})
        assert ending.code == 1, (at, ending)
        assert "SIGKILL" in ending.output
        sound = set(ending.acknowledged) - _failed(world)
        judge(tally, world, trial.quiet, sound, [world.retry(), world.run()])
        shutil.rmtree(world.folder)


def _failed(world):
    from ppgsl_bench.store import Results

    return {row.key for row in Results(world.results).rows() if row.status != "ok"}


def no_space_at_a_point(trial, count=None):
    """A write that fails with ENOSPC, at each point where something is written."""
    tally = trial.account.tallies["no space left, at commit points"]
    tally.how = "the call raises ENOSPC (files) or SQLITE_FULL (rows)"
    for at in trial.chosen(tally, trial.points(lambda name: "before" in name and "removal" not in name), count):
        world = trial.world()
        ending = world.run(fault={"action": "no-space", "at": at})
        assert ending.code == EXIT_USAGE, (at, ending)
        judge(tally, world, trial.quiet, ending.acknowledged, [world.run()], hit=[ending])
        shutil.rmtree(world.folder)


def fill_the_disk(trial, sizes):
    """A results folder on a disk that is really full; then the disk grows."""
    if not _may_mount(trial, "a disk that is really full"):
        return
    tally = trial.account.tallies["full disk (tmpfs)"]
    tally.how = "a tmpfs too small for the run, which is then made larger"
    for size in sizes:
        world = trial.world()
        world.results = world.folder / "disk" / "results"
        disk = SmallDisk(world.folder / "disk", size)
        try:
            ending = world.run()
            assert ending.code == EXIT_USAGE, (size, ending)
            once_more = world.run()
            assert once_more.code == EXIT_USAGE, (size, once_more)
            before = [*ending.acknowledged, *once_more.acknowledged]
            disk.remount("size=16m")
            judge(tally, world, trial.quiet, before, [world.run()], hit=[ending, once_more])
        finally:
            disk.unmount()


def make_the_folder_read_only(trial, kill_points):
    """Results can be read but not written; once they can be, the run goes on."""
    if not _may_mount(trial, "a read-only results folder"):
        return
    tally = trial.account.tallies["read-only results folder (tmpfs)"]
    tally.how = "the disk is remounted read-only after a kill, read, and remounted for writing"
    for at in kill_points:
        world = trial.world()
        world.results = world.folder / "disk" / "results"
        disk = SmallDisk(world.folder / "disk", "16m")
        try:
            killed = world.run(fault={"action": "kill-supervisor", "at": at})
            disk.remount("ro")
            refused = world.run()
            assert refused.code == EXIT_USAGE, refused
            assert "Read-only" in refused.output, refused
            readable = {dict(line)["key"] for line in world.exported()}
            exported = {dict(line)["key"] for line in trial.quiet} & set(killed.acknowledged)
            tally.lost += len(exported - readable)
            disk.remount("rw")
            judge(tally, world, trial.quiet, killed.acknowledged, [world.run()], hit=[refused])
        finally:
            disk.unmount()


def tear_a_write(trial, count=None):
    """Half of an array is missing although the system said that it was written."""
    tally = trial.account.tallies["torn write of a cache entry"]
    tally.how = "the file is cut in half when it is synced, and the call succeeds"
    points = trial.points(lambda name: name == "cell before a sync", of=MORE_ATTACKS)
    for at in trial.chosen(tally, points, count):
        world = trial.world(MORE_ATTACKS)
        ending = world.run(fault={"action": "torn-write", "at": at})
        assert FAULT in ending.points, (at, ending)
        resumed = [world.run()]
        judge(tally, world, trial.quiet_with_more_attacks, ending.acknowledged, resumed, damage=True, hit=[ending])
        shutil.rmtree(world.folder)


def damage_cache_entries(trial, count):
    """A bit of a stored array flips, or its end is missing; the next cells that read it must notice."""
    tally = trial.account.tallies["flipped bit or cut-off end in a cache entry"]
    tally.how = "a random place of a random file under objects/, after a run; then a larger run that builds on it"
    before = [dict(line)["key"] for line in trial.quiet]
    for _ in range(count):
        world = trial.twin(trial.quiet_world)
        damage_one_byte(world.results, trial.draw, "objects/*/*.npz")
        world.arguments = MORE_ATTACKS
        judge(tally, world, trial.quiet_with_more_attacks, before, [world.run()], damage=True)
        shutil.rmtree(world.folder)


def damage_the_store(trial, count):
    """A bit of the database or of its log flips, or its end is missing."""
    tally = trial.account.tallies["flipped bit or cut-off end in the store"]
    tally.how = "a random place of rows.sqlite or its log, after a run or after a kill"
    killed = trial.world()
    cut_short = killed.run(fault={"action": "kill-supervisor", "at": trial.points()[-3]})
    quiet_keys = [dict(line)["key"] for line in trial.quiet]
    for i in range(count):
        from_kill = i % 2 == 1
        world = trial.twin(killed if from_kill else trial.quiet_world)
        damage_one_byte(world.results, trial.draw, "rows.sqlite-wal" if from_kill else "rows.sqlite")
        before = cut_short.acknowledged if from_kill else quiet_keys
        judge(tally, world, trial.quiet, before, [world.run()], damage=True)
        shutil.rmtree(world.folder)


def let_the_clock_jump(trial, count):
    """The time of day jumps by years, back and forth, during the run and between runs."""
    tally = trial.account.tallies["clock that jumps"]
    tally.how = "time.time and datetime.now jump by up to ten years at each call, in the supervisor and its cells"
    for seed in range(count):
        world = trial.world()
        at = trial.draw.choice(trial.points())
        ending = world.run(clock_seed=seed, fault={"action": "kill-supervisor", "at": at})
        assert ending.code == -signal.SIGKILL, (at, ending)
        judge(tally, world, trial.quiet, ending.acknowledged, [world.run(clock_seed=-seed - 1)])
        shutil.rmtree(world.folder)


def change_the_dataset(trial, *, during):
    """The file of a dataset changes between two runs, or after a run has begun."""
    when = "during a run" if during else "between two runs"
    tally = trial.account.tallies[f"dataset file that changes {when}"]
    tally.how = "a link is taken out of the user's file"
    first, second = (_edge_list(LINKS[skip:]) for skip in (0, 1))
    file = trial.folder / "graph.csv"
    arguments = ["run", "--dataset", file, "--defense", "none", "--attack", "cn", "--utility", "structure"]
    quiet = {}
    for content in (first, second):
        file.write_text(content)
        world = trial.world(arguments)
        assert world.run().code == 0
        quiet[content] = world.exported()
    file.write_text(first)
    world = trial.world(arguments)
    if during:
        # The first point comes after the plan, which has read the file, and before the split, which will.
        begun = world.run(fault={"action": "change-file", "at": 1, "file": str(file), "content": second})
        assert begun.code == 1
        assert "changed" in begun.output
        before = []
    else:
        before = world.run().acknowledged
        file.write_text(second)
    changed = world.run()
    assert changed.code == 0, changed.output
    keys = {dict(line)["key"] for line in quiet[second]}
    now = [line for line in world.exported() if dict(line)["key"] in keys]
    tally.wrong += len(set(now) ^ set(quiet[second]))
    # With the first content back, its rows are there or are computed, and those of the second stay.
    file.write_text(first)
    resumed = [world.retry(), world.run()] if during else [world.run()]
    judge(tally, world, sorted(quiet[first] + quiet[second]), before, resumed)


def run_out_of_memory(trial):
    """A cell needs more than its limit: a row says so, the others are untouched, and `retry` mends it."""
    tally = trial.account.tallies["memory pressure"]
    tally.how = "an attack allocates without end until its limit of 1.5 GiB ends it; `retry` after it"
    crowded = trial.folder / "crowded"
    arguments = [*SUITE[:-4], "--attack", f"cn,hungry[crowded={crowded}]", "--utility", "structure"]
    arguments += ["--plugin", PLUGINS / "hungry.py", "--memory", "1536M"]
    calm = trial.world(arguments)
    assert calm.run().code == 0
    crowded.write_text("")
    world = trial.world(arguments)
    ending = world.run()
    assert ending.code == 1, ending
    assert "memory limit" in ending.output
    sound = set(ending.acknowledged) - _failed(world)
    crowded.unlink()
    mended = world.retry("--plugin", PLUGINS / "hungry.py")
    judge(tally, world, calm.exported(), sound, [mended, world.run()])


def everything_at_random(trial, rounds):
    """Several faults of several kinds in one folder, one after the other."""
    tally = trial.account.tallies["several of these in one folder, at random"]
    tally.how = "kills, failing writes, torn writes and damaged files in turn, before one run goes through"
    actions = ("kill-supervisor", "kill-cell", "no-space", "torn-write")
    for _ in range(rounds):
        world, before, injected = trial.world(), set(), 0
        for _ in range(trial.draw.randint(2, 5)):
            fault = {"action": trial.draw.choice(actions), "at": trial.draw.choice(trial.points())}
            ending = world.run(fault=fault, clock_seed=trial.draw.randrange(100))
            before |= set(ending.acknowledged)
            # Not all do: a run that resumes reaches fewer points, and not every point is one of a cell.
            injected += FAULT in ending.points
            if trial.draw.random() < 0.5:
                pattern = trial.draw.choice(["rows.sqlite*", "objects/*/*.npz"])
                injected += damage_one_byte(world.results, trial.draw, pattern) is not None
        judge(tally, world, trial.quiet, before, [world.run(), world.retry(), world.run()], damage=True)
        tally.injected += injected - 1
        shutil.rmtree(world.folder)


def _edge_list(links):
    return "source,target\n" + "".join(f"n{u},n{v}\n" for u, v in links)


def _may_mount(trial, what):
    if os.getuid() == 0 and SmallDisk.possible(trial.folder / "disk"):
        return True
    trial.account.left_out.append(f"{what}: this user may not mount a tmpfs")
    return False
