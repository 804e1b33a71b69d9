"""Prints what a report costs: gathering the facts of a long run, drawing its page, and how large that is.

Run as ``python tests/perf/bench_report.py [AGENTS EVALUATIONS]``; by default 1,000 and 20,000, ten model calls each.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.runs.large import large_run


def main() -> None:
    agents, evaluations = (int(word) for word in sys.argv[1:3] or ("1000", "20000"))
    with tempfile.TemporaryDirectory(prefix="dgm-bench-") as name:
        folder = Path(name) / "large"
        start = time.perf_counter()
        large_run(folder, agents, evaluations).close()
        print(
            f"a run of {agents:,} agents, {evaluations:,} evaluations, {11 * evaluations:,} model calls and more"
        )
        print(f"  (made in {time.perf_counter() - start:.0f} s, not a part of what follows)")
        page = Path(name) / "report.html"
        for words in (("--html", page), ("--figures", Path(name) / "figures"), ("--json",), ()):
            took = asked(folder, *words)
            print(f"dgm report {' '.join(map(str, words[:1])):<10} {took}")
        print(f"the page has {page.stat().st_size / 1e6:.2f} MB")


def asked(folder: Path, *words: object) -> str:
    """One command as a user starts it: wall time, processor time."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "dgm", "report", str(folder), *map(str, words)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{seconds:.1f} s (processor time {cpu:.1f} s; peak so far {after.ru_maxrss / 1024:.0f} MB)"


if __name__ == "__main__":
    main()
