"""Notes on the limits of a comparison: runs that are not over, settings that differ."""

from collections.abc import Sequence

from dgm.archive.history import LIVING
from dgm.comparison.grouping import Grouping, find_differing_settings
from dgm.comparison.naming import NamedRuns
from dgm.comparison.subjects import ComparedRun
from dgm.show.safe import one_line

_KEPT = 160


def comparison_notes(
    named: NamedRuns, subjects: Sequence[ComparedRun], grouping: Grouping | None
) -> Sequence[str]:
    """Return notes that a reader needs before relying on the comparison."""
    notes = []
    if named.not_begun:
        notes.append(f"not begun yet and left out: {', '.join(named.not_begun)}")
    open_yet = [each.name for each in subjects if each.facts["state"] in (*LIVING, "interrupted", "stopped")]
    if open_yet:
        notes.append(f"not over yet, as they stand now: {', '.join(open_yet)}")
    if bare := [each.name for each in subjects if not each.curve]:
        notes.append(f"without a verdict, so in no curve and no pair by score: {', '.join(bare)}")
    also = [key for key in find_differing_settings(subjects) if grouping is None or key != grouping.by]
    if also:
        notes.append(
            f"settings that differ between these runs: {'; '.join(_values_text(subjects, key) for key in also)}"
        )
    if any("offline" in each.facts["models"].values() for each in subjects):
        notes.append("offline model: a repair program, not a language model; scores are a demonstration")
    return notes


def _values_text(subjects: Sequence[ComparedRun], key: str) -> str:
    values = dict.fromkeys(str(each.settings.get(key)) for each in subjects)
    return f"{key} ({one_line(', '.join(values), _KEPT)})"
