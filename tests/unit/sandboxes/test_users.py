"""A user id for each sandbox: never one for two."""

import subprocess
import sys

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes import users
from dgm.sandboxes.users import in_random_order, lease_user


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
