"""Requirements by name: all that strangers may ask a package index for."""

from packaging.requirements import InvalidRequirement, Requirement


def plain_requirement(text: str) -> str:
    """Return a requirement as ``NAME[extras]specifier; marker``; empty if it is an address, a path or an option."""
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return ""
    return "" if found.url else str(found)
