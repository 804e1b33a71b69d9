"""What settings must not be together; each fault is one line."""

from collections.abc import Mapping

from dgm.config.settings import Settings
from dgm.errors import UserError

Found = tuple[str, str] | None
"""A key with its value, and what is wrong with it."""


def check_together(settings: Settings, origin: Mapping[str, str]) -> None:
    """Looks at settings that fit alone.

    Args:
        settings: to look at.
        origin: dotted key → where its value came from, for the message.

    Raises:
        UserError: some of them do not go together.
    """
    for found in (_expansion_cost(settings), _operators(settings), _weights(settings), _waiting(settings)):
        if found:
            key, wrong = found
            name = key.partition(" ")[0]
            where = next((source for known, source in origin.items() if overlap(known, name)), "settings")
            raise UserError(f"{where}: {key}: {wrong}")


def overlap(known: str, key: str) -> bool:
    """Whether one dotted key is the other, or a part of it."""
    return f"{known}.".startswith(f"{key}.") or f"{key}.".startswith(f"{known}.")


def _expansion_cost(settings: Settings) -> Found:
    budget = settings.budget
    if not budget.expansion_cost or budget.budget().evaluations is not None:
        return None
    return (
        f"budget.expansion_cost = {budget.expansion_cost:g}",
        "there is no budget of evaluations to take it of; set budget.evaluations (--max-evaluations) too",
    )


def _operators(settings: Settings) -> Found:
    names = settings.operator_names
    said = f"operator = {settings.operator!r}"
    if not all(names):
        return said, "an operator without a name; write one, or several joined by '+'"
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        return said, f"'{twice}' is named twice; operators.weights says which is chosen more often"
    if names == ("crossover",):
        return said, "it needs two agents, and a search begins with one; name another operator beside it"
    if settings.operators.choice == "bandit" and len(names) == 1:
        return "operators.choice = 'bandit'", "there is one operator only; name several, joined by '+'"
    return None


def _weights(settings: Settings) -> Found:
    weights = settings.operators.weights
    strange = next((name for name in weights if name not in settings.operator_names), None)
    if strange:
        return (
            f"operators.weights.{strange} = {weights[strange]:g}",
            "the setting 'operator' does not name it",
        )
    if weights and settings.operators.choice == "bandit":
        name, weight = next(iter(weights.items()))
        return (
            f"operators.weights.{name} = {weight:g}",
            "a bandit has no weights; use operators.choice = 'fixed'",
        )
    return None


def _waiting(settings: Settings) -> Found:
    gates = settings.gates
    if gates.approve_s is not None and not gates.approve:
        return f"gates.approve_s = {gates.approve_s:g}", "nobody is asked; set gates.approve = true too"
    if gates.on_timeout is not None and gates.approve_s is None:
        return (
            f"gates.on_timeout = {gates.on_timeout!r}",
            "children wait without end; set gates.approve_s too",
        )
    return None
