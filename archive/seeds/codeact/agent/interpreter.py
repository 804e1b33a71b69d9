"""The agent's side of the interpreter: starts it, gives it code, stops it if it takes too long."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 120
OUTPUT_LIMIT = 10000
MOST_READ = 10000000
MOST_WRITTEN = 100000000
KERNEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel.py")
LOST = "\n[the interpreter %s and starts anew: its variables are lost]"


class Interpreter:
    """A Python process that keeps its variables from one block of code to the next."""

    def __init__(self, workdir):
        self.workdir, self.process = workdir, None
        self.folder = tempfile.mkdtemp(prefix="codeact-")
        self.log = os.path.join(self.folder, "output")

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        open(self.log, "w").close()
        words, pipe = [sys.executable, "-u", KERNEL, self.log], subprocess.PIPE
        self.process = subprocess.Popen(
            words, cwd=self.workdir, stdin=pipe, stdout=pipe, start_new_session=True
        )

    def stop(self):
        if self.process:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def run(self, code, timeout_s=TIMEOUT_S):
        """Run a block of code; return its output."""
        if self.process is None or self.process.poll() is not None:
            self.stop()
            self.start()
        os.truncate(self.log, 0)
        try:
            self.process.stdin.write(json.dumps(code).encode() + b"\n")
            self.process.stdin.flush()
            reason = self.wait(time.monotonic() + max(1.0, min(timeout_s, TIMEOUT_S)))
        except OSError:
            reason = "ended"
        if reason:
            self.stop()
        return shorten(self.log) + (LOST % reason if reason else "")

    def wait(self, end):
        """Wait for the end of a block; return why the interpreter has to be started anew, or nothing."""
        while not select.select([self.process.stdout], [], [], 0.2)[0]:
            if os.path.getsize(self.log) > MOST_WRITTEN:
                return "printed too much"
            if time.monotonic() > end:
                return "took too long"
        return "" if os.read(self.process.stdout.fileno(), 100) else "ended"


def shorten(path):
    """Return what a file holds, without the middle of a long text."""
    with open(path, "rb") as file:
        text = file.read(MOST_READ).decode("utf-8", "replace").replace("\0", "?")
    if len(text) <= OUTPUT_LIMIT:
        return text
    half, gap = OUTPUT_LIMIT // 2, len(text) - OUTPUT_LIMIT
    return text[:half] + "\n[%d characters left out]\n" % gap + text[-half:]
