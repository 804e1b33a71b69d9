"""The next version of a package, from the changes since its last release."""

from __future__ import annotations

import enum
import logging
from typing import Iterable

from .version import Version

log = logging.getLogger(__name__)


class Change(enum.IntEnum):
    """How much a change may disturb callers, the mildest first."""

    FIX = 1
    FEATURE = 2
    BREAKING = 3


def next_version(current: Version, changes: Iterable[Change]) -> Version:
    """The version to release; without any change it is the current one.

    Before 1.0.0 a breaking change moves the minor number and anything else the patch number.
    """
    weight = max(changes, default=None)
    log.debug("heaviest change since %s: %s", current, weight)
    if weight is None:
        return current
    if current.major == 0:
        weight = Change.FEATURE if weight is Change.BREAKING else Change.FIX
    if weight is Change.BREAKING:
        return current.next_major()
    if weight is Change.FEATURE:
        return current.next_minor()
    return current.next_patch()
