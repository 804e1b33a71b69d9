"""The history: which changes were done, and which can be done again."""

import logging

from .changes import Group
from .errors import HistoryError

log = logging.getLogger(__name__)


class History:
    """Steps that were done and steps that were undone, with a mark for the saved state.

    Args:
        document: What the changes are applied to.
        limit: How many steps can be undone at most; older ones are forgotten. ``None`` keeps all.
        join: Whether a change that continues the one before it becomes one step with it.
    """

    def __init__(self, document, limit=None, join=True):
        if limit is not None and limit < 1:
            raise ValueError("the limit must be at least 1")
        self.document = document
        self._limit = limit
        self._join = join
        self._done = []
        self._undone = []
        self._open = []
        self._saved = 0
        self._sealed = True
        self._listeners = []

    def listen(self, function):
        """Call ``function(change)`` after each change of the document, undone ones included."""
        self._listeners.append(function)

    def _apply(self, change):
        change.apply(self.document)
        log.info("%-24s -> %d lines", change, len(self.document))
        for function in self._listeners:
            function(change)

    def do(self, change):
        """Apply a change and remember it as a step, or as a part of the open group."""
        self._apply(change)
        if self._open:
            self._open[-1][1].append(change)
        else:
            self._record(change)

    def _record(self, change):
        if self._saved > len(self._done):
            self._saved = -1
        self._undone.clear()
        joined = None
        if self._join and not self._sealed and self._done and self._saved != len(self._done):
            joined = self._done[-1].joined(change)
        if joined is None:
            self._done.append(change)
        else:
            log.debug("joined into %s", joined)
            self._done[-1] = joined
        self._sealed = False
        self._forget_old()

    def _forget_old(self):
        surplus = len(self._done) - self._limit if self._limit is not None else 0
        if surplus > 0:
            del self._done[:surplus]
            log.debug("forgot %d steps", surplus)
            self._saved -= surplus

    def seal(self):
        """Let the next change begin a new step, even if it continues the last one."""
        self._sealed = True

    def begin(self, label):
        """Open a group; groups may be nested, and the outermost one becomes the step."""
        self._open.append((label, []))
        log.debug("begin %s (depth %d)", label, len(self._open))

    def commit(self):
        """Close the innermost group; an empty one leaves no trace."""
        label, changes = self._close()
        if not changes:
            return
        group = Group(label, tuple(changes))
        if self._open:
            self._open[-1][1].append(group)
        else:
            self._sealed = True
            self._record(group)

    def rollback(self):
        """Close the innermost group and take its changes back."""
        _, changes = self._close()
        for change in reversed(changes):
            self._apply(change.inverse())

    def _close(self):
        if not self._open:
            raise HistoryError("no group is open")
        return self._open.pop()

    def _need_no_group(self):
        if self._open:
            raise HistoryError(f"group {self._open[-1][0]!r} is still open")

    def undo(self, steps=1):
        """Undo up to ``steps`` steps; return how many were undone."""
        self._need_no_group()
        count = 0
        while count < steps and self._done:
            change = self._done[-1]
            self._apply(change.inverse())
            self._undone.append(self._done.pop())
            count += 1
        self._sealed = True
        return count

    def redo(self, steps=1):
        """Do up to ``steps`` undone steps again; return how many."""
        self._need_no_group()
        count = 0
        while count < steps and self._undone:
            change = self._undone[-1]
            self._apply(change)
            self._done.append(self._undone.pop())
            count += 1
        self._sealed = True
        return count

    def undo_to(self, label):
        """Undo all steps after the last one of that label; return how many."""
        names = [str(change) for change in self._done]
        if label not in names:
            raise HistoryError(f"no step {label!r} to go back to")
        return self.undo(names[::-1].index(label))

    def can_undo(self):
        return bool(self._done)

    def can_redo(self):
        return bool(self._undone)

    def done(self):
        """Return the steps that can be undone, oldest first."""
        return list(self._done)

    def undone(self):
        """Return the steps that can be redone, the next one first."""
        return self._undone[::-1]

    def mark_saved(self):
        """Take the present state for the saved one."""
        self._need_no_group()
        self._saved = len(self._done)

    def is_modified(self):
        """Tell whether the document differs from the saved state, as far as the history knows."""
        return bool(self._open) or self._saved != len(self._done)

    def fork(self):
        """Return an independent history of an independent document, with the same steps."""
        self._need_no_group()
        other = History(self.document.copy(), self._limit, self._join)
        other._done = list(self._done)
        other._undone = list(self._undone)
        other._saved = self._saved
        return other

    def restore(self, done, undone):
        """Take over steps from elsewhere; the document must be in the state after ``done``."""
        self._need_no_group()
        self._done = list(done)
        self._undone = list(undone)[::-1]
        self._saved = len(self._done)
        self._sealed = True
        self._forget_old()
