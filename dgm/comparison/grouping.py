"""The groups of runs, and the pairs of runs of different groups."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dgm.comparison.subjects import ComparedRun
from dgm.errors import UserError

VARIANT = "variant"
"""Stands for grouping by the names of a sweep's variants."""
SEED = "seed"

PairKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Runs by the value of one setting, in the order in which they were named."""

    by: str
    """The setting's dotted key, or ``variant``."""
    groups: Mapping[str, Sequence[ComparedRun]]
    paired_by: Sequence[str]
    """Settings that are the same in both runs of a pair; the seed first."""
    keys: Mapping[str, PairKey]
    """Map from the name of a run to its values of these settings."""


def group(subjects: Sequence[ComparedRun], by: str) -> Grouping:
    """Group runs by a setting.

    Two runs of different groups are a pair where they have the same seed. Where a group has several runs of one seed,
    the other settings in which the runs differ must be the same as well.

    Raises:
        UserError: there is no such setting, or two runs of a group differ in nothing that could pair them.
    """
    key = by if by == VARIANT else _setting(subjects, by)
    groups: dict[str, list[ComparedRun]] = {}
    for subject in subjects:
        groups.setdefault(_value(subject, key), []).append(subject)
    paired_by: tuple[str, ...] = (SEED,)
    if _find_twins(groups, paired_by):
        paired_by = (SEED, *(other for other in find_differing_settings(subjects) if other != key))
    if twins := _find_twins(groups, paired_by):
        one, other = twins
        raise UserError(
            f"{one.name} and {other.name} have the same {key} and the same seed, so that neither is the one to pair; "
            "leave one out"
        )
    return Grouping(key, groups, paired_by, {each.name: _pair_key(each, paired_by) for each in subjects})


def find_differing_settings(subjects: Sequence[ComparedRun]) -> Sequence[str]:
    """Return the settings, except for the seed, that are not the same in all runs."""
    keys = dict.fromkeys(key for subject in subjects for key in subject.settings)
    return [
        key
        for key in keys
        if key != SEED and any(each.settings.get(key) != subjects[0].settings.get(key) for each in subjects)
    ]


def _setting(subjects: Sequence[ComparedRun], by: str) -> str:
    """Return the dotted key that ``by`` stands for: itself, or the name in its section."""
    known = dict.fromkeys(key for subject in subjects for key in subject.settings)
    for key in (by, f"{by}.name"):
        if key in known:
            return key
    if inside := [key for key in known if key.startswith(f"{by}.")]:
        raise UserError(f"--group-by {by}: a section of the settings; name one of it, such as {inside[0]}")
    near = difflib.get_close_matches(by, [VARIANT, "policy", *known], 1, 0.5)
    hint = f" (did you mean '{near[0]}'?)" if near else "; for example policy, or operator"
    raise UserError(f"--group-by {by}: there is no such setting{hint}")


def _value(subject: ComparedRun, key: str) -> str:
    if key != VARIANT:
        return str(subject.settings.get(key))
    if subject.variant is None:
        raise UserError(
            f"--group-by {VARIANT}: run {subject.name} is of no sweep; group by a setting instead"
        )
    return subject.variant


def _pair_key(subject: ComparedRun, paired_by: Sequence[str]) -> PairKey:
    return tuple(str(subject.settings.get(key)) for key in paired_by)


def _find_twins(
    groups: Mapping[str, Sequence[ComparedRun]], paired_by: Sequence[str]
) -> tuple[ComparedRun, ComparedRun] | None:
    for members in groups.values():
        seen: dict[PairKey, ComparedRun] = {}
        for subject in members:
            other = seen.setdefault(_pair_key(subject, paired_by), subject)
            if other is not subject:
                return other, subject
    return None
