"""A few faults of each kind; `tox -e chaos` tries them at every point.

What happens at random times, or at random altogether, is left to it.
"""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import faults
from suite import idle
from world import Account, Zygote, new_draw

SHORT = [
    (faults.kill_the_supervisor, {"count": 5}),
    (faults.kill_a_cell, {"count": 3}),
    (faults.no_space_at_a_point, {"count": 4}),
    (faults.fill_the_disk, {"sizes": ["96k"]}),
    (faults.make_the_folder_read_only, {"kill_points": [70]}),
    (faults.tear_a_write, {"count": 3}),
    (faults.damage_cache_entries, {"count": 3}),
    (faults.damage_the_store, {"count": 4}),
    (faults.let_the_clock_jump, {"count": 1}),
    (faults.change_the_dataset, {"during": False}),
    (faults.change_the_dataset, {"during": True}),
    (faults.run_out_of_memory, {}),
]


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    zygote = Zygote()
    yield faults.Trial(zygote, tmp_path_factory.mktemp("chaos"), Account(), new_draw(9))
    zygote.close()


@pytest.mark.parametrize(("fault", "options"), SHORT, ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(SHORT)])
def test_after_a_fault_the_same_command_ends_as_if_nothing_had_happened(trial, fault, options):
    trial.account.tallies.clear()
    fault(trial, **options)
    if trial.account.left_out:
        pytest.skip(trial.account.left_out.pop())
    (tally,) = trial.account.tallies.values()
    assert tally.injected > 0
    assert (tally.lost, tally.wrong, tally.tracebacks) == (0, 0, 0)


def test_a_kind_of_fault_that_injects_nothing_is_reported():
    account = Account()
    account.tallies["torn write"].injected = 3
    account.tallies["full disk"].finished = 7
    assert idle(account) == ["full disk: injected nothing"]
