"""The whole chaos suite: every kind of fault, at every point where there are points, and an account of the rows.

    python tests/chaos/suite.py --report chaos.json

Takes some minutes. As root (in a container, say) disks are really filled and really made read-only, on tmpfs; others
leave that out, and the report says so. `docs/scripts/robustness.py` makes docs/robustness.md of the report.
"""

import argparse
import json
import platform
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import faults
import lost_workers
from world import Account, Zygote, new_draw


def plan_of(trial, count):
    """The faults and how often each; with `count`, at most so many of each."""

    def most(number):
        return min(number, count or number)

    return [
        (faults.run_out_of_memory, {}),
        (faults.change_the_dataset, {"during": False}),
        (faults.change_the_dataset, {"during": True}),
        (faults.fill_the_disk, {"sizes": ["96k", "128k", "160k", "48k", "112k", "144k"][: most(6)]}),
        (faults.make_the_folder_read_only, {"kill_points": trial.points()[46::12][: most(4)]}),
        (faults.let_the_clock_jump, {"count": most(5)}),
        (lost_workers.kill_a_worker, {}),
        (lost_workers.kill_the_scheduler, {}),
        (faults.damage_the_store, {"count": most(40)}),
        (faults.damage_cache_entries, {"count": most(25)}),
        (faults.tear_a_write, {"count": count}),
        (faults.kill_a_cell, {"count": count}),
        (faults.kill_the_supervisor, {"count": count}),
        (faults.kill_the_supervisor_at_random, {"count": most(10)}),
        (faults.everything_at_random, {"rounds": most(8)}),
        (faults.no_space_at_a_point, {"count": count}),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, help="write the account to this file, as JSON")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is left to chance")
    parser.add_argument("--count", type=int, help="at most so many faults of each kind; by default at every point")
    parser.add_argument(
        "--only",
        help="faults whose names contain one of these, separated by commas; a report keeps the others' account",
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="start no further fault after this time")
    options = parser.parse_args()
    account, begun, broken, tried = Account(), time.monotonic(), [], set()
    earlier = (
        json.loads(options.report.read_text()) if options.only and options.report and options.report.exists() else {}
    )
    zygote = Zygote()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        trial = faults.Trial(zygote, Path(folder), account, new_draw(options.seed))
        for fault, arguments in plan_of(trial, options.count):
            if options.only and not any(part in fault.__name__ for part in options.only.split(",")):
                continue
            if time.monotonic() - begun > options.seconds:
                account.left_out.append(f"{fault.__name__.replace('_', ' ')}: no time was left")
                continue
            tried.add(fault.__name__)
            try:
                fault(trial, **arguments)
            except AssertionError as error:
                broken.append(f"{fault.__name__}: {error!s:.2000}")
            say(account, fault.__name__, time.monotonic() - begun)
            if options.report:
                report = document(account, broken, options.seed)
                options.report.write_text(json.dumps(completed(report, earlier, tried), indent=2) + "\n")
    zygote.close()
    broken += idle(account)
    for line in (*broken, *account.left_out):
        print(line)
    bad = [t for t in account.tallies.values() if t.lost or t.wrong or t.tracebacks]
    sys.exit(1 if bad or broken else 0)


def idle(account):
    """Kinds of fault of which none was injected: they would pass every check."""
    return [f"{kind}: injected nothing" for kind, tally in account.tallies.items() if not tally.injected]


def say(account, name, seconds):
    total = sum(tally.injected for tally in account.tallies.values())
    lost, wrong = (sum(getattr(t, what) for t in account.tallies.values()) for what in ("lost", "wrong"))
    print(f"{seconds:6.0f} s  {name}: {total} faults so far, rows lost {lost}, rows wrong {wrong}", flush=True)


def document(account, broken, seed):
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "seed": seed,
        "faults": {kind: asdict(tally) for kind, tally in account.tallies.items()},
        "left_out": account.left_out,
        "broken": [*broken, *idle(account)],
    }


def completed(report, earlier, tried):
    """The report, and what an earlier one says of the faults that were not tried again."""
    kept = [line for line in earlier.get("broken", []) if line.partition(":")[0] not in {*tried, *report["faults"]}]
    return {
        **report,
        "faults": {**earlier.get("faults", {}), **report["faults"]},
        "left_out": list(dict.fromkeys((*earlier.get("left_out", []), *report["left_out"]))),
        "broken": [*kept, *report["broken"]],
    }


if __name__ == "__main__":
    main()
