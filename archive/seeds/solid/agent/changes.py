"""The agent's changes of the repository, found without git: its files at the start against its files now."""

import difflib
import os
from itertools import islice

SKIPPED = (".git", "__pycache__", "node_modules", ".venv")
MOST_BYTES = 500000
MOST_KEPT = 60000000
MOST_FILES = 20000


def paths(root):
    """The paths of all files below a folder, relative to it."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), root)


class Baseline:
    """The files of a folder as they were; of large ones only size and time."""

    def __init__(self, root):
        self.root = root
        self.files = self.read()

    def read(self):
        """Path → content of regular files; for a large one a stand-in that no text can be."""
        found, left = {}, MOST_KEPT
        for path in islice(paths(self.root), MOST_FILES):
            full = os.path.join(self.root, path)
            if os.path.isfile(full) and not os.path.islink(full):
                about = os.stat(full)
                found[path] = b"\0%d %d" % (about.st_size, about.st_mtime_ns)
                if about.st_size <= min(MOST_BYTES, left) and os.access(full, os.R_OK):
                    left -= about.st_size
                    with open(full, "rb") as file:
                        found[path] = file.read()
        return found

    def diff(self):
        """The difference between then and now, as a unified diff."""
        now, rows = self.read(), []
        for path in sorted(set(self.files) | set(now)):
            old, new = self.files.get(path), now.get(path)
            if old == new:
                continue
            lines = []
            if b"\0" not in (old or b"") + (new or b""):
                sides = [(text or b"").decode("utf-8", "replace").splitlines() for text in (old, new)]
                names = ["/dev/null" if text is None else path for text in (old, new)]
                lines = list(difflib.unified_diff(*sides, *names, lineterm=""))
            rows += lines or ["changed: " + path]
        return "\n".join(rows)
