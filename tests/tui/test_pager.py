"""The pager has the terminal for itself."""

import os
import signal
from pathlib import Path

import pytest

from dgm.errors import UserError
from dgm.tui.pager import show_in_pager


def test_ctrl_c_is_for_the_pager_alone(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    # Both get it, as from a terminal; the pager is not made deaf for it.
    script = f"trap 'echo caught > {seen}' INT; kill -INT $PPID; kill -QUIT $PPID; kill -INT $$"
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGQUIT)
    show_in_pager("text", {**os.environ, "PAGER": f'sh -c "{script}"'})
    assert seen.read_text() == "caught\n"
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGQUIT)) == before


def test_signals_are_heard_again_where_there_is_no_pager() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(UserError, match="cannot be started"):
        show_in_pager("text", {"PAGER": "no-such-program-anywhere"})
    assert signal.getsignal(signal.SIGINT) is before
