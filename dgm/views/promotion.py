"""Rounds of promotion, and the check of a certificate, as users see them."""

from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from dgm.archive.run import Run
from dgm.evaluation.promotion import level_of
from dgm.views.values import UsageView, View


class PromotionsView(View):
    """The rounds of a run; ``dgm show RUN --events`` lists them."""

    certified: int | None
    """The agent that was promoted last; None if none was."""
    alpha: float
    """Bound on the probability that any promotion of the run is false."""
    rounds: int
    promotions: int
    incumbent: int
    """The agent that the candidates of the last round were compared with."""
    candidates: tuple[int, ...]
    level: float
    """Level of the exact one-sided sign test of each of them."""
    open: bool
    """True if the last round is still to be finished."""
    spend: UsageView
    """Usage of all rounds; a part of the run's spend."""

    @classmethod
    def load(cls, run: Run) -> Self | None:
        """Return the rounds of a run; None if none was begun."""
        promotions = run.tree.promotions
        if not promotions.rounds:
            return None
        last = promotions.rounds[-1]
        return cls(
            certified=promotions.certified,
            alpha=last.alpha,
            rounds=last.number,
            promotions=promotions.count,
            incumbent=last.incumbent,
            candidates=last.candidates,
            level=level_of(promotions, last),
            open=promotions.open is not None,
            spend=UsageView.of(run.tree.promotion_spend),
        )


class Outcome(StrEnum):
    """Result of a call of ``promote``."""

    ACCEPTED = "accepted"
    NOT_YET = "not yet"
    NOTHING_NEW = "no new best agent"
    """No round was performed: the best agent is certified, not evaluated, or was compared before."""
    UNFINISHED = "unfinished"


class PromotionView(View):
    """The answer of ``promote``."""

    run: str
    outcome: Outcome
    promotions: PromotionsView | None
    """None before the first round."""
    gain: tuple[float, float] | None
    """Confidence sequence for the mean gain of the agent accepted now; None if none was."""
    certificate: Path | None
    """The certificate of the last promotion."""
    ending: str
    """Why the round is not finished; empty if it is."""
    exit_code: int
    """0; 3 if the money is spent, 1 if the round is not finished for another reason."""


class CertificateView(View):
    """The check of a certificate."""

    file: Path
    holds: bool = False
    problem: str = ""
    """The first contradiction; empty if it holds."""
    checked: tuple[str, ...] = ()
    """Names of everything that the certificate agrees with."""
    certificate: dict[str, Any] | None = None
    """Its content without the verdicts; None if it does not hold."""

    @property
    def exit_code(self) -> int:
        """0 if it holds, else 1."""
        return 0 if self.holds else 1
