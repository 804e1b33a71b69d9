"""Shell commands, bounded in time and output."""

import contextlib
import os
import signal
import subprocess
import tempfile

OUTPUT_LIMIT = 8000
COMMAND_TIMEOUT_S = 60
MOST_READ = 10000000


def run(command, workdir, timeout_s=COMMAND_TIMEOUT_S, env=None):
    """Run a shell command; return its exit status and output. Nothing that it starts outlives it."""
    words, late = ["bash", "-c", "ulimit -f 400000\n" + command], ""
    with tempfile.TemporaryFile() as log:
        streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        process = subprocess.Popen(words, cwd=workdir, env=env, start_new_session=True, **streams)
        try:
            process.wait(max(1.0, min(timeout_s, COMMAND_TIMEOUT_S)))
        except subprocess.TimeoutExpired:
            late = "\nerror: stopped, it took too long"
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(0)
        text = log.read(MOST_READ).decode("utf-8", "replace").replace("\0", "?")
    if len(text) > OUTPUT_LIMIT:
        half, gap = OUTPUT_LIMIT // 2, len(text) - OUTPUT_LIMIT
        text = text[:half] + "\n[%d characters left out]\n" % gap + text[-half:]
    return process.returncode, text + late
