"""The evidence for improving an agent: its own cases and those of others, as files and in numbers.

Hidden tests and reference solutions cannot get here: traces that hold them are never read.
"""

from dgm.meta.evidence.cases import (
    begin_with_actions,
    conversation_text,
    count_problems,
    cut_middle,
    fit_to_budget,
    program_end_of,
    prompts_text,
)
from dgm.meta.evidence.flat import folder
from dgm.meta.evidence.layout import EvidenceContents, evidence_folder
from dgm.meta.evidence.reading import manifest, record_reading

__all__ = [
    "EvidenceContents",
    "begin_with_actions",
    "conversation_text",
    "count_problems",
    "cut_middle",
    "evidence_folder",
    "fit_to_budget",
    "folder",
    "manifest",
    "program_end_of",
    "prompts_text",
    "record_reading",
]
