"""The messages between an agent and a model, in one neutral form.

The gateway translates wire protocols into these values; model adapters translate them into a vendor's form. A value
holds everything that a reply may depend on. ``CallKey`` identifies the asking action.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dgm.domain import ActionId, Usage


class Role(StrEnum):
    """The speaker of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Stop(StrEnum):
    """The reason why a model stopped."""

    END = "end"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to the scaffold to run a tool; ``arguments`` is the JSON text that the model wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Native:
    """A vendor's own form of one assistant turn, kept for content that dgm's form lacks: reasoning and its signatures.

    Only a vendor's own output is kept here; an agent's input never becomes a ``Native``.
    """

    vendor: str
    """The adapter that made it and can send it back: ``anthropic``, ``openai-responses``, ``openai-chat``."""
    data: str
    """The turn as the JSON text that the vendor wrote."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn: text, an assistant's tool calls, or (role ``tool``) the result of the call ``call_id``."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    failed: bool = False
    """For a tool's result: the tool reported a failure."""
    native: Native | None = None
    """For an assistant's turn: the gateway restores it if the model produced this turn in this job."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the scaffold offers; ``parameters`` is its JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The JSON that an answer must be, for providers that have structured output.

    Providers take a schema strictly if each object lists all of its keys as required and allows no others.
    """

    name: str
    """The schema's name: letters, digits and underscores."""
    schema: Mapping[str, Any]
    """Its JSON schema."""


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that a reply may depend on."""

    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    model: str = ""
    temperature: float | None = None
    max_output_tokens: int | None = None
    """Includes reasoning. The gateway always sets it before it asks a model."""
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    """Texts at which the model stops."""
    tool_choice: str = "auto"
    """``auto``, ``none``, ``required``, or ``tool:NAME``."""
    parallel: bool = True
    """Whether one reply may hold several tool calls."""
    effort: str = ""
    """Reasoning effort: ``minimal``, ``low``, ``medium``, ``high`` …; empty: the model's default."""
    form: AnswerForm | None = None
    """Wanted form of the answer, a wish of dgm's own questions: a model that does not take it is asked without it, and
    a record in dgm's own form has none."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer and its usage."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = Stop.END
    usage: Usage = field(default_factory=Usage)
    reasoning: str = ""
    """The readable part of the model's reasoning."""
    native: Native | None = None
    error: str = ""
    """The provider's code (``context_length_exceeded`` …) if it refused the request for good; ``text`` is its
    message. Or ``CUT_SHORT``."""


CUT_SHORT = "cut_short_by_budget"
"""Error of a reply that got a smaller limit than the agent's, because the run's money ran out. No agent gets it."""


JsonObject = Mapping[str, Any]
"""A JSON object as a program or a provider wrote it."""


class WireProtocol(StrEnum):
    """The protocols that agents and providers speak."""

    CHAT = "chat"
    """OpenAI's Chat Completions, and all compatible servers."""
    RESPONSES = "responses"
    """OpenAI's Responses API."""
    MESSAGES = "messages"
    """Anthropic's Messages API."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request as the JSON that is sent to a provider."""

    protocol: WireProtocol
    body: JsonObject
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the agent's request that are passed on, such as ``anthropic-beta``."""
    form_optional: bool = False
    """The body's form of the answer is dgm's own wish: it is left out where the model refuses it."""
    own: bool = field(default=False, compare=False)
    """Whether dgm itself asks: then the vendor's package makes the request."""


@dataclass(frozen=True, slots=True)
class WireReply:
    """A provider's answer in the form that the agent gets."""

    protocol: WireProtocol
    content: bytes
    """The whole body: JSON, or server-sent events."""
    stream: bool
    usage: Usage
    stop: Stop = Stop.END
    error: str = ""
    """Same as in ``Reply``; if set, ``content`` is the body of the refusal."""
    status: int = 200
    own: bool = True
    """For a refusal: same as in ``RequestRefused``."""
    whole: JsonObject | None = field(default=None, compare=False, repr=False)
    """The answer in the form without streaming, if it is known already."""


@dataclass(frozen=True, slots=True)
class CallKey:
    """The key of one model call of a run: the ``number``-th (from 1) of ``action``."""

    action: ActionId
    number: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """A paid model call."""

    number: int
    request: Request | WireRequest
    reply: Reply | WireReply


@dataclass(frozen=True, slots=True)
class PaidCall:
    """An answered call to be recorded in the journal."""

    key: CallKey
    model: str
    role: str
    request: Request | WireRequest
    reply: Reply | WireReply
    """The reply, with its price in ``usage.usd``."""
    seconds: float


@dataclass(frozen=True, slots=True)
class BegunCall:
    """A call that is about to be sent, to be recorded in the journal."""

    key: CallKey
    model: str
    role: str
    request: WireRequest
    most: Usage
    """The worst-case usage."""


@dataclass(frozen=True, slots=True)
class CutCall:
    """A call that the death of a process cut off."""

    number: int
    request: Request | WireRequest
    model: str
    role: str
    booked: Usage
    """The usage that is counted for it."""


LEFT_OPEN = "call_left_open"
"""Error of a call that was not answered when its agent had ended, again and again while its model answered others."""
NO_TOOLS = "no_tools"
"""Error of a request with tools to a model that takes none, for every provider."""
CONTEXT_LENGTH = "context_length_exceeded"
"""Error of a request that is longer than the model's context, for every provider."""


class RequestRefused(Exception):
    """The model cannot answer this request, and no retry will help; the agent is told in the provider's words.

    Attributes:
        code: the provider's error code, such as ``context_length_exceeded``.
        own: whether the agent's request is at fault; a refusal for another reason never gives a verdict.
        kept: whether a repetition of the action gets the same refusal without asking the provider again.
        status: the HTTP status that the provider returned.
        content: the provider's body, for an agent that speaks the same protocol; empty if there is none.
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
