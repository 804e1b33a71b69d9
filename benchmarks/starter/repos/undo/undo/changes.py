"""Changes of a document; each one knows its inverse."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Insert:
    """Lines put before line ``at``."""

    at: int
    lines: tuple

    def apply(self, document):
        document.put(self.at, self.lines)

    def inverse(self):
        return Delete(self.at, self.lines)

    def shift(self, line):
        """Return where a line is after the change."""
        return line + len(self.lines) if line >= self.at else line

    def joined(self, later):
        """Return one change for this one and a later one that continues it, else ``None``."""
        if isinstance(later, Insert) and later.at == self.at + len(self.lines):
            return Insert(self.at, self.lines + later.lines)
        return None

    def size(self):
        return len(self.lines)

    def __str__(self):
        return f"insert {len(self.lines)} at {self.at}"


@dataclass(frozen=True)
class Delete:
    """Lines taken away from line ``at`` on."""

    at: int
    lines: tuple

    def apply(self, document):
        document.take(self.at, self.lines)

    def inverse(self):
        return Insert(self.at, self.lines)

    def shift(self, line):
        """Return where a line is after the change; a removed line becomes the one behind it."""
        if line < self.at:
            return line
        return max(line - len(self.lines), self.at)

    def joined(self, later):
        if not isinstance(later, Delete):
            return None
        if later.at == self.at:
            return Delete(self.at, self.lines + later.lines)
        if later.at + len(later.lines) == self.at:
            return Delete(later.at, later.lines + self.lines)
        return None

    def size(self):
        return len(self.lines)

    def __str__(self):
        return f"delete {len(self.lines)} at {self.at}"


@dataclass(frozen=True)
class Group:
    """Several changes that are done and undone together."""

    label: str
    changes: tuple

    def apply(self, document):
        """Apply all changes, or none if one of them does not fit."""
        done = []
        try:
            for change in self.changes:
                change.apply(document)
                done.append(change)
        except ValueError:
            for change in reversed(done):
                change.inverse().apply(document)
            raise

    def inverse(self):
        return Group(self.label, tuple(change.inverse() for change in reversed(self.changes)))

    def shift(self, line):
        for change in self.changes:
            line = change.shift(line)
        return line

    def joined(self, later):
        return None

    def size(self):
        return sum(change.size() for change in self.changes)

    def __str__(self):
        return self.label
