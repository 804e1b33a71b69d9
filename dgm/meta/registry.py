"""The built-in operators by name, and the opening of a run's operators from its settings."""

from collections.abc import Iterable, Mapping
from typing import cast

from dgm.config import Settings
from dgm.domain import Snapshot
from dgm.meta.context import OperatorContext
from dgm.meta.prompts import Prompts
from dgm.plugins import make_plugin
from dgm.protocols import Needing, Needs, Operator

BUILTIN = {
    "self-edit": "dgm.meta.self_edit:SelfEdit",
    "diagnose": "dgm.meta.diagnose:Diagnose",
    "compare": "dgm.meta.compare:Compare",
    "crossover": "dgm.meta.crossover:Crossover",
    "invent": "dgm.meta.invent:Invent",
    "module": "dgm.meta.module:Module",
}
"""Name → ``module:attribute``, as an entry point names it; called with an ``OperatorContext`` as a plug-in is."""
SHAPE: Mapping[str, int | None] = {"name": None, "make": 2}
"""Attributes of a plug-in's operator, and the number of arguments of its methods; None for plain attributes."""


def open_operators(
    settings: Settings,
    image: str,
    prompts: Prompts,
    also: Iterable[str] = (),
    editor: Snapshot | None = None,
) -> Mapping[str, Operator]:
    """Return the operators that the settings name, by name, for agents that run in ``image``.

    Each is made from one ``OperatorContext``.

    Args:
        settings: of the run.
        image: recipe of the sandboxes in which agents improve themselves.
        prompts: of the run.
        also: further operators to open, as replays need them.
        editor: source of the agent that edits the run's agents, as the run froze it; None: there is none.

    Raises:
        UserError: there is none of that name.
    """
    context = OperatorContext(
        image, settings.limits.improve_limit_s, prompts, settings.operators, settings.evidence, editor
    )
    return {name: _open_operator(name, context) for name in dict.fromkeys((*settings.operator_names, *also))}


def needs_of(operators: Mapping[str, Operator]) -> Mapping[str, Needs]:
    """Return each operator's needs from the archive, by name."""
    return {name: made.needs if isinstance(made, Needing) else Needs() for name, made in operators.items()}


def _open_operator(name: str, context: OperatorContext) -> Operator:
    return cast("Operator", make_plugin("operators", name, context, BUILTIN, SHAPE))
