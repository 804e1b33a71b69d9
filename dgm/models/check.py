"""The check of a model before money flows: one small real call with a tool and the parameters that agents use.

A provider's list of models informs it of sizes, and of the base URL that was meant; neither is a requirement.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dgm.domain import Usage
from dgm.errors import ProviderRefuses
from dgm.messages import (
    NO_TOOLS,
    JsonObject,
    Message,
    Request,
    RequestRefused,
    Role,
    Tool,
    WireProtocol,
    WireReply,
    WireRequest,
)
from dgm.models.abilities import Abilities
from dgm.models.connections import Connection
from dgm.models.faults import judge_transport
from dgm.models.pricing import REPLY_TOKENS
from dgm.wires import WIRES, whole_of

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


TOOL = Tool(
    "bash",
    "Run a shell command and return its output.",
    {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
QUESTION = "This is a check of the connection. Call the tool bash once with the command `true`."
NO_TOOL_CALL = "this model does not call tools: it answered the check, which asks for a call, in text"


def check_request(
    protocol: WireProtocol, own_name: str, *, tools: bool, output: int = REPLY_TOKENS
) -> WireRequest:
    """Return the request of the check in a protocol; without ``tools`` it offers none."""
    request = Request(
        messages=(Message(Role.SYSTEM, "You are a programmer."), Message(Role.USER, QUESTION)),
        tools=(TOOL,) if tools else (),
        temperature=0.0,
        max_output_tokens=output,
    )
    return WireRequest(protocol, WIRES[protocol].write_request(request, own_name))


def check_warnings(reply: WireReply, request: WireRequest, *, tools: bool) -> list[str]:
    """Return warnings about the answer; empty if it calls the tool within its output limit."""
    wire, body = WIRES[reply.protocol], request.body
    words = []
    limit = wire.output_limit(body)
    if limit is not None and reply.usage.output_tokens > limit:
        words.append(overrun_warning(limit, reply.usage.output_tokens))
    answer = wire.read_reply(whole_of(reply, body), body)
    if tools and not answer.calls:
        words.append(NO_TOOL_CALL)
    return words


def describe_refused_check(refusal: RequestRefused) -> str:
    """Return the refusal of the check in a line, with advice where the model takes no tools."""
    if refusal.code != NO_TOOLS:
        return str(refusal)
    return f"{refusal}; agents that act by text need none: set tools = false in the provider's settings"


def overrun_warning(asked: int, billed: int) -> str:
    """Return the warning about a server that returned more output than the limit."""
    return (
        f"the server gave {billed:,} output tokens where at most {asked:,} were asked for, so a budget may be overrun "
        "by one call"
    )


async def read_listed_sizes(connection: Connection, own_name: str) -> Abilities:
    """Return the model's sizes from the provider's list of models; no sizes if it does not give them."""
    try:
        rows = await list_models(connection)
    except Exception as error:
        if judge_transport(error) is None:
            raise
        return Abilities()
    row = next((row for row in rows or () if row.id == own_name), None)
    return Abilities(context=row.context, max_output=row.max_output) if row else Abilities()


async def add_url_suggestion(connection: Connection, error: ProviderRefuses) -> ProviderRefuses:
    """Return the error with the probably intended base URL, if another one answers."""
    try:
        meant = await suggest_url(connection)
    except Exception as other:
        if judge_transport(other) is None:
            raise
        meant = None
    return ProviderRefuses(f"{error}; did you mean base_url = {meant}?") if meant else error


class NullListener:
    """A listener that keeps nothing."""

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Ignore the lesson."""

    def waits(self, model: str, words: str, until: float) -> None:
        """Ignore the wait."""

    def overran(self, model: str, asked: int, billed: int) -> None:
        """Ignore the overrun."""


class NullDelivery:
    """The delivery of a call that no agent waits for."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Enter the wait without any effect."""
        yield

    async def sending(self) -> None:
        """Ignore the start of sending."""

    def pass_on(self, data: bytes) -> None:
        """Discard the data."""

    def take_back(self, wasted: Usage) -> None:
        """Do nothing: no data was handed on."""


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
