"""Prints what browsing a big run costs: time to the first screen, memory, keys, and following a writer.

Run as ``python tests/perf/bench_browse.py [AGENTS EVALUATIONS]``; by default 10,000 and 100,000, then tenfold.
The browser runs as a user starts it, on a terminal of 120 columns and 36 rows that this program reads.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

from dgm.archive.events import ActionStarted, Event, TaskGraded
from dgm.archive.run import Run
from dgm.archive.store import EventStore
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Evaluate, Evaluation, TaskId, Verdict
from dgm.render.text import render_tree
from dgm.views.agents import TreeView
from tests.perf.bench_archive import build

CURSOR = "▌"
FOLDED = " evaluations"
"""Stands in the head as soon as the tree is folded."""
CURVE = "now agent"
"""Stands below the curve of the run, which is worked out beside the keys."""
SCREENS = (("2", "[diff]"), ("3", "resolved / tries"), ("4", "code of agent"), ("5", "recent events"))
"""The keys, and what is seen when their screen is there."""
KEYS = 20
FOLLOWED_S, EVENTS_A_SECOND = 30, 50
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[P_^].*?\x1b\\\\|\x1b.")
EMPTY = "from textual.app import App; App().run()"


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
        self.begun = time.perf_counter()
        environment = {**os.environ, "TERM": "xterm-256color"}
        self._process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)
        self.first: dict[str, float] = {}
        """Seconds after which ``FOLDED`` and ``CURVE`` were first seen."""

    def _read(self, seconds: float) -> str:
        """What is written within so long, without its colours; empty if nothing is."""
        if not select.select([self._master], [], [], seconds)[0]:
            return ""
        text = _ESCAPES.sub("", os.read(self._master, 1 << 20).decode(errors="ignore"))
        for sought in (FOLDED, CURVE):
            if sought in text:
                self.first.setdefault(sought, time.perf_counter() - self.begun)
        return text

    def wait(self, text: str, seconds: float = 300.0) -> float:
        """Seconds from now until the program writes the text, whatever the colours in between."""
        start, seen = time.perf_counter(), ""
        while time.perf_counter() - start < seconds:
            seen = (seen + self._read(0.2))[-200_000:]
            if text in seen:
                return time.perf_counter() - start
        raise TimeoutError(f"no {text!r} within {seconds} s; last seen: {seen[-2000:]!r}")

    def drain(self, seconds: float) -> None:
        """Reads what is written for a while."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self._read(left)

    def press(self, key: str, text: str = CURSOR) -> float:
        """Seconds from a key to the cursor's new row, or to another text."""
        os.write(self._master, key.encode())
        return self.wait(text, 30.0)

    def until(self, text: str, seconds: float = 300.0) -> float:
        """Seconds from the start until one of the texts in ``first`` was seen, waiting for it."""
        end = time.perf_counter() + seconds
        while text not in self.first:
            if time.perf_counter() > end:
                raise TimeoutError(f"no {text!r} within {seconds} s")
            self._read(0.2)
        return self.first[text]

    def memory_mb(self, name: str = "VmRSS") -> float:
        """What the process holds, or held at most (``VmHWM``)."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split(f"{name}:")[1].split("kB")[0]) / 1024

    def cpu(self) -> float:
        """Seconds of processor time that the process has taken."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._master)


def main() -> None:
    sizes = [(10_000, 100_000), (100_000, 1_000_000)]
    if len(sys.argv) > 1:
        sizes = [(int(sys.argv[1]), int(sys.argv[2]))]
    with Terminal([sys.executable, "-c", EMPTY]) as empty:
        empty.drain(4.0)
        nothing = empty.memory_mb()
    print(f"an empty app: {nothing:.0f} MB")
    for agents, evaluations in sizes:
        with tempfile.TemporaryDirectory(prefix="dgm-bench-") as name:
            folder = Path(name) / "run"
            made(folder, agents, evaluations)
            print(f"{agents:,} agents, {evaluations:,} evaluations")
            browsed(folder, nothing)
            listed(folder)


