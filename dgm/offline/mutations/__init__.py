"""Single-place changes of Python source: the repairs that the offline model can propose."""

from collections.abc import Iterator

from dgm.offline.mutations import calls, comparisons, names, quantities, statements
from dgm.offline.mutations.code import Change, Code

ALL = (
    *comparisons.OPERATORS,
    *quantities.OPERATORS,
    *calls.OPERATORS,
    *names.OPERATORS,
    *statements.OPERATORS,
)
"""Every operator, in a fixed order."""


def changes(code: Code) -> Iterator[Change]:
    """Yield all changes that any operator proposes for a unit."""
    for operator in ALL:
        yield from operator(code)
