"""Families of worlds (``families.toml``), and the parameters that a world's number draws in one."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dgm.errors import UserError
from dgm.simulation.chances import between, key_of

Range = tuple[float, float]
OPERATORS = "operators"
"""The family whose children are made by several operators, and whose budget is time."""


@dataclass(frozen=True, slots=True)
class Dynamics:
    """Parameters of a world. Skills are in logits, and the root's are 0; the tasks turn skills into scores."""

    root_score: float = 0.22
    """True score of the root."""
    spread: float = 2.0
    """Standard deviation of the tasks' difficulties."""
    never: float = 0.06
    """Share of tasks that nobody solves."""
    always: float = 0.02
    """Share of tasks that every working agent solves."""
    repeats: float = 0.5
    """Correlation of two attempts of one agent at one task, beyond what their common probability explains."""
    skills: float = 1.0
    """Dimensions of skill (a whole number)."""
    focus: float = 0.8
    """Share of a task's demand that is on one of several skills."""

    step_mean: float = -0.08
    """Mean effect of an ordinary edit on a skill: below 0, since most edits harm."""
    step_sd: float = 0.3
    tail: float = 0.0
    """Heaviness of the steps' tails: the reciprocal of the tail index; 0 is normal, 0.5 has no variance."""
    neutral: float = 0.25
    """Share of edits that change next to nothing."""
    jackpots: float = 0.0
    """Share of edits that are breakthroughs."""
    jackpot_size: float = 1.5
    """Mean gain of a breakthrough."""
    harmful_only: float = 0.0
    """1 where no edit ever helps: every step is turned downward."""
    trade: float = 0.0
    """With several skills: what an edit takes from another skill, as a share of its effect on the first."""

    retention: float = 0.98
    """Share of a parent's distance from the root that its child keeps."""
    drift_root: float = 0.0
    """Heritable drift of the root: what every generation gains, whatever the edit."""
    drift_sd: float = 0.02
    """Standard deviation of the change of drift from parent to child."""
    drift_keep: float = 0.95
    """Share of its parent's drift that a child keeps."""
    mismatch: float = 0.0
    """What an edit takes from the drift per logit that it adds now (and gives per logit that it takes now)."""
    crowding: float = 0.0
    """Diminishing returns: the n-th later child's gain is divided by 1 + crowding · n."""
    deferred_mean: float = 0.0
    """Mean of the gain that an edit lays into a reserve, which only descendants show."""
    deferred_sd: float = 0.0
    release: float = 0.3
    """Share of the reserve that each generation turns into skill."""

    broken: float = 0.05
    """Chance that an edit breaks the agent."""
    broken_stays: float = 0.7
    """Chance that a broken agent's child is broken too, before its own chance to break."""
    broken_score: float = 0.01
    """Chance that a broken agent resolves a task all the same."""
    takes_better: float = 0.7
    """Crossover: chance, per skill, that the child takes the better of its two parents'."""

    expand_seconds: float = 900.0
    """Median duration of an expansion."""
    evaluate_seconds: float = 300.0
    """Median duration of an evaluation."""
    sigma_seconds: float = 0.7
    """Standard deviation of the logarithm of durations."""
    failures: float = 0.0
    """Chance that the infrastructure fails a try of an action."""


@dataclass(frozen=True, slots=True)
class Family:
    """One family of worlds."""

    name: str
    group: str
    about: str
    workers: int
    """Parallel actions that the family is meant to be met with."""
    ranges: Mapping[str, Range]
    """Where it differs from the common ranges."""


def _load() -> tuple[Mapping[str, Range], Mapping[str, Family]]:
    document: dict[str, Any] = tomllib.loads(Path(__file__).with_name("families.toml").read_text())
    common = {name: (low, high) for name, (low, high) in document.pop("common").items()}
    families = {}
    for group, members in document.items():
        for name, row in members.items():
            about, workers = row.pop("about"), row.pop("workers", 1)
            ranges = {parameter: (low, high) for parameter, (low, high) in row.items()}
            families[name] = Family(name, group, about, workers, ranges)
    return common, families


COMMON, FAMILIES = _load()
GROUPS: Mapping[str, tuple[str, ...]] = {
    group: tuple(family.name for family in FAMILIES.values() if family.group == group)
    for group in ("reported", "reserved", "tuning")
}


def check_family(name: str) -> None:
    """Refuse an unknown family.

    Raises:
        UserError: there is no such family; the message lists the families.
    """
    if name not in FAMILIES:
        near = get_close_matches(name, FAMILIES, 1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UserError(f"unknown family of worlds '{name}' ({hint}there are: {', '.join(FAMILIES)})")


def draw_dynamics(family: str, seed: int, overrides: Mapping[str, float]) -> Dynamics:
    """Return the parameters that this number draws in the family; an override leaves the other ones unchanged.

    Raises:
        UserError: there is no such family or parameter.
    """
    check_family(family)
    known = [field.name for field in fields(Dynamics)]
    for name in overrides:
        if name not in known:
            raise UserError(f"unknown parameter of a world '{name}'; there are: {', '.join(known)}")
    key = key_of(b"family", family.encode(), str(seed).encode())
    ranges = {**COMMON, **FAMILIES[family].ranges}
    drawn = {name: between(key_of(key, name.encode()), *ends) for name, ends in ranges.items()}
    return Dynamics(**{**drawn, **overrides})
