"""Prints what browsing a big run costs: time to the first screen, memory, keys, and following a writer.

Run as ``python -m tests.perf.bench_browse [AGENTS EVALUATIONS]``; by default 10,000 and 100,000.
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
from pathlib import Path
from typing import Self

from dgm.archive.events import ActionStarted, Event, TaskGraded
from dgm.archive.store import EventStore
from dgm.domain import ActionId, AgentId, Evaluate, Evaluation, TaskId, Verdict
from tests.support.runs.large import large_run

TABS = (("2", "Facts"), ("3", "solved by"), ("5", "Recent events"))
"""Keys, and the words of their tabs."""
KEYS = 20
FOLLOWED_S, EVENTS_A_SECOND = 30, 50
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[P_^].*?\x1b\\\\|\x1b.")


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

    def wait(self, text: str, seconds: float = 300.0) -> float:
        """Return the seconds until the program writes the text, colours left out; any output for an empty text."""
        start, output = time.perf_counter(), ""
        while time.perf_counter() - start < seconds:
            if select.select([self._master], [], [], 0.2)[0]:
                raw = os.read(self._master, 1 << 20).decode(errors="ignore")
                output = (output + _ESCAPES.sub("", raw))[-200_000:]
                if text in output and raw:
                    return time.perf_counter() - start
        raise TimeoutError(f"no {text!r} within {seconds} s; last: {output[-2000:]!r}")

    def drain(self, seconds: float) -> None:
        """Read what is written for a while."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self._master], [], [], left)[0]:
                os.read(self._master, 1 << 20)

    def press(self, key: str, text: str = "") -> float:
        """Return the seconds from a key to the next output, or to a text."""
        os.write(self._master, key.encode())
        return self.wait(text, 60.0)

    def memory_mb(self) -> float:
        """Return the memory that the process holds."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split("kB")[0]) / 1024

    def cpu_s(self) -> float:
        """Return the processor time that the process has taken."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._master)


def main() -> None:
    agents, evaluations = map(int, sys.argv[1:] or ("10000", "100000"))
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as name:
        folder = Path(name) / "run"
        with large_run(folder, agents, evaluations, calls=0, commits=False) as run:
            last = run.tree.next_action
        print(f"{agents:,} agents, {evaluations:,} evaluations")
        with Terminal([sys.executable, "-m", "dgm", "browse", str(folder)]) as shown:
            shown.wait("reading")
            seconds = time.perf_counter() - shown.begun
            print(f"  first screen: {seconds:.2f} s, processor time {shown.cpu_s():.2f} s")
            shown.wait(" evaluations")
            seconds = time.perf_counter() - shown.begun
            print(
                f"  tree: {seconds:.1f} s, processor time {shown.cpu_s():.1f} s, {shown.memory_mb():.0f} MB"
            )
            shown.drain(5.0)
            press_keys(shown, "in the tree")
            for key, text in TABS:
                print(f"  tab {key} is there after {1000 * shown.press(key, text):.0f} ms")
                press_keys(shown, "in it")
            shown.press("1")
            follow(shown, folder, last)


def press_keys(shown: Terminal, where: str) -> None:
    took = []
    for number in range(KEYS):
        shown.drain(0.2)
        took.append(1000 * shown.press("k" if number % 2 else "j"))
    took.sort()
    print(f"  a key {where}: median {took[KEYS // 2]:.0f} ms, the slowest of {KEYS} {took[-1]:.0f} ms")


def follow(shown: Terminal, folder: Path, last: int) -> None:
    """Print the share of a core that the browser takes while a writer appends."""
    with EventStore.open(folder / "events.db", write=True) as store:
        shown.drain(3.0)
        before, begun, action = shown.cpu_s(), time.perf_counter(), last
        while (now := time.perf_counter() - begun) < FOLLOWED_S:
            events: list[Event] = []
            while action - last < now * EVENTS_A_SECOND / 2:
                agent, task = AgentId(action % 1_000), TaskId("starter/task-0000")
                graded = Evaluation(agent, task, action - last, Verdict.RESOLVED, "all tests passed", 1.0)
                events += [
                    ActionStarted(ActionId(action), Evaluate(agent, task, action - last)),
                    TaskGraded(ActionId(action), graded),
                ]
                action += 1
            store.append_many(events)
            shown.drain(0.1)
        share = (shown.cpu_s() - before) / (time.perf_counter() - begun)
    print(f"  following {EVENTS_A_SECOND} events a second: {share:.0%} of a core")


if __name__ == "__main__":
    main()
