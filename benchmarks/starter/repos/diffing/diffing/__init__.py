"""Compare, patch and merge lists of lines."""

from .errors import DiffError, PatchConflict, PatchSyntaxError
from .merging import Merged, merge
from .script import Edit, compare, similarity
from .unified import FilePatch, Hunk, apply_patch, parse_patch, unified
from .words import mark_words

__all__ = [
    "DiffError",
    "Edit",
    "FilePatch",
    "Hunk",
    "Merged",
    "PatchConflict",
    "PatchSyntaxError",
    "apply_patch",
    "compare",
    "mark_words",
    "merge",
    "parse_patch",
    "similarity",
    "unified",
]
