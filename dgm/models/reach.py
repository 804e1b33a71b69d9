"""Where the settings of a run or a file would send this user's secrets and money, as subjects of consent.

A provider's own address, its usual key variable and the shipped prices need none.
"""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dgm.config import ModelsSettings, validate_settings
from dgm.config.resolving import read_settings_file
from dgm.consents import ConsentNeeded, Subject
from dgm.models.providers import PROVIDERS

_HARMLESS = frozenset(
    {"concurrency", "waiting", "requests_per_minute", "tokens_per_minute", "timeout_s", "tries", "backoff_s"}
    | {"stream", "tools", "api", "reasoning_effort"}
)
"""Settings of a provider that decide neither where a request goes nor what goes with it."""
VALUE_CHARS = 200
_PRICE = "price of "


def list_reach(models: ModelsSettings) -> Sequence[Subject]:
    """Return what the settings name of addresses, variables of keys and prices that are not the usual ones."""
    return [_make_subject(name, own) for name, own in _find_own(models).items()]


def list_unagreed(after: ModelsSettings, before: ModelsSettings) -> Sequence[Subject]:
    """Return what this user has neither agreed to nor chosen now.

    Args:
        after: settings that are about to be used.
        before: settings of the run that they come from. What differs is the user's choice, so nothing is returned that
            shares no value with the run, or changes what the user agreed to earlier.
    """
    return list(_find_unagreed(after, before).values())


def file_models(file: Path) -> ModelsSettings:
    """Return what a settings file itself says of models.

    Raises:
        UserError: it cannot be read, or a value is invalid.
    """
    return validate_settings({"models": read_settings_file(file).get("models", {})}, {"": str(file)}).models


def require_own_file(file: Path, after: ModelsSettings, before: ModelsSettings) -> None:
    """Make sure that this user has agreed to a file of settings that sends a key to an address of its own.

    Args:
        file: where they stand, for the message.
        after: settings that are about to be used.
        before: those that the file names. What differs is the user's choice.

    Raises:
        ConsentNeeded: the file may be a stranger's, and this user has not agreed to it.
    """
    unagreed = _find_unagreed(after, before)
    if not any(_sends_secret(name, after) for name in unagreed):
        return
    words = "; ".join(one.words for one in unagreed.values())
    raise ConsentNeeded(
        f"{file}: would send a key to an address of its own: {words}; "
        f"if you agree, say: dgm trust {shlex.quote(str(file))}",
        f"{file} may be another person's. Use its {words}",
        list(unagreed.values()),
    )


def _sends_secret(name: str, models: ModelsSettings) -> bool:
    """Return whether the settings of a provider let a value of the environment go to an address that they name."""
    if name not in PROVIDERS:
        return False
    provider = PROVIDERS[name]
    section = provider.settings(models)
    added = json.dumps([dict(section.extra_headers), section.extra_body])
    has_key = provider.is_cloud or not provider.key_is_optional or section.key_env is not None
    has_key = has_key or bool(os.environ.get(provider.key_env, "").strip())
    return bool(section.base_url and (has_key or '"env:' in added))


def _find_unagreed(after: ModelsSettings, before: ModelsSettings) -> Mapping[str, Subject]:
    theirs = _find_own(before)
    found = {}
    for name, own in _find_own(after).items():
        old = theirs.get(name)
        if old is None or not any(old.get(key) == value for key, value in own.items()):
            continue
        if not any(_make_subject(name, each).is_agreed() for each in (own, old)):
            found[name] = _make_subject(name, own)
    return found


def _find_own(models: ModelsSettings) -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for provider in PROVIDERS.values():
        section = provider.settings(models).model_dump(mode="json", exclude_defaults=True)
        own = {name: value for name, value in section.items() if name not in _HARMLESS and value is not None}
        if own.get("key_env") == provider.key_env:
            del own["key_env"]
        if own:
            found[provider.name] = own
    for model, changes in models.model_dump(mode="json", exclude_defaults=True).get("requests", {}).items():
        if "set" in changes:
            found[f"requests of {model}"] = changes["set"]
    prices = models.model_dump(mode="json", exclude_none=True)["prices"]
    return found | {f"{_PRICE}{model}": row for model, row in prices.items()}


def _make_subject(name: str, own: Mapping[str, Any]) -> Subject:
    shown = own if not name.startswith(_PRICE) else {key: own[key] for key in ("input", "output")}
    values = ", ".join(f"{key} = {_format_value(value)}" for key, value in shown.items())
    return Subject(json.dumps(["models", name, own], sort_keys=True), f"{name}: {values}")


def _format_value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # Cut, so that a long value hides none of the others.
    return text if len(text) <= VALUE_CHARS else f"{text[:VALUE_CHARS]}…"
