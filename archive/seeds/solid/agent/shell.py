"""Commands: each runs in a shell of its own that goes on where the last one ended, so a stuck one harms no other."""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

COMMAND_TIMEOUT_S = 60
OUTPUT_LIMIT = 10000
MOST_WRITTEN = 50000000
SCRIPT = """[ ! -f {state}/variables ] || . {state}/variables
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
        """Run a command; return its output, shortened, and its exit status if that is not 0."""
        self.count += 1
        log = os.path.join(self.state, "%d.txt" % self.count)
        with open(
            os.path.join(self.state, "command"), "w", encoding="utf-8", errors="surrogateescape"
        ) as file:
            file.write(command + "\n")
        script = SCRIPT.replace("{state}", shlex.quote(self.state))
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [self.program, "-c", script],
                cwd=self.folder(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        stopped = wait(process, log, timeout_s)
        text = shorten(log)
        if stopped:
            return text + "\nerror: " + stopped
        return text + ("\nexit status %d" % process.returncode if process.returncode else "")

    def folder(self):
        """Where the last command ended."""
        try:
            with open(os.path.join(self.state, "folder"), encoding="utf-8", errors="surrogateescape") as file:
                folder = file.read()[:-1]
        except OSError:
            return self.workdir
        return folder if os.path.isdir(folder) else self.workdir


def wait(process, log, timeout_s):
    """Wait for a command; why it was stopped, or nothing."""
    end = time.monotonic() + timeout_s
    pause = 0.002
    while process.poll() is None:
        why = ""
        if time.monotonic() > end:
            why = "stopped after %d s. Start what takes longer with `command > file 2>&1 &`." % timeout_s
        elif os.path.getsize(log) > MOST_WRITTEN:
            why = "stopped: it printed more than %d MB." % (MOST_WRITTEN // 1000000)
        if why:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return why
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    return ""


def shorten(log):
    """The head and the tail of what a file holds, and how to see the rest."""
    size = os.path.getsize(log)
    with open(log, "rb") as file:
        if size <= OUTPUT_LIMIT:
            return file.read().decode("utf-8", "replace")
        head = file.read(OUTPUT_LIMIT // 2).decode("utf-8", "replace")
        file.seek(-(OUTPUT_LIMIT // 2), os.SEEK_END)
        tail = file.read().decode("utf-8", "replace")
    hint = "[%d bytes left out; all is in %s: grep it, or sed -n '100,200p' it]"
    return head + "\n" + hint % (size - OUTPUT_LIMIT, log) + "\n" + tail
