"""What doctor says of a machine's sandboxes."""

import pytest

from dgm.sandboxes.probes import describe_buffers


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
