"""A user id for each sandbox: never one for two, and known to the programs of an image."""

import subprocess
import sys

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes import users
from dgm.sandboxes.users import in_random_order, lease_user, list_users


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


@pytest.mark.parametrize(
    ("own", "shell"),
    [
        ("root:x:0:0:root:/root:/bin/sh\nagent:x:10001:10001::/tmp:/bin/bash\n", "/bin/bash"),
        ("root:x:0:0:root:/root:/bin/sh\nodd line\n+nis\nx:y:z:1:2:3:4\n", "/bin/sh"),
        ("", "/bin/sh"),
    ],
)
def test_an_images_users_stay_and_the_sandboxes_are_added(own, shell):
    text = list_users(own + "old:x:58502:1::/:/bin/false\n", range(58501, 58503), 10001)
    added = "".join(f"agent:x:{uid}:10001::/tmp:{shell}\n" for uid in (58501, 58502))
    assert text.lstrip() == own + added
