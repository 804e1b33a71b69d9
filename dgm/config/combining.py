"""Refuse settings that must not be together, each fault in one line."""

from collections.abc import Mapping

from dgm.config.making import GateSettings, OperatorSettings
from dgm.config.settings import Settings
from dgm.errors import UserError

_WITHOUT_PARTS = ("self-edit", "diagnose", "compare", "crossover", "invent")
"""Operators whose aim is not chosen by ``operators.parts``; that of a plug-in may be."""

Found = tuple[str, str] | None
"""A key with its value, and what is wrong with it."""


def check_together(settings: Settings, origin: Mapping[str, str]) -> None:
    """Check settings, each valid alone, for combinations that are not allowed.

    Args:
        settings: the settings to check.
        origin: dotted key → where its value came from, for the message.

    Raises:
        UserError: some of them exclude each other; the message names the first such setting and its source.
    """
    for look in (
        _check_expansion_cost,
        _check_operators,
        _check_weights,
        _check_operator_values,
        _check_novelty,
        _check_waiting,
    ):
        found = look(settings)
        if found:
            key, wrong = found
            name = key.partition(" ")[0]
            where = next((source for known, source in origin.items() if overlap(known, name)), "settings")
            raise UserError(f"{where}: {key}: {wrong}")


def overlap(known: str, key: str) -> bool:
    """Return whether two dotted keys are equal, or one of them lies below the other."""
    return f"{known}.".startswith(f"{key}.") or f"{key}.".startswith(f"{known}.")


def _check_expansion_cost(settings: Settings) -> Found:
    budget = settings.budget
    if not budget.expansion_cost or budget.budget().evaluations is not None:
        return None
    return (
        f"budget.expansion_cost = {budget.expansion_cost:g}",
        "there is no budget of evaluations to take it of; set budget.evaluations (--max-evaluations) too",
    )


def _check_operators(settings: Settings) -> Found:
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


def _check_weights(settings: Settings) -> Found:
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


def _check_operator_values(settings: Settings) -> Found:
    """Return a changed setting that no operator of the run reads, with the fault; None if there is none."""
    names, asked, usual = settings.operator_names, settings.operators, OperatorSettings()
    if asked.parts != usual.parts and all(name in _WITHOUT_PARTS for name in names):
        return f"operators.parts = {asked.parts!r}", "no operator of this run has parts; name module too"
    counts = {
        "reflections": (asked.reflections, usual.reflections),
        "debugging": (asked.debugging, usual.debugging),
    }
    for key, (value, default) in counts.items():
        if value != default and "invent" not in names:
            return f"operators.{key} = {value}", "only the operator invent reads it; name invent too"
    return None


def _check_novelty(settings: Settings) -> Found:
    gates = settings.gates
    if gates.novelty == "off" and gates.novelty_threshold != GateSettings().novelty_threshold:
        return (
            f"gates.novelty_threshold = {gates.novelty_threshold:g}",
            "nothing is compared; set gates.novelty = 'similarity' or 'model' too",
        )
    return None


def _check_waiting(settings: Settings) -> Found:
    gates = settings.gates
    if gates.approve_s is not None and not gates.approve:
        return f"gates.approve_s = {gates.approve_s:g}", "nobody is asked; set gates.approve = true too"
    if gates.on_timeout is not None and gates.approve_s is None:
        return (
            f"gates.on_timeout = {gates.on_timeout!r}",
            "children wait without end; set gates.approve_s too",
        )
    return None
