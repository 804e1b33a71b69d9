"""The numbers that say how agents of a world inherit and change; every family is a choice of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dynamics:
    """Parameters of a world. Skills are in logits, and the root's are 0; the tasks turn skills into scores.

    The defaults are the plainest world: there is one skill, and children keep nearly all of a gain.
    """

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
    """Its standard deviation."""
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
    """Its standard deviation."""
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
    """Chance that the infrastructure fails a try of a step."""
