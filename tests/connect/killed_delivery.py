"""A delivery of a run to a sink that is killed again and again, and resumed, until all is delivered."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from dgm.archive.run import Run
from dgm.sinks.companion import deliver
from dgm.sinks.feed import Feed, Point
from dgm.sinks.sink import open_sink
from tests.support.runs.large import large_run

AGENTS, EVALUATIONS, CALLS = 20, 400, 2
TIMEOUT_S = 300.0


def make_run(folder: Path) -> Path:
    """Return a finished run with many points."""
    large_run(folder, AGENTS, EVALUATIONS, calls=CALLS).close()
    return folder


def points_of(folder: Path) -> list[Point]:
    """Return the points that each tracker must have, each once."""
    with Run.open(folder) as run:
        feed = Feed(run)
        return [point for _ in feed.advance() if (point := feed.point())]


def names_of(points: list[Point]) -> set[str]:
    """Return the names of all curves."""
    return {name for point in points for name in point.values}


def deliver_with_kills(folder: Path, address: str, kills: int, environment: Mapping[str, str]) -> int:
    """Deliver a run; kill the process so many times, each at a later moment of its delivery, then let it end.

    Returns:
        The number of processes that were killed before they had ended.
    """
    killed = 0
    for kill in range(kills + 1):
        delay_s = 0.02 * 2**kill if kill < kills else TIMEOUT_S
        words = [sys.executable, "-m", "tests.connect.killed_delivery", str(folder), address, str(delay_s)]
        variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment}
        ended = subprocess.run(words, env=variables, cwd=folder.parent, timeout=TIMEOUT_S, check=False)
        assert ended.returncode in (0, -signal.SIGKILL)
        killed += ended.returncode != 0
    assert ended.returncode == 0
    return killed


class _TimedSink:
    """A sink whose process is killed some time after the first event that it observes."""

    def __init__(self, address: str, delay_s: float, run: Run) -> None:
        self._sink, self._delay_s = open_sink(address, run), delay_s
        self._timer: threading.Timer | None = None
        self.deliver, self.finish, self.close = self._sink.deliver, self._sink.finish, self._sink.close

    def observe(self, recorded, feed) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._delay_s, os.kill, (os.getpid(), signal.SIGKILL))
            self._timer.daemon = True
            self._timer.start()
        self._sink.observe(recorded, feed)


def main(folder: str, address: str, delay_s: str) -> None:
    over = threading.Event()
    over.set()
    deliver(Path(folder), partial(_TimedSink, address, float(delay_s)), over)


if __name__ == "__main__":
    main(*sys.argv[1:])
