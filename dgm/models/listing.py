"""A provider's list of models, and the intended base URL. Both inform people; neither is a requirement."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dgm.messages import JsonObject, WireProtocol
from dgm.models.connections import Connection

if TYPE_CHECKING:
    import httpx2

_CONTEXT = (
    "max_model_len",
    "loaded_context_length",
    "max_input_tokens",
    "context_length",
    "context_window",
    "max_context_length",
    "meta.n_ctx",
    "meta.n_ctx_train",
    "top_provider.context_length",
)
"""Keys under which servers give the context size in tokens; the closest to the served size first."""
_OUTPUT = ("top_provider.max_completion_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens")
_ENDPOINTS = ("/chat/completions", "/completions", "/responses", "/messages", "/models")
_NO_SUCH_PATH = (404, 405)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model of a provider's list."""

    id: str
    context: int | None = None
    """Tokens of input and output together, or of input alone, by the provider's definition; None: not given."""
    max_output: int | None = None
    """Maximum tokens of one reply; None: not given."""


async def list_models(connection: Connection) -> tuple[ModelRow, ...] | None:
    """Return the models that the provider lists; None if there is no list, or it cannot be read.

    A list may hold more or fewer models than can be used.

    Raises:
        openai.APIConnectionError: there is no reply; as ``Connection.get``.
    """
    if not connection.list_path:
        return None
    response = await connection.get(connection.list_path)
    rows = _parse_rows(response)
    return None if rows is None else tuple(row for one in rows if (row := read_row(one)))


def read_row(entry: object) -> ModelRow | None:
    """Return the model of one list entry; None if it names none."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
        return None
    return ModelRow(entry["id"], _first_size(entry, _CONTEXT), _first_size(entry, _OUTPUT))


def is_unknown_path(response: "httpx2.Response") -> bool:
    """Return whether a read reply says that the path does not exist, and not that the model does not."""
    if response.status_code not in _NO_SUCH_PATH:
        return False
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return True
    error = body.get("error") if isinstance(body, Mapping) else None
    said = error if error is not None else body
    return "model" not in json.dumps(said).lower()


async def suggest_url(connection: Connection) -> str | None:
    """Return the intended base URL if this one has no such path; None if no other is found.

    Raises:
        openai.APIConnectionError: there is no reply; as ``Connection.get``.
    """
    for url in _candidate_urls(connection):
        below = "/v1/models" if connection.protocol is WireProtocol.MESSAGES else "/models"
        if _parse_rows(await connection.get(url + below)) is not None:
            return url
    return None


def _candidate_urls(connection: Connection) -> Sequence[str]:
    base = connection.base_url
    whole = next((end for end in _ENDPOINTS if base.endswith(end)), None)
    found = [base.removesuffix(whole)] if whole else []
    parts = urlsplit(base)
    root = f"{parts.scheme}://{parts.netloc}"
    if connection.protocol is WireProtocol.MESSAGES:
        found = [url.removesuffix("/v1") for url in found]
        found += [f"{base}/anthropic", root]
    else:
        found += [] if base.endswith("/v1") else [f"{base}/v1"]
        found += [f"{root}/v1", f"{root}/api/v1", f"{root}/openai/v1"]
    return [url for url in dict.fromkeys(found) if url != base]


def _parse_rows(response: "httpx2.Response") -> Sequence[object] | None:
    if not response.is_success:
        return None
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return None
    rows = body.get("data") if isinstance(body, Mapping) else None
    return rows if isinstance(rows, list) else None


def _first_size(entry: JsonObject, paths: Iterable[str]) -> int | None:
    for path in paths:
        value: Any = entry
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
