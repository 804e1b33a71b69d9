"""One record: the values of a line, and notes about them."""

from collections.abc import Mapping


class Record(Mapping):
    """The values by field name; they do not change, but notes may be added."""

    def __init__(self, values, line=0, notes=()):
        self._values = dict(values)
        self.line = line
        self.notes = list(notes)

    def __getitem__(self, name):
        return self._values[name]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def with_values(self, **values):
        """Return a record with some values replaced, on the same line and with the same notes."""
        changed = Record({**self._values, **values}, self.line)
        changed.notes = list(self.notes)
        return changed

    def __repr__(self):
        return f"Record({self._values!r}, line={self.line})"
