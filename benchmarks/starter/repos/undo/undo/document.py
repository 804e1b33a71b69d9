"""The document: a list of lines that only changes by insertions and removals."""

from .errors import ConflictError


class Document:
    """Lines of text, counted from 0."""

    def __init__(self, lines=()):
        self._lines = list(lines)

    @classmethod
    def from_text(cls, text):
        """Make a document of a text; the empty text has no lines."""
        return cls(text.split("\n") if text else [])

    def copy(self):
        """Return an independent document of the same lines."""
        return Document(self._lines)

    def lines(self, start=0, stop=None):
        """Return lines as a new list."""
        return self._lines[start:stop]

    def text(self):
        return "\n".join(self._lines)

    def __len__(self):
        return len(self._lines)

    def __eq__(self, other):
        return isinstance(other, Document) and self._lines == other._lines

    __hash__ = None

    def put(self, at, lines):
        """Insert lines before line ``at``."""
        if not 0 <= at <= len(self._lines):
            raise ConflictError(f"line {at} is outside of 0..{len(self._lines)}")
        self._lines[at:at] = lines

    def take(self, at, lines):
        """Remove exactly these lines, which must stand at ``at``."""
        end = at + len(lines)
        if at < 0 or self._lines[at:end] != list(lines):
            raise ConflictError(f"the lines to remove are not at line {at}")
        del self._lines[at:end]