def made(folder: Path, agents: int, evaluations: int) -> None:
    config = {
        "settings": Settings.model_validate({"model": "offline"}).model_dump(mode="json"),
        "sandbox": "none",
        "versions": {},
    }
    Run.create(folder, config).close()
    build(folder / "events.db", agents, evaluations)


def browsed(folder: Path, nothing: float) -> None:
    with closing(EventStore.open(folder / "events.db", write=False)) as store:
        counted = "SELECT count(*) FROM events WHERE kind = 'task_graded'"
        graded = store.query(counted)[0][0]
        good = store.query(f"{counted} AND json_extract(body, '$.verdict') = 'resolved'")[0][0]
        last = store.query("SELECT max(action) FROM events")[0][0]
    with Terminal([sys.executable, "-m", "dgm", "browse", str(folder)]) as shown:
        shown.wait(f"{good}/{graded}")
        seconds, cpu = time.perf_counter() - shown.begun, shown.cpu()
        print(f"  first screen with the seed's clade: {seconds:.2f} s, processor time {cpu:.2f} s")
        keys(shown, "while the run is folded")
        print(f"  folded after {shown.until(FOLDED):.1f} s", end="")
        print(f", {shown.memory_mb() - nothing:.0f} MB above an empty app", end="")
        print(f" ({shown.memory_mb('VmHWM') - nothing:.0f} MB at most)")
        shown.drain(5.0)
        keys(shown, "afterwards")
        screens(shown, nothing)
        followed(shown, folder, last)


def listed(folder: Path) -> None:
    """How soon ``dgm show`` has its first line, and all of them, once the archive is open."""
    with Run.open(folder) as run:
        begun = time.perf_counter()
        lines = render_tree(TreeView.load(run))
        next(lines)
        first = time.perf_counter() - begun
        rest = sum(1 for _ in lines)
    every = time.perf_counter() - begun
    print(
        f"  dgm show: first line {1000 * first:.0f} ms after the archive is open, {rest + 1:,} after {every:.1f} s"
    )


def screens(shown: Terminal, nothing: float) -> None:
    """The other screens: until each is there, keys on it, and what they add to the memory."""
    for key in "gmjm":
        shown.press(key)
    for key, text in SCREENS:
        begun = time.perf_counter() - shown.begun
        print(f"  screen {key} is there after {1000 * shown.press(key, text):.0f} ms")
        keys(shown, "on it")
    curve = shown.until(CURVE) - begun
    print(
        f"  its curve after {curve:.1f} s, {shown.memory_mb('VmHWM') - nothing:.0f} MB above an empty app at most"
    )
    shown.press("1")


def keys(shown: Terminal, when: str) -> None:
    took = []
    for number in range(KEYS):
        shown.drain(0.2)
        took.append(1000 * shown.press("G" if number == KEYS // 2 else "j"))
    took.sort()
    print(f"  a key {when}: median {took[KEYS // 2]:.0f} ms, the slowest of {KEYS} {took[-1]:.0f} ms")


def followed(shown: Terminal, folder: Path, last: int) -> None:
    """The share of a core that the browser takes while a writer appends."""
    with EventStore.open(folder / "events.db", write=True) as store:
        shown.drain(3.0)
        before, begun, action = shown.cpu(), time.perf_counter(), last
        while (now := time.perf_counter() - begun) < FOLLOWED_S:
            events: list[Event] = []
            while action - last < now * EVENTS_A_SECOND / 2:
                action += 1
                agent, task = AgentId(action % 1_000), TaskId("starter/task-0000")
                attempt = action - last
                graded = Evaluation(agent, task, attempt, Verdict.RESOLVED, "all tests passed", 1.0)
                events += [
                    ActionStarted(ActionId(action), Evaluate(agent, task, attempt)),
                    TaskGraded(ActionId(action), graded),
                ]
            store.append_many(events)
            shown.drain(0.1)
        share = (shown.cpu() - before) / (time.perf_counter() - begun)
    print(f"  following {EVENTS_A_SECOND} events a second: {share:.0%} of a core")


if __name__ == "__main__":
    main()
