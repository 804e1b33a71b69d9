"""Which OpenAI-compatible servers answer on this machine, and what they offer; asking costs nothing."""

import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

WAIT_S = 0.7
"""For all servers together; one of this machine answers in a few milliseconds, or it is too busy to be chosen."""
ANSWER_BYTES = 1_000_000
_NAME = re.compile(r"[\w./:@+-]{1,200}", re.ASCII)
_NO_CHAT = re.compile(r"embed|rerank|whisper|\btts\b|\bbge\b|\bclip\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server at the port that it listens on unless told otherwise."""

    name: str
    base_url: str


USUAL = (
    LocalServer("Ollama", "http://127.0.0.1:11434/v1"),
    LocalServer("llama.cpp", "http://127.0.0.1:8080/v1"),
    LocalServer("vLLM", "http://127.0.0.1:8000/v1"),
)

Probe = Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
"""Base URLs → of each that answers, the chat models that it offers, in its order."""


def probe(base_urls: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Asks all of them at once for ``/models``; takes less than a second, whatever they do.

    A server counts where its answer is the JSON list that OpenAI's is, with at least one model for chat in it.
    """
    found: dict[str, Sequence[str]] = {}
    deadline = time.monotonic() + WAIT_S
    # Daemons: one that hangs in a server's slow answer must keep nobody waiting, not even the program's end.
    asking = [threading.Thread(target=_ask, args=(url, deadline, found), daemon=True) for url in base_urls]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(max(0.0, deadline - time.monotonic()))
    answered = dict(found)
    return {url: answered[url] for url in base_urls if url in answered}


def chat_models(answer: bytes) -> Sequence[str]:
    """The chat models in the answer to ``GET /v1/models``; none where it is something else."""
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError):
        return ()
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, list):
        return ()
    names = (entry.get("id") for entry in data if isinstance(entry, dict))
    # The name ends up in settings and on a terminal, and whoever has the port may have written it.
    return tuple(
        name
        for name in names
        if isinstance(name, str) and _NAME.fullmatch(name) and not _NO_CHAT.search(name)
    )


def _ask(url: str, deadline: float, found: dict[str, Sequence[str]]) -> None:
    try:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        # Straight to the server: the environment's proxies are not for this machine.
        connection = kind(parts.hostname or "", parts.port, timeout=max(0.01, deadline - time.monotonic()))
        try:
            connection.request(
                "GET", f"{parts.path.rstrip('/')}/models", headers={"Accept": "application/json"}
            )
            response = connection.getresponse()
            if response.status != http.client.OK:
                return
            body = response.read(ANSWER_BYTES)
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError):
        return
    if models := chat_models(body):
        found[url] = models
