"""A process beside a node's actor that outlives it, however that ended, and removes the sandboxes that it left."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

_PAUSES_S = (0.0, 2.0, 10.0)
"""Pauses before each look: an engine may still be opening what was asked of it."""


def start_reaper(node_engine: str, labels: Mapping[str, str], folder: Path) -> IO[bytes]:
    """Start the process; it waits until the returned pipe is closed, also by the death of this process.

    Args:
        node_engine: the engine that opens the sandboxes, as a setting.
        labels: of the sandboxes that are removed.
        folder: that is removed, too.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps([node_engine, dict(labels), str(folder)])],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    process.wait()  # it goes on as a process of its own: Ray kills the children of its workers
    assert process.stdin is not None
    return process.stdin


def main() -> None:
    """Wait for the end of standard input, then clean up."""
    node_engine, labels, folder = json.loads(sys.argv[1])
    if os.fork():
        os._exit(0)
    sys.stdin.buffer.read()
    import asyncio

    from dgm.errors import DgmError
    from dgm.sandboxes.ray.node import open_node_engine

    shutil.rmtree(folder, ignore_errors=True)
    for pause_s in _PAUSES_S:
        time.sleep(pause_s)
        try:
            asyncio.run(open_node_engine(node_engine).reap(labels))
        except (DgmError, OSError) as error:
            sys.stderr.write(f"dgm: sandboxes of a node may be left: {error}\n")


if __name__ == "__main__":
    main()
