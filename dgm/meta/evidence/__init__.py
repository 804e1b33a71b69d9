"""The evidence for improving an agent: its own cases and those of others, as files and in numbers.

Hidden tests and reference solutions cannot get here: traces that hold them are never read.
"""

from dgm.meta.evidence.budgeting import budgeted
from dgm.meta.evidence.cases import circumstances, conversation_text, cut, facts
from dgm.meta.evidence.flat import folder
from dgm.meta.evidence.layout import Subject, whole
from dgm.meta.evidence.reading import manifest, reading

__all__ = [
    "Subject",
    "budgeted",
    "circumstances",
    "conversation_text",
    "cut",
    "facts",
    "folder",
    "manifest",
    "reading",
    "whole",
]
