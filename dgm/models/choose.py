"""Open models by name: a provider's, a built-in one, or a plug-in's.

A plug-in is an entry point of the group ``dgm.models``: a factory of a model from a ``ModelContext``. Opening sends no
request: a model's ``check`` tests whether it answers, and ``dgm.models.auto`` chooses the model for ``auto``.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import cast

from dgm.config import ModelsSettings, RequestSettings, Settings, WeightedModel
from dgm.domain import ActionId
from dgm.errors import UserError
from dgm.models.abilities import Abilities
from dgm.models.builtin import ModelContext
from dgm.models.keys import guard_logs
from dgm.models.pricing import Prices
from dgm.models.providers import PROVIDER_KINDS, Provider, open_connection, provider_of, providers_of
from dgm.models.scripted import SCRIPTED, ScriptedModel
from dgm.models.throttle import LONGEST_WAIT_S, Throttle
from dgm.plugins import find_installed, make_plugin
from dgm.protocols import LentModel, Model

AUTO = "auto"
ROLES = ("solve", "improve", "diagnose")
BUILTIN = {
    "offline": "dgm.offline:OfflineModel",
    "recorded": "dgm.models.builtin:RecordedModel",
}
"""Name → ``module:attribute``, as an entry point names it; called with a ``ModelContext`` as a plug-in is.

Each of these gives equal answers to equal requests.
"""
OFFLINE, OFFLINE_VERSION = "offline", "2"
"""The version is recorded with each run that uses the model: another one answers otherwise. Runs without one used 1."""
SHAPE: Mapping[str, int | None] = {"name": None, "reply": 1, "check": 0, "close": 0}
"""Attributes of a plug-in's model, and the number of arguments of its methods; None for plain attributes."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """The draws of a run: a pure function of its seed and of the number of an action."""

    seed: int = 0
    """The run's seed."""
    choices: Mapping[str, Sequence[WeightedModel]] = field(default_factory=dict)
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


def names_by_role(settings: Settings) -> Mapping[str, str]:
    """Return role → full name of its model; the first one of several (``drawing_of`` has all of them)."""
    improve = settings.models.improve
    own = {
        "solve": settings.models.solve,
        "improve": improve[0].model if isinstance(improve, tuple) else improve,
        "diagnose": settings.models.diagnose,
    }
    return {role: own[role] or settings.model for role in ROLES}


def drawing_of(settings: Settings) -> Drawing:
    """Return the draw of models for roles that have several."""
    improve = settings.models.improve
    if not isinstance(improve, tuple):
        return Drawing(settings.seed)
    return Drawing(settings.seed, {"improve": improve})


def all_names(settings: Settings) -> Sequence[str]:
    """Return the full name of every model that may be used, each once."""
    several = [each.model for choices in drawing_of(settings).choices.values() for each in choices]
    return tuple(dict.fromkeys([*names_by_role(settings).values(), *several]))


def open_models(settings: Settings) -> Mapping[str, LentModel]:
    """Return role → its model; one model for each name, and one queue for each provider.

    For a role with several models, each model also has an entry under its own name: see ``Drawing.model_for``.

    Raises:
        UserError: there is no such model, or its key or address is missing.
    """
    throttles: dict[str, Throttle] = {}
    models = {name: _open(name, settings, throttles) for name in all_names(settings)}
    roles = {role: models[name] for role, name in names_by_role(settings).items()}
    several = [each.model for choices in drawing_of(settings).choices.values() for each in choices]
    return roles | {name: models[name] for name in several}


def open_model(
    name: str, settings: Settings | None = None, *, longest_wait_s: float = LONGEST_WAIT_S
) -> LentModel:
    """Return the model of that name, with the default settings if none are given.

    Args:
        name: the model's name.
        settings: address, key and limits.
        longest_wait_s: maximum wait of a call, in seconds, at its provider's request.

    Raises:
        UserError: there is none, or its key or address is missing; the message says what to do.
    """
    return _open(name, settings or Settings(), {}, longest_wait_s)


def _open(
    name: str, settings: Settings, throttles: dict[str, Throttle], longest_wait_s: float = LONGEST_WAIT_S
) -> LentModel:
    """Open a model; the models of one provider share its queue in ``throttles``."""
    if name == AUTO:
        raise UserError("model 'auto' stands for no model until one is chosen; name one", argument="model")
    if name.startswith(SCRIPTED):
        return ScriptedModel(name)
    if provider := provider_of(settings, name):
        throttle = throttles.setdefault(provider.name, Throttle(provider.settings))
        return _open_hosted(name, settings, provider, throttle, longest_wait_s)
    if name in BUILTIN or name in find_installed("models"):
        return cast("Model", make_plugin("models", name, ModelContext(name, settings), BUILTIN, SHAPE))
    raise UserError(_unknown_model_text(name, settings))


def _open_hosted(
    name: str, settings: Settings, provider: Provider, throttle: Throttle, longest_wait_s: float
) -> LentModel:
    own_name = name.partition("/")[2]
    if not own_name or own_name != own_name.strip():
        raise UserError(f"model '{name}': expected the model's own name after '{provider.name}/'")
    connection = open_connection(provider, own_name)
    if connection.secrets:
        # Guard the logs last, because the vendors' packages may add their own handlers.
        guard_logs(connection.secrets)

    from dgm.models.hosted import Access, HostedModel, Retries

    section, output_tokens = provider.settings, settings.limits.output_tokens
    access = Access(
        connection.key_env,
        connection.secrets,
        section.timeout_s,
        section.stream,
        section.tools,
        section.reasoning_effort,
        provider.kind.stored_by_default,
        Prices.load(settings).reply_limit(name, output_tokens),
        output_tokens is None,
        provider.takes_form(own_name),
        longest_wait_s,
        changes_of(settings.models, name),
    )
    retries = Retries(section.tries, section.backoff_s)
    return HostedModel(name, own_name, connection, throttle, retries, access)


def changes_of(models: ModelsSettings, name: str) -> Abilities:
    """Return what the settings leave out, rename and set in the requests to a model."""
    changes = models.requests.get(name, RequestSettings())
    return Abilities(frozenset(changes.drop), changes.rename, changes.set)


def _unknown_model_text(name: str, settings: Settings) -> str:
    plugins = list(find_installed("models"))
    known = [*Prices.load(settings).rows, *BUILTIN, *plugins]
    guess = [
        f"{kind.name}/{name}"
        for kind in PROVIDER_KINDS.values()
        if kind.own_names and re.match(kind.own_names, name)
    ]
    near = guess or difflib.get_close_matches(name, known, 1, 0.75)
    hint = f"did you mean '{near[0]}'? " if near else ""
    forms = [f"{provider}/…" for provider in providers_of(settings)]
    forms += [*BUILTIN, f"{SCRIPTED}FILE", AUTO, *plugins]
    provider, slash, _ = name.partition("/")
    server = f"; a server of your own needs providers.{provider}.kind" if slash else ""
    return f"unknown model '{name}' ({hint}there are: {', '.join(forms)}{server})"
