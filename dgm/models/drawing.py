"""Draw of a model for an action whose role has several: once for each action, and the same on every retry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from dgm.domain import ActionId


@dataclass(frozen=True, slots=True)
class Choice:
    """A model that may be drawn."""

    model: str
    """The model's full name."""
    weight: float
    """Above 0; models are drawn in proportion to their weights."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """The draws of a run: a pure function of its seed and of the number of an action."""

    seed: int = 0
    """The run's seed."""
    choices: Mapping[str, Sequence[Choice]] = field(default_factory=dict)
    """Map of role to its models, for roles that have several."""

    def model_for(self, action: ActionId, role: str) -> str:
        """Return the key of the model to lend an action for a role.

        That is the full name of the drawn model if the role has several; else the role itself. ``open_models`` has a
        model under each of these keys.
        """
        several = self.choices.get(role, ())
        if not several:
            return role
        upto = list(accumulate(each.weight for each in several))
        drawn = Random(f"{self.seed}/{action}/model").random() * upto[-1]
        return next(
            (each.model for each, end in zip(several, upto, strict=True) if drawn < end), several[-1].model
        )
