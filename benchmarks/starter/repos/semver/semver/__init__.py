"""Semantic versions, ranges over them and a small dependency resolver."""

from .bump import Change, next_version
from .lock import LockError, dump_lock, load_lock
from .ranges import Interval, Range, RangeError
from .resolve import Conflict, Index, resolve
from .version import Version, VersionError

__all__ = [
    "Change",
    "Conflict",
    "Index",
    "Interval",
    "LockError",
    "Range",
    "RangeError",
    "Version",
    "VersionError",
    "dump_lock",
    "load_lock",
    "next_version",
    "resolve",
]
