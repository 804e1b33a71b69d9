"""A small search in a process of its own, to compare engines by what it comes to."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

EVALUATIONS = 3


def perform_search(
    archive: Path, name: str, start: Sequence[str] = (), **variables: str
) -> tuple[dict[str, Any], int]:
    """Search with the offline model in the sandbox ``docker``.

    Args:
        archive: folder of runs.
        name: of the run.
        start: command that starts a program in other surroundings.
        variables: of the environment, besides this process's own.

    Returns:
        How its evaluations ended, and the number of its model calls.
    """
    words = [*start, sys.executable, "-m", "dgm", "run", "--model", "offline", "--name", name, "--json"]
    words += ["--set", "sandbox=docker", "--workers", "1", "--max-evaluations", str(EVALUATIONS)]
    environment = {**os.environ, "DGM_ARCHIVE": str(archive), **variables}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    return found["evaluations"], found["spend"]["calls"]
