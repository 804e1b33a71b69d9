"""The agent's changes of the repository, found without git: its files at the start against its files now."""

import difflib
import os

from agent.prompts import SKIPPED

MOST_BYTES = 500000
MOST_KEPT = 60000000
MOST_FILES = 20000
MOST_SHOWN = 20000


class Baseline:
    """The files of a folder as they were; of large ones only size and time."""

    def __init__(self, root):
        self.root = root
        self.files = self.read()

    def read(self):
        """Path → content of regular files; for a large one a stand-in that no text can be."""
        found, left = {}, MOST_KEPT
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if name not in SKIPPED)
            for path in (os.path.join(folder, name) for name in sorted(names)):
                if len(found) >= MOST_FILES or os.path.islink(path) or not os.path.isfile(path):
                    continue
                size = os.path.getsize(path)
                content = b"\0%d %d" % (size, os.stat(path).st_mtime_ns)
                if size <= min(MOST_BYTES, left) and os.access(path, os.R_OK):
                    with open(path, "rb") as file:
                        content = file.read()
                    left -= size
                found[os.path.relpath(path, self.root)] = content
        return found

    def diff(self):
        """The difference between then and now, as a unified diff."""
        now, rows = self.read(), []
        for path in sorted(set(self.files) | set(now)):
            old, new = self.files.get(path), now.get(path)
            if old == new:
                continue
            if b"\0" in (old or b"") + (new or b""):
                rows.append("changed: " + path)
                continue
            sides = [(text or b"").decode("utf-8", "replace").splitlines() for text in (old, new)]
            names = ["/dev/null" if text is None else path for text in (old, new)]
            rows += list(difflib.unified_diff(*sides, *names, lineterm="")) or ["changed: " + path]
        text = "\n".join(rows)
        return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "\n[%d lines in all]" % len(rows)
