"""What the agent changed in the repository, found without git: a reading of it at the start, and another now."""

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
        self.left = MOST_KEPT
        self.files = self.read()

    def read(self):
        """Path → (size and time, content or None), of regular files."""
        found = {}
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if name not in SKIPPED)
            for name in sorted(names):
                path = os.path.join(folder, name)
                if len(found) >= MOST_FILES or os.path.islink(path) or not os.path.isfile(path):
                    continue
                state = os.stat(path)
                found[os.path.relpath(path, self.root)] = (
                    (state.st_size, state.st_mtime_ns),
                    self.content(path, state),
                )
        return found

    def content(self, path, state):
        if state.st_size > min(MOST_BYTES, self.left):
            return None
        self.left -= state.st_size
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            return None

    def diff(self):
        """The difference between then and now, as a unified diff."""
        self.left = MOST_KEPT
        now, rows = self.read(), []
        for path in sorted(set(self.files) | set(now)):
            (state, old), (newer, new) = self.files.get(path, (None, b"")), now.get(path, (None, b""))
            if old is None or new is None or b"\0" in old + new:
                rows += ["changed: " + path] if state != newer else []
            elif old != new or state is None or newer is None:
                sides = [text.decode("utf-8", "replace").splitlines() for text in (old, new)]
                names = ["/dev/null" if one is None else path for one in (state, newer)]
                rows += list(
                    difflib.unified_diff(sides[0], sides[1], names[0], names[1], lineterm="", n=3)
                ) or [path]
        text = "\n".join(rows)
        if len(text) <= MOST_SHOWN:
            return text
        return text[:MOST_SHOWN] + "\n[%d characters more]" % (len(text) - MOST_SHOWN)
