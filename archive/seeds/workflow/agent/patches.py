"""Candidate patches: read from answers, applied, compared, and chosen by tests and majority."""

import ast
import contextlib
import os
import re
from collections import Counter
from typing import NamedTuple

BLOCK = re.compile(
    r"^#{2,4} `?([^\s`]+)`?[ \t]*\n(?:```\w*\n)?<{5,} SEARCH\n(.*?)^={5,}\n(.*?)^>{5,} REPLACE", re.M | re.S
)


class Candidate(NamedTuple):
    """An applied patch: normal form, 1 - score of the visible tests, 1 if the script still shows the problem."""

    state: str
    key: str
    failures: float
    reproduced: int


def apply(root, blocks):
    """Make the replacements; return why one cannot be made, or nothing."""
    for path, old, new in blocks:
        full = os.path.realpath(os.path.join(root, path))
        if not full.startswith(os.path.realpath(root) + os.sep):
            return "%s is not in the repository" % path
        text = ""
        if os.path.exists(full) or old.strip():
            try:
                with open(full, encoding="utf-8", errors="surrogateescape", newline="") as file:
                    text = file.read()
            except OSError as error:
                return str(error)
            if not old.strip() or text.count(old) != 1:
                return "the SEARCH part occurs %d times in %s" % (text.count(old), path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text.replace(old, new) if text else new)
    return "" if blocks else "no blocks"


def normal_form(files):
    """Return what two patches have in common that differ in comments and spaces only, from path → new text."""
    forms = {path: "".join(text.split()) for path, text in files.items()}
    for path, text in files.items():
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            forms[path] = ast.dump(ast.parse(text)) if path.endswith(".py") else forms[path]
    return repr(sorted(forms.items()))


def choose(candidates):
    """Return the best candidate: fewest failing tests, then the script's verdict, then the most frequent form."""
    best = min(((c.failures, c.reproduced) for c in candidates), default=None)
    equal = [c for c in candidates if (c.failures, c.reproduced) == best]
    votes = Counter(candidate.key for candidate in equal)
    return max(equal, key=lambda candidate: votes[candidate.key], default=None)
