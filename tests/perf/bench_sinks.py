"""Prints how long a search takes with sinks and notifications, as ratios to the same without.

Run as ``python tests/perf/bench_sinks.py [EVALUATIONS PAIRS]``; by default 8 and 3. Runs with and without alternate.

* A search with the offline model: from its first event to its last.
* A process that appends 50 events a second for ten seconds: time in which it waits for its log.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from dgm.archive.run import Run
from dgm.config import NotifySettings, Settings, SinksSettings
from dgm.sinks.companion import start_companion
from tests.support.listener import Listener
from tests.support.runs.growing import Growing

OFFLINE = ("--model", "offline", "--set", "sandbox=bubblewrap", "--seed", "3", "--workers", "1")
EVENTS, PER_SECOND = 500, 50


def main() -> None:
    evaluations, pairs = (int(word) for word in sys.argv[1:3] or ("8", "3"))
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as name, Listener() as listener:
        archive = Path(name)
        sinks = (f"tensorboard:{archive}/tb",) if find_spec("tensorboard") else ()
        settings = Settings(sinks=SinksSettings(to=sinks), notify=NotifySettings(to=(listener.address,)))
        words = ("--notify", listener.address, *(word for sink in sinks for word in ("--sink", sink)))
        nothing = Settings()
        compare(
            f"appending {PER_SECOND} events a second",
            lambda label: append_s(archive / f"append-{label}", settings if "with" in label else nothing),
            pairs,
        )
        compare(
            f"a search of {evaluations} evaluations",
            lambda label: search_s(archive, label, evaluations, words if "with" in label else ()),
            pairs,
        )
        print(f"notifications: {len(listener.titles)}; sinks: {', '.join(sinks) or 'none'}")


def compare(what: str, seconds_of: Callable[[str], float], pairs: int) -> None:
    """Print the median ratio of pairs."""
    ratios = []
    for pair in range(pairs):
        without = seconds_of(f"plain-{pair}")
        ratios.append(seconds_of(f"with-{pair}") / without)
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"{what}: with / without = {statistics.median(ratios):.2f} (median of {each})", flush=True)


def append_s(folder: Path, settings: Settings) -> float:
    """Seconds in which a process waits for its log."""
    waits = 0.0
    with start_companion(settings) as name_run, contextlib.closing(Growing(folder).run) as run:
        growing = Growing.__new__(Growing)
        growing.run = run
        name_run(run, 0)
        for number in range(EVENTS // 2):
            if number % 8 == 0:
                growing.born(0)
            began = time.perf_counter()
            growing.graded(len(run.tree.agents) - 1, number % 8, good=bool(number % 3))
            waits += time.perf_counter() - began
            time.sleep(2 / PER_SECOND)
    return waits


def search_s(archive: Path, name: str, evaluations: int, words: tuple[str, ...]) -> float:
    """Wall time of a new search."""
    command = [sys.executable, "-m", "dgm", "run", *OFFLINE, "--name", name]
    subprocess.run(
        [*command, "--max-evaluations", str(evaluations), *words],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "DGM_ARCHIVE": str(archive)},
    )
    with Run.open(archive / name) as run:
        return run.tree.wall_seconds


if __name__ == "__main__":
    main()
