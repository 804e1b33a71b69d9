"""Requirements by name: all that strangers may ask a package index for."""

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

_PLAIN = re.compile(r"""[\w.\[\],<>=!~*+;'"() -]+""", re.ASCII)
"""A requirement without anything that an installer could take for an address, a path or a variable."""


def plain_requirement(text: str) -> str:
    """Return a requirement as ``NAME[extras]specifier; marker``; empty if it is an address, a path or an option."""
    try:
        parsed = Requirement(text.strip())
    except (InvalidRequirement, RecursionError):
        return ""
    parsed.name = canonicalize_name(parsed.name)
    return str(parsed) if not parsed.url and _PLAIN.fullmatch(str(parsed)) else ""
