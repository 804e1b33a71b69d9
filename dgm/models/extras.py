"""Additions of the settings to every request: ``extra_headers``, ``extra_body`` and ``reasoning_effort``.

A value ``env:NAME`` is read from the environment when a model is opened, and is a secret from then on.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dgm.config import ProviderSettings
from dgm.errors import UserError
from dgm.messages import JsonObject, WireProtocol

_FROM_ENVIRONMENT = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+:[ -~]*")
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})
_LISTS = frozenset({"anthropic-beta"})
"""Headers whose values from several sources are joined by commas."""


@dataclass(frozen=True, slots=True)
class Extras:
    """Headers and body keys that are sent with every request to one provider."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers with lower-case names."""
    body: JsonObject = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    """Values that came from the environment."""

    def add_to_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request with these added; these win, and lists (``anthropic-beta``) are joined."""
        merged = {name.lower(): value for name, value in headers.items()}
        for name, value in self.headers.items():
            known = merged.get(name)
            merged[name] = f"{known},{value}" if known and name in _LISTS else value
        return merged

    def add_to_body(self, body: JsonObject) -> dict[str, Any]:
        """Return the body of a request with these keys, nested objects merged; these win."""
        return _merge(body, self.body)


def read_extras(settings: ProviderSettings, section: str) -> Extras:
    """Return the additions in a provider's settings.

    Args:
        settings: of the provider.
        section: their name, for messages: ``providers.openai``.

    Raises:
        UserError: a variable is not set, a header cannot be sent, or a secret stands in the settings themselves.
    """
    secrets: list[str] = []
    headers = {}
    for name, value in settings.extra_headers.items():
        where = f"{section}.extra_headers.{name}"
        if name.lower() in _SECRET_HEADERS and not _FROM_ENVIRONMENT.fullmatch(value):
            raise UserError(
                f"{where}: settings are published with runs and hold no secrets: put the value into an environment "
                'variable and write "env:NAME"'
            )
        resolved = _resolve(value, where, secrets)
        if not _HEADER.fullmatch(f"{name}:{resolved}"):
            raise UserError(f"{where}: no header can have this name or value")
        headers[name.lower()] = resolved
    body = _resolve(settings.extra_body, f"{section}.extra_body", secrets)
    return Extras(headers, body, tuple(secrets))


def default_effort(body: JsonObject, protocol: WireProtocol, effort: str | None) -> JsonObject:
    """Return the body with a reasoning effort if it names none; the same object if nothing is added.

    Call it before the learned abilities of the model are applied, so that a refused effort stays left out.
    """
    if not effort:
        return body
    if protocol is WireProtocol.CHAT:
        named = "reasoning_effort" in body or "reasoning" in body
        return body if named else {**body, "reasoning_effort": effort}
    key = "reasoning" if protocol is WireProtocol.RESPONSES else "output_config"
    inner = body.get(key)
    if inner is not None and (not isinstance(inner, Mapping) or inner.get("effort") is not None):
        return body
    return {**body, key: {**(inner or {}), "effort": effort}}


def _resolve(value: Any, where: str, secrets: list[str]) -> Any:  # noqa: ANN401  (any JSON)
    match value:
        case str() if named := _FROM_ENVIRONMENT.fullmatch(value):
            secret = os.environ.get(named[1], "").strip()
            if not secret:
                raise UserError(f"{where}: the environment variable {named[1]} is not set")
            secrets.append(secret)
            return secret
        case Mapping():
            return {name: _resolve(inner, f"{where}.{name}", secrets) for name, inner in value.items()}
        case list() | tuple():
            return [_resolve(inner, where, secrets) for inner in value]
        case _:
            return value


def _merge(body: JsonObject, extra: JsonObject) -> dict[str, Any]:
    merged = dict(body)
    for name, value in extra.items():
        known = merged.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            value = _merge(known, value)
        merged[name] = value
    return merged
