"""Families of worlds: what they stand for, and the ranges that a seed draws their parameters from.

Real searches set the common ranges. The Darwin Gödel Machine (arXiv 2505.22954) went from 20 % to 50 % of its SWE-bench
tasks in 80 iterations; the Huxley-Gödel Machine (arXiv 2510.21614) moved about as far. In both archives most children
are no better than their parents, a few per cent or more cannot work at all, and the best agents are many edits deep.
So the common ranges say:

- A root solves about a fifth.
- An ordinary edit harms a little on average, with a spread of half a logit.
- A quarter of the edits do next to nothing.
- Some per cent of the edits break the agent, and a broken agent's children are mostly broken.
- A child keeps nearly all of its parent's gain.

Each family changes one of these things in a way that a search may meet. No reported or reserved family was chosen by
how policies do in it.

``REPORTED`` are the nine families of the published tables; ``RESERVED`` are further ones to report separately.
``TUNING`` are the only families on which constants of policies may be tuned. They are disjoint from both groups. Their
roots start where none of the others do (between 0.28 and 0.40, and two between 0.12 and 0.17). Most have troubles of
other strengths, or two at once. Some were added for a weakness that a reported family had shown (``docs/policies.md``
says which). The hash of a world includes its family's name, so no two families share a world even for equal seeds.

``OPERATORS`` is in none of these groups: it is for the choice among operators (``dgm.simulate.operators``).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches

from dgm.errors import UserError
from dgm.simulate.chances import key_of, uniform
from dgm.simulate.dynamics import Dynamics

Range = tuple[float, float]
"""Lowest and highest value; a seed draws uniformly between them."""

COMMON: Mapping[str, Range] = {
    "root_score": (0.18, 0.27),
    "spread": (1.6, 2.4),
    "never": (0.03, 0.10),
    "always": (0.01, 0.03),
    "repeats": (0.3, 0.7),
    "step_mean": (-0.20, -0.08),
    "step_sd": (0.40, 0.60),
    "neutral": (0.15, 0.35),
    "retention": (0.96, 1.0),
    "drift_sd": (0.0, 0.03),
    "broken": (0.03, 0.08),
    "broken_stays": (0.5, 0.9),
}


@dataclass(frozen=True, slots=True)
class Family:
    """One family of worlds."""

    name: str
    about: str
    """What it stands for, in one line."""
    ranges: Mapping[str, Range] = field(default_factory=dict)
    """Where it differs from ``COMMON`` and from the defaults of ``Dynamics``."""
    workers: int = 1
    """Asynchronous workers that the family is meant to be met with."""


def _still(value: float) -> Range:
    return (value, value)


_NINE = (
    Family(
        "drift",
        "heritable drift: lineages differ in what every generation gains",
        {"drift_root": (-0.06, 0.04), "drift_sd": (0.08, 0.14), "drift_keep": (0.92, 0.98)},
    ),
    Family(
        "mismatch",
        "what raises the score now lowers what descendants can gain, and the reverse",
        {"mismatch": (0.15, 0.35), "drift_sd": (0.02, 0.05), "drift_keep": (0.92, 0.98)},
    ),
    Family(
        "jackpots",
        "rare breakthroughs: about one edit in a hundred gains a lot, the others gain little",
        {
            "jackpots": (0.008, 0.02),
            "jackpot_size": (1.2, 1.8),
            "step_mean": (-0.20, -0.10),
            "step_sd": (0.10, 0.18),
        },
    ),
    Family(
        "skills",
        "several skills that tasks demand in different shares; an edit touches one, so crossing agents can help",
        {
            "skills": _still(4.0),
            "focus": (0.6, 0.9),
            "step_mean": (-0.50, -0.25),
            "step_sd": (1.10, 1.60),
        },
    ),
    Family("broken", "a quarter of the edits break the agent", {"broken": (0.18, 0.32)}),
    Family(
        "siblings",
        "diminishing returns: the later children of one parent gain less",
        {"crowding": (0.4, 1.0), "step_sd": (0.50, 0.70)},
    ),
    Family(
        "low-retention",
        "a child loses most of what its parent gained",
        {"retention": (0.25, 0.45), "step_sd": (0.50, 0.70)},
    ),
    Family(
        "hopeless",
        "nothing ever helps: every edit harms or does nothing",
        {"harmful_only": _still(1.0), "drift_sd": _still(0.0), "retention": _still(1.0)},
    ),
    Family(
        "heavy-tails",
        "most edits do little, a few change very much, for better or worse",
        {"tail": (0.45, 0.65), "step_mean": (-0.16, -0.10), "step_sd": (0.12, 0.20)},
    ),
)
_FURTHER = (
    Family("half-broken", "half of the edits break the agent", {"broken": (0.45, 0.55)}),
    Family(
        "weak-root",
        "the root solves a tenth, and which task is tried says nothing: all are equally hard for an agent",
        {"root_score": (0.08, 0.12), "spread": _still(0.0), "never": _still(0.0), "always": _still(0.0)},
    ),
    Family(
        "low-retention-crowd",
        "low retention, to be met with 20 workers",
        {"retention": (0.25, 0.45), "step_sd": (0.50, 0.70)},
        workers=20,
    ),
    Family(
        "trade-offs",
        "an edit helps one cluster of tasks and hurts another",
        {
            "skills": _still(4.0),
            "focus": _still(1.0),
            "trade": (0.5, 0.9),
            "step_mean": (-0.20, 0.0),
            "step_sd": (1.10, 1.60),
        },
    ),
    Family(
        "late-bloomers",
        "an edit harms at first; what it is worth shows only in later generations",
        {
            "deferred_mean": (-0.10, 0.05),
            "deferred_sd": (0.60, 0.90),
            "release": (0.2, 0.35),
            "step_mean": (-0.20, -0.10),
            "step_sd": (0.10, 0.20),
        },
    ),
)
_HIGH_ROOT: Mapping[str, Range] = {"root_score": (0.30, 0.40)}
_TUNED = (
    Family(
        "tuning-wander",
        "strong drift that is soon forgotten, from a better root",
        {**_HIGH_ROOT, "drift_sd": (0.11, 0.16), "drift_keep": (0.70, 0.85), "broken": (0.09, 0.15)},
    ),
    Family(
        "tuning-leaky",
        "a third of a gain is lost per generation, and edits are coarse",
        {**_HIGH_ROOT, "retention": (0.60, 0.80), "step_sd": (0.45, 0.60)},
    ),
    Family(
        "tuning-finds",
        "frequent small finds among broken agents",
        {
            **_HIGH_ROOT,
            "jackpots": (0.03, 0.06),
            "jackpot_size": (0.4, 0.7),
            "step_sd": (0.05, 0.10),
            "broken": (0.10, 0.16),
        },
    ),
    Family(
        "tuning-pair",
        "two skills, mildly heavy tails",
        {
            **_HIGH_ROOT,
            "skills": _still(2.0),
            "focus": (0.3, 0.55),
            "tail": (0.15, 0.30),
            "step_mean": (-0.30, -0.15),
            "step_sd": (0.35, 0.50),
        },
    ),
    Family(
        "tuning-crowd",
        "mild crowding, and drift that pays a little for losses",
        {**_HIGH_ROOT, "crowding": (0.1, 0.3), "mismatch": (0.03, 0.10), "drift_sd": (0.03, 0.05)},
    ),
    Family(
        "tuning-flat",
        "edits do little, and tasks are alike",
        {**_HIGH_ROOT, "spread": (0.5, 1.2), "step_mean": (-0.06, -0.03), "step_sd": (0.12, 0.20)},
    ),
    Family(
        "tuning-thankless",
        "an edit hardly ever helps, and never much",
        {**_HIGH_ROOT, "step_mean": (-0.35, -0.20), "step_sd": (0.10, 0.20), "broken": (0.09, 0.15)},
    ),
    Family(
        "tuning-coarse",
        "three skills; an edit touches one, and often ruins it without breaking the agent",
        {
            **_HIGH_ROOT,
            "skills": _still(3.0),
            "focus": (0.4, 0.7),
            "step_mean": (-0.45, -0.25),
            "step_sd": (0.8, 1.2),
        },
    ),
    Family(
        "tuning-low",
        "a weak root, tasks rather alike, a third of the edits break the agent",
        {"root_score": (0.13, 0.17), "spread": (0.5, 1.0), "broken": (0.33, 0.40)},
    ),
    Family(
        "tuning-poor",
        "a root that solves an eighth, tasks alike, two of five edits break the agent",
        {"root_score": (0.122, 0.13), "spread": (0.2, 0.5), "broken": (0.40, 0.44)},
    ),
    Family(
        "tuning-rare",
        "breakthroughs of middling size, rarer than other finds",
        {
            **_HIGH_ROOT,
            "jackpots": (0.012, 0.025),
            "jackpot_size": (0.8, 1.2),
            "step_mean": (-0.16, -0.08),
            "step_sd": (0.10, 0.18),
        },
    ),
    Family(
        "tuning-sieve",
        "half of a gain is lost per generation",
        {**_HIGH_ROOT, "retention": (0.40, 0.60), "step_sd": (0.5, 0.65)},
    ),
    Family(
        "tuning-shed",
        "four fifths of a gain are lost per generation",
        {**_HIGH_ROOT, "retention": (0.15, 0.25), "step_sd": (0.45, 0.6)},
    ),
    Family(
        "tuning-swap",
        "half of what an edit gains is taken back in every later generation",
        {**_HIGH_ROOT, "mismatch": (0.38, 0.5), "drift_sd": (0.005, 0.02), "drift_keep": (0.85, 0.92)},
    ),
    Family(
        "tuning-barter",
        "a quarter of what an edit gains is taken back in every later generation; edits are small, and often break",
        {**_HIGH_ROOT, "mismatch": (0.2, 0.3), "step_sd": (0.25, 0.35), "broken": (0.10, 0.15)},
    ),
    Family(
        "tuning-current",
        "a little drift that stays for good",
        {**_HIGH_ROOT, "drift_root": (-0.02, 0.02), "drift_sd": (0.04, 0.07), "drift_keep": (0.97, 1.0)},
    ),
    Family(
        "tuning-throng",
        "the second child of a parent gains less than half of what the first one does",
        {**_HIGH_ROOT, "crowding": (1.2, 2.0), "step_sd": (0.40, 0.5)},
    ),
    Family(
        "tuning-brittle",
        "two of five edits break the agent",
        {"root_score": (0.28, 0.32), "broken": (0.36, 0.42)},
    ),
)

_EQUIPPED = Family(
    "operators",
    "children by several operators, of which some are better or cheaper; the budget counts time",
    {"skills": _still(3.0), "focus": (0.5, 0.8)},
)

FAMILIES: Mapping[str, Family] = {family.name: family for family in (*_NINE, *_FURTHER, *_TUNED, _EQUIPPED)}
REPORTED = tuple(family.name for family in _NINE)
RESERVED = tuple(family.name for family in _FURTHER)
TUNING = tuple(family.name for family in _TUNED)
OPERATORS = _EQUIPPED.name


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
    """Return the parameters that this seed draws in the family; an override leaves the other parameters unchanged.

    Raises:
        UserError: there is no such family or parameter.
    """
    check_family(family)
    known = asdict(Dynamics())
    for name in overrides:
        if name not in known:
            raise UserError(f"unknown parameter of a world '{name}'; there are: {', '.join(known)}")
    key = key_of(b"family", family.encode(), str(seed).encode())
    ranges = {**COMMON, **FAMILIES[family].ranges}
    drawn = {
        name: low + (high - low) * uniform(key_of(key, name.encode())) for name, (low, high) in ranges.items()
    }
    return Dynamics(**{**drawn, **overrides})
