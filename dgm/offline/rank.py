"""The order in which candidates are tried: place × prior × symptom, with less for more of the same."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dgm.offline import localise, symptoms
from dgm.offline.candidates import Candidate, candidates
from dgm.offline.guidelines import Concept
from dgm.offline.knowledge import Conversation
from dgm.offline.localise import Evidence
from dgm.offline.mutations.code import Unit
from dgm.offline.statement import Statement
from dgm.offline.units import neighbour_names, units

_MOST_UNITS = 16
_MOST = 1000
"""Number of candidates that are put in order; the rest would never be tried."""
_PLACE = 1.4
"""Exponent of the unit's suspicion: it weighs the place more than the other factors."""


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate and its score."""

    candidate: Candidate
    score: float


def find_seen_units(conversation: Conversation) -> tuple[Unit, ...]:
    """Return every unit seen to its end in a file that is not a test, by path and line."""
    paths = sorted(path for path in conversation.files if path.endswith(".py") and not localise.is_test(path))
    return tuple(unit for path in paths for unit in units(conversation.files[path]))


def rank_candidates(
    conversation: Conversation, problem: Statement, evidence: Evidence
) -> list[RankedCandidate]:
    """Return all candidates, best first; ties by (path, line, operator, text)."""
    found = find_seen_units(conversation)
    scores = localise.score_units(found, problem, evidence)
    words = problem.text + "\n" + "\n".join(evidence.messages[:4])
    plain: list[RankedCandidate] = []
    suspicious = sorted(found, key=lambda unit: (-scores[unit], unit.path, unit.first))[:_MOST_UNITS]
    for unit in suspicious:
        mates = tuple(other for other in found if other.path == unit.path)
        weights: dict[int, float] = {}
        for candidate in candidates(unit, neighbour_names(unit, mates)):
            line = candidate.line
            if line not in weights:
                weights[line] = localise.line_weight(unit, line, problem, evidence)
            change = candidate.change
            factor = symptoms.factor(words, change.operator) * _exception_factor(candidate, problem, evidence)
            plain.append(
                RankedCandidate(candidate, scores[unit] ** _PLACE * weights[line] * change.prior * factor)
            )
    if len(plain) > _MOST:
        least = sorted(item.score for item in plain)[-_MOST]
        plain = [item for item in plain if item.score >= least]
    plain.sort(key=lambda item: _key(item, conversation.hot))
    return _discount_repeats(plain, conversation)


def _exception_factor(candidate: Candidate, problem: Statement, evidence: Evidence) -> float:
    """Return the factor of a change of an exception, higher if the evidence or the problem names it."""
    if candidate.change.operator != "exception":
        return 1.0
    names = re.findall(r"\w+", candidate.change.text)
    seen = [message.split(":")[0].split(".")[-1] for message in evidence.messages]
    if any(name in seen for name in names):
        return 4.0
    wanted = problem.example.expected.split(".")[-1] if problem.example and problem.example.raises else ""
    if wanted in names or any(name in problem.names for name in names):
        return 3.0
    return 0.6


def _discount_repeats(plain: Sequence[RankedCandidate], conversation: Conversation) -> list[RankedCandidate]:
    """Lower the scores of further candidates of one (line, operator) and of one line; sort again."""
    wide = conversation.has(Concept.MORE_FIXES)
    same, row = (0.4, 0.85) if wide else (0.55, 0.92)
    kinds: dict[tuple[str, int, str], int] = {}
    lines: dict[tuple[str, int], int] = {}
    found: list[RankedCandidate] = []
    for item in plain:
        place = (item.candidate.unit.path, item.candidate.line)
        kind = (*place, item.candidate.change.operator.split()[0])
        times, before = kinds.get(kind, 0), lines.get(place, 0)
        kinds[kind], lines[place] = times + 1, before + 1
        found.append(RankedCandidate(item.candidate, item.score * same**times * row**before))
    found.sort(key=lambda item: _key(item, conversation.hot))
    return found


def _key(item: RankedCandidate, hot: bool) -> tuple[object, ...]:
    candidate = item.candidate
    change = candidate.change
    place = (candidate.unit.path, candidate.line, change.operator, change.text, change.start, change.end)
    if hot:
        mixed = hashlib.sha256(candidate.mark.encode()).hexdigest()
        return (-float(f"{item.score:.1g}"), mixed, *place)
    return (-item.score, *place)
