"""Prints what the data of the tree page and of tasks × agents cost for a long run, as shares of opening the run.

Run as ``python -m tests.perf.bench_pages [AGENTS EVALUATIONS_OF_AN_AGENT]``; by default 100,000 and 1.
"""

import gzip
import sys
import tempfile
import time
from pathlib import Path

from dgm.archive.run import Run
from dgm.views.run import RunReader
from dgm.web.matrix import AGENTS, load_cells, load_tasks
from dgm.web.shared import RunSource
from dgm.web.tree import load_matches, load_tree
from tests.support.runs.bushy import bushy_run

CHANGES = 300


def main() -> None:
    agents, per_agent = (int(word) for word in sys.argv[1:3] or ("100000", "1"))
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as name:
        folder = Path(name) / "long"
        bushy_run(folder, agents, per_agent=per_agent).close()
        began = time.perf_counter()
        with Run.open(folder) as run:
            opening_s = time.perf_counter() - began
            print(f"a run of {agents:,} agents and {run.tree.evaluations:,} evaluations; opening it is 100 %")
            source = RunSource(RunReader(run))
            source.best()
            few = ",".join(map(str, range(0, min(agents, 8 * AGENTS), 8)))
            parts = {
                "tree, all agents": lambda: load_tree(source, {}),
                f"tree, the last {CHANGES} events": lambda: load_tree(
                    source, {"since": str(run.tree.seq - CHANGES)}
                ),
                "tree, compressed": lambda: gzip.compress(load_tree(source, {}), 6),
                "search without a match": lambda: load_matches(source, {"words": "nothing has this"}),
                "tasks": lambda: load_tasks(source, {}),
                f"cells of {AGENTS} agents": lambda: load_cells(source, {"agents": few}),
            }
            for part, load in parts.items():
                print(
                    f"{part:<28} {measure(load) / opening_s:7.2%}  {len(load()) / agents:6.2f} bytes an agent"
                )


def measure(load) -> float:
    """Return the least of three durations, in seconds."""
    durations = []
    for _ in range(3):
        began = time.perf_counter()
        load()
        durations.append(time.perf_counter() - began)
    return min(durations)


if __name__ == "__main__":
    main()
