"""Choice of the model behind ``auto``, with the reason.

The order is: an endpoint from the settings, a provider whose key is set, a local server that answers, ``offline``. The
search spends nothing, and it takes no paid provider before the user has agreed to it.
"""

import http.client
import json
import os
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dgm.config import ProviderSettings, Settings
from dgm.errors import UserError
from dgm.models.addresses import check_url
from dgm.models.choose import AUTO, ROLES
from dgm.models.pricing import Price, Prices
from dgm.models.providers import ANTHROPIC, COMPATIBLE, OPENAI, Provider, providers_of

WAIT_S = 0.7
"""Seconds to wait for all servers together; a local one answers in milliseconds, or is too busy to be chosen."""
ANSWER_BYTES = 1_000_000
_NAME = re.compile(r"[\w./:@+-]{1,200}", re.ASCII)
_NO_CHAT = re.compile(r"embed|rerank|whisper|\btts\b|\bbge\b|\bclip\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server at its default port."""

    name: str
    base_url: str


USUAL = (
    LocalServer("Ollama", "http://127.0.0.1:11434/v1"),
    LocalServer("llama.cpp", "http://127.0.0.1:8080/v1"),
    LocalServer("vLLM", "http://127.0.0.1:8000/v1"),
)

Probe = Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
"""Function from base URLs to the chat models of each server that answers, in its order."""


def probe_servers(base_urls: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Ask all servers at once for ``/models``; return in less than a second, whatever they do.

    A server counts if its answer is the same JSON list as OpenAI's, with at least one model for chat in it.
    """
    found: dict[str, Sequence[str]] = {}
    deadline = time.monotonic() + WAIT_S
    # Daemon threads: a server's slow answer must delay nobody, not even the program's end.
    asking = [
        threading.Thread(target=_ask_server, args=(url, deadline, found), daemon=True) for url in base_urls
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(max(0.0, deadline - time.monotonic()))
    answered = dict(found)
    return {url: answered[url] for url in base_urls if url in answered}


def parse_chat_models(answer: bytes) -> Sequence[str]:
    """Return the chat models in the answer to ``GET /v1/models``; none if it has another form."""
    try:
        rows = json.loads(answer)["data"]
        names = [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
    except (ValueError, RecursionError, LookupError, TypeError):
        return ()
    # The name appears in settings and on a terminal, and any program on the port may have written it.
    return tuple(name for name in names if _NAME.fullmatch(name) and not _NO_CHAT.search(name))


def _ask_server(url: str, deadline: float, found: dict[str, Sequence[str]]) -> None:
    # Without a proxy: the environment's proxies are not for this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        request = urllib.request.Request(f"{url.rstrip('/')}/models", headers={"Accept": "application/json"})
        with opener.open(request, timeout=max(0.01, deadline - time.monotonic())) as response:
            models = parse_chat_models(response.read(ANSWER_BYTES))
    except (OSError, http.client.HTTPException, ValueError):
        return
    if models:
        found[url] = models


PAID = (OPENAI.name, ANTHROPIC.name)
"""Paid providers, in the order of preference."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that could be used and costs money."""

    provider: str
    model: str
    key_variable: str
    base_url: str | None
    """Address of the API; None is the provider's own address."""
    price: Price


Ask = Callable[[Offer], bool]
"""Question whether the user agrees. Raises ``UserError`` if nobody can be asked."""


def settle_auto(
    settings: Settings, ask: Ask, environment: Mapping[str, str] = os.environ, probe: Probe = probe_servers
) -> tuple[Settings, str]:
    """Return the settings with a model in place of ``auto``, and one line with the model and the reason.

    Roles with a model of their own keep it; the others follow. Settings that name their models are returned unchanged.

    Args:
        settings: with ``auto`` for the model or for a role of it, or without.
        ask: asks whether a paid provider may be used, one at a time.
        environment: holds the keys and addresses of providers.
        probe: asks local servers for their models.

    Raises:
        UserError: only a paid provider could be used, and nobody can be asked.
    """
    models = settings.models
    asked = {role: None for role in ROLES if getattr(models, role) == AUTO}
    settings = settings.model_copy(update={"models": models.model_copy(update=asked)}) if asked else settings
    if settings.model != AUTO:
        return settings, f"{settings.model}: as the settings say"
    if models.improve and models.diagnose and models.solve and not asked:
        return settings.model_copy(update={"model": models.solve}), "every role has a model of its own"
    return (
        _choose_configured(settings, probe)
        or _choose_paid(settings, ask, environment)
        or _choose_local(settings, probe)
        or _choose_offline(settings)
    )


def _choose_configured(settings: Settings, probe: Probe) -> tuple[Settings, str] | None:
    """Return the settings for the configured endpoint, if there is one: a user who gives an address wants no other."""
    for provider in providers_of(settings).values():
        if provider.kind is COMPATIBLE and provider.settings.base_url:
            return _choose_of_server(
                settings, provider, check_url(provider.settings.base_url, provider.section), probe
            )
    return None


def _choose_of_server(settings: Settings, provider: Provider, url: str, probe: Probe) -> tuple[Settings, str]:
    where, prices = f"{provider.section}.base_url = {url}", Prices.load(settings)
    offered = [f"{provider.name}/{name}" for name in probe([url]).get(url, ())]
    if model := next(filter(prices.knows, offered), ""):
        return settings.model_copy(update={"model": model}), f"{model}: {where} offers it"
    if offered:
        some = ", ".join(name.partition("/")[2] for name in offered[:3])
        raise UserError(
            f"{where} offers {some}{' …' if len(offered) > 3 else ''}, and nobody has said what they cost: name one, "
            f'as {provider.name}/…, and add [models.prices."{provider.name}/…"] to the settings'
        )
    raise UserError(
        f"{where} does not answer with a list of models: start that server, or name the model, as "
        f"{provider.name}/…"
    )


def _choose_paid(settings: Settings, ask: Ask, environment: Mapping[str, str]) -> tuple[Settings, str] | None:
    prices, providers = Prices.load(settings), providers_of(settings)
    for provider in (providers[name] for name in PAID):
        variable = provider.key_env
        if not environment.get(variable, "").strip():
            continue
        model = prices.defaults[provider.name]
        if ask(Offer(provider.name, model, variable, provider.base_url(environment), prices.of(model))):
            return settings.model_copy(update={"model": model}), f"{model}: {variable} is set"
    return None


def _choose_local(settings: Settings, probe: Probe) -> tuple[Settings, str] | None:
    answering = probe([server.base_url for server in USUAL])
    for server in USUAL:
        if names := answering.get(server.base_url):
            model = f"{COMPATIBLE.name}/{names[0]}"
            known = settings.providers.get(COMPATIBLE.name, ProviderSettings())
            reached = known.model_copy(update={"base_url": server.base_url})
            providers = {**settings.providers, COMPATIBLE.name: reached}
            return (
                settings.model_copy(update={"model": model, "providers": providers}),
                f"{model}: {server.name} answers at {server.base_url}",
            )
    return None


def _choose_offline(settings: Settings) -> tuple[Settings, str]:
    why = "no provider's key may be used and no local server answers"
    return settings.model_copy(update={"model": "offline"}), f"offline (rule-based, a demonstration): {why}"
