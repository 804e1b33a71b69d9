"""What can go wrong with a history."""


class HistoryError(Exception):
    """The history cannot do what it was asked for."""


class ConflictError(HistoryError, ValueError):
    """A change does not fit the document that it is applied to."""
