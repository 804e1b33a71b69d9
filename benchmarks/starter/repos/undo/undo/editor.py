"""The editor: what a user does to a document, and the cursors in it."""

import logging
from contextlib import contextmanager

from .changes import Delete, Insert
from .history import History

log = logging.getLogger(__name__)


class Editor:
    """Edit a document step by step; named cursors stay with their lines."""

    def __init__(self, document, limit=None, join=True):
        self.history = History(document, limit, join)
        self.cursors = {}
        self.history.listen(self._follow)

    @property
    def document(self):
        return self.history.document

    def _follow(self, change):
        for name, line in self.cursors.items():
            self.cursors[name] = change.shift(line)
            log.debug("cursor %s: %d -> %d", name, line, self.cursors[name])

    def place(self, name, line):
        """Put a cursor at a line."""
        self.cursors[name] = max(0, min(line, len(self.document)))

    def insert(self, at, lines):
        self.history.do(Insert(at, tuple(lines)))

    def append(self, *lines):
        self.insert(len(self.document), lines)

    def delete(self, at, count=1):
        """Remove lines; fewer if the document ends before."""
        lines = self.document.lines(at, at + count)
        if lines:
            self.history.do(Delete(at, tuple(lines)))

    def replace(self, at, count, lines):
        """Remove lines and put others in their place, in one step."""
        with self.step("replace"):
            self.delete(at, count)
            self.insert(at, lines)

    def move(self, at, count, to):
        """Move lines so that they stand before line ``to``, counted before the move."""
        lines = self.document.lines(at, at + count)
        if at <= to <= at + len(lines):
            return
        with self.step("move"):
            self.delete(at, count)
            self.insert(to - len(lines) if to > at else to, lines)

    @contextmanager
    def step(self, label):
        """Make all changes of a ``with`` block one step; an error in it takes them back."""
        self.history.begin(label)
        try:
            yield self
        except BaseException:
            self.history.rollback()
            raise
        self.history.commit()

    def undo(self, steps=1):
        return self.history.undo(steps)

    def redo(self, steps=1):
        return self.history.redo(steps)
