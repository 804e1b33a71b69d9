"""Detection of OpenAI-compatible servers on this machine and of their models; it costs nothing."""

import http.client
import json
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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


def probe(base_urls: Sequence[str]) -> Mapping[str, Sequence[str]]:
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
