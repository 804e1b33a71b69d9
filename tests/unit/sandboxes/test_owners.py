"""The processes that own sandboxes, and a user id for each sandbox: never one for two."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes import owners, users
from dgm.sandboxes.users import in_random_order, lease_user

ROOT = Path(__file__).parents[3]
PROGRAM = "from dgm.sandboxes.owners import label_owner; print(*label_owner().values(), flush=True); input()"


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    owners._take_lock.cache_clear()
    yield tmp_path
    owners._take_lock.cache_clear()


@pytest.mark.starts_processes
def test_a_killed_process_has_ended_and_a_living_one_has_not(state):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        mark = process.stdout.readline().strip()
        assert not owners.has_ended(mark)
        process.kill()
    assert owners.has_ended(mark)


def test_this_process_has_one_mark_and_has_not_ended(state):
    label = owners.label_owner()
    assert label == owners.label_owner()
    assert not owners.has_ended(label[owners.LABEL])


@pytest.mark.parametrize("mark", ["", "0" * 32, "../owners", "x"])
def test_an_owner_that_no_file_names_counts_as_living(state, mark):
    assert not owners.has_ended(mark)


def test_old_files_go_and_held_ones_stay(state):
    held = owners.label_owner()[owners.LABEL]
    folder = state / "dgm" / "owners"
    (folder / ("1" * 32)).touch()
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    owners._take_lock.cache_clear()
    owners.label_owner()
    assert (folder / held).exists()
    assert not (folder / ("1" * 32)).exists()


def test_without_a_state_folder_sandboxes_carry_no_owner(state):
    (state / "dgm").mkdir()
    (state / "dgm" / "owners").write_text("a file in the way")
    assert owners.label_owner() == {}


def test_no_user_is_leased_twice_and_each_is_free_again_when_given_back(monkeypatch):
    monkeypatch.setattr(users, "BUBBLEWRAP", range(4_000_000_001, 4_000_000_004))
    leases = [lease_user() for _ in range(3)]
    assert sorted(lease.uid for lease in leases) == list(users.BUBBLEWRAP)
    with pytest.raises(Infrastructure, match="all 3 user ids of sandboxes are taken"):
        lease_user()
    leases[1].close()
    leases[1].close()
    assert lease_user().uid == leases[1].uid


@pytest.mark.starts_processes
def test_other_processes_respect_a_lease_and_leave_none_when_they_die(monkeypatch):
    monkeypatch.setattr(users, "BUBBLEWRAP", range(4_000_000_011, 4_000_000_012))
    code = "from dgm.sandboxes import users\nusers.BUBBLEWRAP = range(4_000_000_011, 4_000_000_012)\n"
    code += "lease = users.lease_user(); print('got it', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"got it\n"
        with pytest.raises(Infrastructure):
            lease_user()
        other.kill()
        other.wait()
    assert lease_user().uid == 4_000_000_011


def test_each_engine_has_users_of_its_own():
    assert not set(users.BUBBLEWRAP) & set(users.DOCKER)
    assert sorted(in_random_order(users.DOCKER)) == list(users.DOCKER)
