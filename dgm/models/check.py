"""The check of a model before money flows: one small real call with a tool and the parameters that agents use.

A provider's list of models tells sizes; it is no requirement.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dgm.domain import Usage
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
    return WireRequest(protocol, WIRES[protocol].write_request(request, own_name), own=True)


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
    """Return the model's sizes from the provider's list of models; no sizes if it does not give them.

    The list is no condition: it may be missing, and hold more or fewer models than can be used.
    """
    if not connection.list_path:
        return Abilities()
    try:
        rows = json.loads(await connection.get(connection.list_path))["data"]
        row: JsonObject = next((row for row in rows if row["id"] == own_name), {})
        return Abilities(context=_first_size(row, _CONTEXT), max_output=_first_size(row, _OUTPUT))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Abilities()
    except Exception as error:
        if judge_transport(error) is None:
            raise
        return Abilities()


def _first_size(row: JsonObject, paths: Iterable[str]) -> int | None:
    for path in paths:
        value: Any = row
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


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

    async def begin(self) -> None:
        """Record nothing."""

    def sending(self) -> None:
        """Ignore the start of sending."""

    def pass_on(self, data: bytes) -> None:
        """Discard the data."""

    def take_back(self, wasted: Usage) -> None:
        """Do nothing: no data was handed on."""
