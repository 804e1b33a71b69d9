"""What is said between an agent and a model, in one neutral form.

The gateway translates wire protocols into these values, model adapters translate them into a vendor's. A value
holds everything that a reply may depend on; who asked, and for which action, is in ``CallKey``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dgm.domain import ActionId, Usage


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Stop(StrEnum):
    """Why a model stopped speaking."""

    END = "end"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model asks the scaffold to run a tool; ``arguments`` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn: text, the calls that an assistant makes, or (role ``tool``) the result of the call ``call_id``."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the scaffold offers; ``parameters`` is its JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """Everything a reply may depend on."""

    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    model: str = ""
    temperature: float | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, and what that took."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = Stop.END
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class CallKey:
    """Names one model call of a run: the ``number``-th (from 1) that ``action`` makes."""

    action: ActionId
    number: int


class RequestRefused(Exception):
    """The model cannot answer this request and no retry will help; the agent is told, in the provider's words.

    Attributes:
        code: the provider's word for it, such as ``context_length_exceeded``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
