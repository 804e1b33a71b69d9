"""What the kernel's counters say of programs that were killed for memory."""

import pytest

from dgm.sandboxes.docker_sandbox import count_memory_kills


@pytest.mark.parametrize(
    ("counters", "kills"),
    [
        (b"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3),
        (b"low 0\nhigh 0\nmax 12\noom 5\noom_kill 2\noom_group_kill 1\n", 2),
        (b"under_oom 0\n", 0),
        (b"", 0),
    ],
    ids=["version 1", "version 2", "an old kernel", "no counters"],
)
def test_kills_for_memory_are_counted(counters, kills):
    assert count_memory_kills(counters) == kills
