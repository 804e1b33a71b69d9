"""Prints how long a search takes with sinks and notifications, as a ratio to the same search without.

Run as ``python tests/perf/bench_sinks.py [EVALUATIONS PAIRS]``; by default 12 and 3. The search has the offline
model; runs with and without sinks alternate. A time is from the first event of a run to its last.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from dgm.archive.run import Run
from tests.support.listener import Listener

TENSORBOARD = (
    ("--sink", f"tensorboard:{tempfile.gettempdir()}/bench-sinks") if find_spec("tensorboard") else ()
)
OFFLINE = ("--model", "offline", "--set", "sandbox=bubblewrap", "--seed", "3", "--workers", "1")


def main() -> None:
    evaluations, pairs = (int(word) for word in sys.argv[1:3] or ("12", "3"))
    ratios = []
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as name, Listener() as listener:
        for pair in range(pairs):
            sinks = ("--notify", listener.address, "--set", 'notify.on_event="cat"', *TENSORBOARD)
            without = seconds_of(Path(name), f"without-{pair}", evaluations)
            ratios.append(seconds_of(Path(name), f"with-{pair}", evaluations, *sinks) / without)
            print(f"pair {pair + 1}: with / without = {ratios[-1]:.3f}")
        print(f"median of {pairs} pairs, {evaluations} evaluations each: {statistics.median(ratios):.3f}")
        print(f"notifications: {len(listener.titles)}")


def seconds_of(archive: Path, name: str, evaluations: int, *words: str) -> float:
    """Wall time of the sessions of a new search."""
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
