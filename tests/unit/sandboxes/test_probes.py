"""What doctor says of a machine's sandboxes."""

import pytest

from dgm.sandboxes.probes import DiagnosisRow, describe_buffers, is_fit


@pytest.mark.parametrize(
    ("version", "tcp_bounded", "said"),
    [
        (0, False, "not bounded: an ordinary user's bubblewrap has no control group"),
        (1, False, "not bounded for TCP and UDP: control groups of version 1"),
        (1, True, "TCP's are bounded, UDP's are not: control groups of version 1"),
        (2, True, "count as memory"),
        (2, False, "not bounded for TCP"),
    ],
)
def test_what_bounds_the_buffers_of_sockets_is_said_in_a_line(version, tcp_bounded, said):
    line = describe_buffers(version, tcp_bounded=tcp_bounded)
    assert line.startswith(said)
    assert "\n" not in line


def rows(**failed):
    checks = ("engine", "seccomp", "forks bounded", "memory bounded")
    return [
        DiagnosisRow(f"{engine}: {check}", check not in failed.get(engine, ()), "")
        for engine in ("docker", "bubblewrap")
        for check in checks
    ]


def test_a_machine_is_fit_by_the_rows_of_the_engine_that_would_be_chosen():
    found = rows(docker=["forks bounded"])
    assert not is_fit(found, "docker", unbounded=False)
    assert is_fit(found, "bubblewrap", unbounded=False)
    assert not is_fit([], "docker", unbounded=False)


def test_only_missing_bounds_can_be_accepted():
    assert is_fit(rows(docker=["forks bounded", "memory bounded"]), "docker", unbounded=True)
    assert not is_fit(rows(docker=["seccomp"]), "docker", unbounded=True)
