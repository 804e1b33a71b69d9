"""Logs are read as what they say, whatever moves a cursor or colours; and which exceptions agents may learn."""

import pytest

from dgm.benchmarks.logs import OWN_KIND, known_kind, plain_log

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("log", "plain"),
    [
        (b"\x1b[1;32mPASSED\x1b[0m t\n", b"PASSED t\n"),
        (b"\x1b[38;2;1;2;3mx\x1b[m", b"x"),
        (b"\x1b]0;a title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", b"link\n"),
        (b"\x1b]0;never ended\nPASSED t\n", b"\nPASSED t\n"),
        (b" 10%\r 50%\r\x1b[KPASSED t\n", b" 10%\n 50%\nPASSED t\n"),
        (b"FAILED t\rPASSED t\r\n", b"FAILED t\nPASSED t\n"),
        (b"running\x1b[2K\x1b[1GPASSED t\x1b[1Aup", b"running\nPASSED t\nup"),
        (b"|\x08/\x08-\x08ok\n", b"|\n/\n-\nok\n"),
        (b"a\x1b[3Cb\x1b[?25h\x1b(B\x1b=", b"a b"),
        (b"ends in\r\r\nCR\x1b", b"ends in\nCR"),
        ("ä \x85 ✓\n".encode(), "ä \x85 ✓\n".encode()),
    ],
)
def test_what_moves_a_cursor_or_colours_is_gone(log, plain):
    assert plain_log(log) == plain


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("AssertionError: 1 != 2", "AssertionError"),
        ("E   ValueError: secret", "ValueError"),
        ("builtins.KeyError", "KeyError"),
        ("selfassertEqualgrams2Error: x", OWN_KIND),
        ("scale.StolenError: x", OWN_KIND),
        ("E   assert 1 == 2", ""),
        ("open", ""),
        ("", ""),
    ],
)
def test_only_kinds_of_python_are_told(line, kind):
    assert known_kind(line) == kind
