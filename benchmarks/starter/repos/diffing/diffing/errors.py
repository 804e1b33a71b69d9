"""What can go wrong with diffs."""


class DiffError(Exception):
    """Any fault of a diff."""


class PatchSyntaxError(DiffError, ValueError):
    """A text is not a unified diff."""


class PatchConflict(DiffError, ValueError):
    """A diff does not fit the lines that it is applied to."""
