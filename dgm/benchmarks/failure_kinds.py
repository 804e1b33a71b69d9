"""The kind of a failure as agents may learn of it: a name that graded code cannot fill with text."""

import builtins
import re

OWN_KIND = "an exception of its own kind"
_KIND = re.compile(r"(?:E\s+)?(?:[\w.]*\.)?(\w+(?:Error|Exception|Exit|Interrupt|Iteration|Warning))\b")


def known_kind(line: str) -> str:
    """Return the name of Python's exception with which a line of a report begins.

    Return ``OWN_KIND`` for another exception, and an empty text if the line names none.
    """
    found = _KIND.match(line.strip())
    if not found:
        return ""
    kind = getattr(builtins, found[1], None)
    return found[1] if isinstance(kind, type) and issubclass(kind, BaseException) else OWN_KIND
