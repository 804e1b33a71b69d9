"""Commands: each runs in a shell of its own that goes on where the last one ended, so a stuck one harms no other."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from agent import editing

COMMAND_TIMEOUT_S = 60
OUTPUT_LIMIT = 10000
MOST_WRITTEN = 50000000
LATE = "\nerror: stopped after %d s. Start what takes longer with `command > file 2>&1 &`."
FULL = "\nerror: stopped: it printed more than %d MB." % (MOST_WRITTEN // 1000000)
HINT = "\n[%d bytes left out; all is in %s: grep it, or sed -n '100,200p' it]\n"
SCRIPT = """exec </dev/null 2>&1
[ ! -f {state}/variables ] || . {state}/variables
trap 'code=$?; export -p >{state}/variables; pwd >{state}/folder; exit $code' EXIT
. {state}/command
"""


class Shell:
    """Runs commands; working directory and exported variables persist, background processes go on."""

    def __init__(self, workdir):
        self.workdir = workdir
        self.program = shutil.which("bash") or shutil.which("sh") or "/bin/sh"
        self.count = 0
        self.state = os.path.join(tempfile.gettempdir(), "agent-output")
        try:
            # The same name each time, where it is free: a repeated job then asks its model the same.
            os.mkdir(self.state)
        except OSError:
            self.state = tempfile.mkdtemp(prefix="agent-output-")

    def close(self):
        shutil.rmtree(self.state, ignore_errors=True)

    def run(self, command, timeout_s=COMMAND_TIMEOUT_S):
        """Run a command; return its output, shortened, and why it failed if it did."""
        self.count += 1
        log = os.path.join(self.state, "%d.txt" % self.count)
        editing.write(os.path.join(self.state, "command"), command + "\n")
        words = [self.program, "-c", SCRIPT.replace("{state}", shlex.quote(self.state))]
        # No pager and no editor may wait for a key.
        env = dict(os.environ, PAGER="cat", GIT_EDITOR="true", TERM="dumb")
        with open(log, "wb") as output:
            process = subprocess.Popen(
                words, cwd=self.folder(), env=env, stdout=output, start_new_session=True
            )
        why = wait(process, log, timeout_s)
        return shorten(log) + (why or ("\nexit status %d" % process.returncode if process.returncode else ""))

    def folder(self):
        """Where the last command ended."""
        file = os.path.join(self.state, "folder")
        folder = editing.read(file)[:-1] if os.path.exists(file) else ""
        return folder if os.path.isdir(folder) else self.workdir


def wait(process, log, timeout_s):
    """Wait for a command; why it was stopped, or nothing."""
    end, late, full = time.monotonic() + timeout_s, False, False
    while process.returncode is None and not (late or full):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
        late, full = time.monotonic() > end, os.path.getsize(log) > MOST_WRITTEN
    if process.returncode is not None:
        return ""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return LATE % timeout_s if late else FULL


def shorten(log):
    """The head and the tail of what a file holds, and how to see the rest."""
    size = os.path.getsize(log)
    with open(log, "rb") as file:
        if size <= OUTPUT_LIMIT:
            return file.read().decode("utf-8", "replace")
        head = file.read(OUTPUT_LIMIT // 2).decode("utf-8", "replace")
        file.seek(-(OUTPUT_LIMIT // 2), os.SEEK_END)
        return head + HINT % (size - OUTPUT_LIMIT, log) + file.read().decode("utf-8", "replace")
