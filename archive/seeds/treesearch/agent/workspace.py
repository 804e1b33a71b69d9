"""The states of the repository: saved, restored, compared and tested; kept by git outside the repository."""

import os
import re
import shutil
import subprocess
import tempfile

from agent.tools import run

MOST_DIFF = 12000
COMMANDS = {
    "agent.toml": "python3 -m agent --check",
    "Cargo.toml": "cargo test --offline -q",
    "go.mod": "go test ./...",
    "package.json": "npm test --silent",
    "": "python3 -c 'import pytest' 2>&- && T='pytest -q -p no:cacheprovider'; python3 -m ${T:-unittest}",
}
"""File at the top of a repository → the command that runs its visible tests."""
EXACT = "* -text -filter -ident -working-tree-encoding\n"
FAILURES = re.compile(r"(\d+) (?:failed|errors?)\b|(?:failures|errors)=(\d+)")


class Workspace:
    """The repository of a job. Its states are trees of another git repository, so nothing is left in this one."""

    def __init__(self, workdir):
        self.workdir, self.store, self.tested = workdir, tempfile.mkdtemp(prefix="agent-states-"), {}
        self.git("init", "-q")
        with open(os.path.join(self.store, "info", "attributes"), "w") as file:
            file.write(EXACT)
        self.start = self.save()

    def git(self, *words):
        command = ["git", "--git-dir=" + self.store, "--work-tree=" + self.workdir, *words]
        done = subprocess.run(command, cwd=self.workdir, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            raise OSError(done.stderr.decode("utf-8", "replace")[-300:])
        return done.stdout.decode("utf-8", "replace")

    def close(self):
        shutil.rmtree(self.store, ignore_errors=True)

    def save(self):
        """Return the id of the present state: the same for the same files."""
        self.git("add", "-A", ".")
        return self.git("write-tree").strip()

    def restore(self, state):
        self.git("add", "-A", ".")
        self.git("read-tree", "--reset", "-u", state)

    def diff(self, state, since=""):
        text = self.git("diff", since or self.start, state)
        return text if len(text) <= MOST_DIFF else text[:MOST_DIFF] + "\n[the rest is left out]"

    def test(self, timeout_s):
        """Return the score of the visible tests on the present state and their output, and undo what they write."""
        state = self.save()
        if state not in self.tested:
            name = next(name for name in COMMANDS if os.path.exists(os.path.join(self.workdir, name)))
            status, output = run(COMMANDS[name], self.workdir, timeout_s)
            self.restore(state)
            self.tested[state] = (score(status, output), output)
        return self.tested[state]


def score(status, output):
    """Return 1.0 if tests pass (5: there are none), else 1/2 to 0 by the number of failures; 0 without a number."""
    failures = sum(int(one or other) for one, other in FAILURES.findall(output[-3000:]))
    return 1.0 if status in (0, 5) else 1.0 / (1 + failures) if failures else 0.0
