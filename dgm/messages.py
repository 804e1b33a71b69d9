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
class Native:
    """A vendor's own form of one assistant turn, kept where it holds what ours cannot: reasoning and its signatures.

    Only what a vendor itself said is ever kept here; nothing that an agent sends becomes a ``Native``.
    """

    vendor: str
    """The adapter that made it and can send it back: ``anthropic``, ``openai-responses``, ``openai-chat``."""
    data: str
    """The turn as JSON text, as the vendor wrote it."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn: text, the calls that an assistant makes, or (role ``tool``) the result of the call ``call_id``."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    failed: bool = False
    """Of a tool's result: the tool says that it failed."""
    native: Native | None = None
    """Of an assistant's turn: put back by the gateway where the turn is one that the model said in this job."""


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
    """Reasoning included. The gateway always sets it before a model is asked."""
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    """Texts at which the model is to stop."""
    tool_choice: str = "auto"
    """``auto``, ``none``, ``required``, or ``tool:NAME``."""
    parallel: bool = True
    """Whether one reply may hold several calls."""
    effort: str = ""
    """How much a reasoning model is to think: ``minimal``, ``low``, ``medium``, ``high`` …; empty: as it likes."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, and what that took."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = Stop.END
    usage: Usage = field(default_factory=Usage)
    reasoning: str = ""
    """What can be read of the model's reasoning."""
    native: Native | None = None
    error: str = ""
    """Set where the provider refused the request for good (``context_length_exceeded`` …): its word for it; the
    message is in ``text``. Or ``CUT_SHORT``."""


CUT_SHORT = "cut_short_by_budget"
"""Error of a reply that had less room than the agent was given, because the run's money ran out: no agent gets it."""


JsonObject = Mapping[str, Any]
"""An object of JSON, as a program or a provider wrote it."""


class WireProtocol(StrEnum):
    """The protocols that agents and providers speak."""

    CHAT = "chat"
    """OpenAI's Chat Completions, and every server that is compatible with them."""
    RESPONSES = "responses"
    """OpenAI's Responses."""
    MESSAGES = "messages"
    """Anthropic's Messages."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request as the JSON that is sent to a provider."""

    protocol: WireProtocol
    body: JsonObject
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the agent that are passed on, such as ``anthropic-beta``."""


@dataclass(frozen=True, slots=True)
class WireReply:
    """A provider's answer as the agent gets it."""

    protocol: WireProtocol
    content: bytes
    """The whole body: JSON, or server-sent events."""
    stream: bool
    usage: Usage
    stop: Stop = Stop.END
    error: str = ""
    """As in ``Reply``; the content is then the refusal's body."""
    status: int = 200
    own: bool = True
    """Of a refusal: as in ``RequestRefused``."""


@dataclass(frozen=True, slots=True)
class CallKey:
    """Names one model call of a run: the ``number``-th (from 1) that ``action`` makes."""

    action: ActionId
    number: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """A model call that was paid for."""

    number: int
    request: Request | WireRequest
    reply: Reply | WireReply


@dataclass(frozen=True, slots=True)
class PaidCall:
    """An answered call on its way into the journal."""

    key: CallKey
    model: str
    role: str
    request: Request | WireRequest
    reply: Reply | WireReply
    """With its price in ``usage.usd``."""
    seconds: float


@dataclass(frozen=True, slots=True)
class BegunCall:
    """A call that is about to be sent, on its way into the journal."""

    key: CallKey
    model: str
    role: str
    request: WireRequest
    most: Usage
    """Its worst case."""


@dataclass(frozen=True, slots=True)
class CutCall:
    """A call that the death of a process cut off."""

    number: int
    request: Request | WireRequest
    model: str
    role: str
    booked: Usage
    """What it is counted at."""


CONTEXT_LENGTH = "context_length_exceeded"
"""Error of a request that is longer than the model can read, whoever the provider is."""


class RequestRefused(Exception):
    """The model cannot answer this request and no retry will help; the agent is told, in the provider's words.

    Attributes:
        code: the provider's word for it, such as ``context_length_exceeded``.
        own: whether the agent's request is at fault; a refusal for another reason never makes a verdict.
        kept: whether a repetition of the action is to hear the same, without the provider being asked again.
        status: of HTTP, as the provider gave it.
        content: the provider's body, to be handed to an agent of the same protocol; empty: there is none.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        own: bool = True,
        kept: bool = True,
        status: int = 400,
        content: bytes = b"",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.own = own
        self.kept = kept
        self.status = status
        self.content = content
