"""A search that goes on, followed by the browser in a real terminal: nothing but ``5`` and ``f`` is pressed."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from tests.support.program import PATIENCE_S, without_keys

pytestmark = [pytest.mark.sandbox, pytest.mark.slow, pytest.mark.timeout(1800)]

EVALUATIONS, HALF = 8, "[4-6]"
COLUMNS, ROWS = 120, 48


class Terminal:
    """A tmux of its own, in which a program runs."""

    def __init__(self, socket, command, environment):
        self._socket = str(socket)
        self._environment = environment
        self._tmux("new-session", "-d", "-s", "live", "-x", str(COLUMNS), "-y", str(ROWS), *command)

    def press(self, key):
        self._tmux("send-keys", "-t", "live", key)

    def shown(self):
        """What is on the screen, as text."""
        return self._tmux("capture-pane", "-p", "-t", "live")

    def until(self, words, what):
        """Waits for words on the screen; all of it then."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            shown = self.shown()
            if re.search(words, shown):
                # All of a frame may not be there yet.
                time.sleep(0.5)
                shown = self.shown()
                if is_whole(shown):
                    return shown
            time.sleep(0.3)
        raise AssertionError(f"{what} was not seen:\n{self.shown()}")

    def close(self):
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], check=False, capture_output=True)

    def _tmux(self, *words):
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
        return done.stdout


def is_whole(shown):
    """Whether head and text speak of the same moment; true of a screen that has not both."""
    head = re.search(r"· (\d+) agents? · (\d+) evaluations?\b", shown.split("\n", 1)[0])
    text = re.search(r"^.?agents +(\d+).*\n.?evaluations +(\d+) of", shown, re.MULTILINE)
    return head is None or text is None or head.groups() == text.groups()


def graded(shown):
    """How many evaluations the screen says there are."""
    return int(re.search(r"evaluations\s+(\d+) of", shown)[1])


@pytest.mark.skipif(
    not (shutil.which("tmux") and shutil.which("bwrap")), reason="tmux or bubblewrap is not installed"
)
def test_a_search_is_followed_to_its_end(tmp_path):
    own = {"DGM_ARCHIVE": str(tmp_path), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    environment = {**without_keys(os.environ), **own}
    # The terminal's own size counts; pytest-xdist's processes have another one in their environment.
    for name in ("COLUMNS", "LINES"):
        environment.pop(name, None)
    dgm = [sys.executable, "-m", "dgm"]
    words = ["--name", "live", "--model", "offline", "--seed", "4", "--max-evaluations", str(EVALUATIONS)]
    with (tmp_path / "log").open("wb") as log:
        search = subprocess.Popen(
            [*dgm, "run", *words, "--workers", "2", "--set", "sandbox=bubblewrap"],
            env=environment,
            stdout=log,
            stderr=log,
        )
    terminal = None
    try:
        end = time.monotonic() + PATIENCE_S
        while (
            not (tmp_path / "live" / "run.json").exists() and time.monotonic() < end and search.poll() is None
        ):
            time.sleep(0.2)
        terminal = Terminal(tmp_path / "tmux", [*dgm, "browse", "live"], environment)
        # Only when it is drawn it takes keys.
        terminal.until(r"1 agent\b", "the browser")
        terminal.press("5")
        terminal.press("f")
        born = terminal.until(r"agent 1 was born, child of 0", "the birth of agent 1")
        half = terminal.until(rf"evaluations\s+{HALF} of {EVALUATIONS}", "half of the search")
        over = terminal.until(r"goal reached", "the end")
        assert search.wait(PATIENCE_S) == 0, (tmp_path / "log").read_text()[-3000:]
        over = terminal.until(rf"evaluations\s+{EVALUATIONS} of {EVALUATIONS}", "the last verdict")
        status = json.loads(
            subprocess.run(
                [*dgm, "status", "live", "--json"], env=environment, capture_output=True, check=True
            ).stdout
        )
        assert graded(born) < graded(half) < graded(over) == status["evaluations"]["graded"]
        assert f" {status['agents']} agents " in over, over
        assert "running" in born and "running" in half and "running" not in over.split("\n", 1)[0]
        assert re.search(r"[1-2] running\)", born + half)
        assert f"{status['spend']['tokens']:,} tokens" in over
        assert "Traceback" not in born + half + over
    finally:
        if terminal:
            terminal.close()
        if search.poll() is None:
            search.terminate()
            search.wait(60)
