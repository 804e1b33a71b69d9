"""Logs with colours, titles, progress bars and moved cursors are read as what they say, in every grader."""

import asyncio
import base64

import pytest

from dgm.benchmarks.plain_logs import plain_log
from dgm.benchmarks.suites import SuiteBenchmark
from tests.support.suite_on_disk import TASK, make_suite
from tests.unit.benchmarks.test_suite_grading import Says

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


@pytest.mark.starts_processes
def test_the_starter_suite_masks_a_hidden_line_that_is_coloured(tmp_path):
    make_suite(tmp_path / "tiny")
    log = b"\x1b[94mself\x1b[39;49;00m.assertEqual(double(\x1b[94m2\x1b[39m), \x1b[94m4\x1b[39m)\n"
    said = (
        b'\nNONCE {"stage": "prepared", "notes": ""}\n'
        b'NONCE {"stage": "done", "modules": [], "seconds": 1.0, "log": "%s"}\n' % base64.b64encode(log)
    )
    suite = SuiteBenchmark(tmp_path / "tiny", Says(tmp_path, {"exit_code": 0, "output": said}))
    graded = asyncio.run(suite.grade(TASK, b"--- a/x\n+++ b/x\n", {}))
    # One line from each of two sandboxes: of the hidden module, and of the visible ones.
    assert graded.log == 2 * b"[line of a hidden test]\n"
