"""One model lent to one agent for one action: its limits and its usage.

A lease decides whether a further call is admitted. The gateway asks the model and makes its reply durable; the ledger
limits the spend of the whole run.
"""

import asyncio
import math
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dgm.archive.conversations import ConversationBuilder, Thread
from dgm.archive.volatile_text import Conditions
from dgm.domain import ActionId, Finding, FindingKind, Usage
from dgm.errors import DgmError
from dgm.gateway.allowed import BadRequest
from dgm.gateway.bodies import Pace
from dgm.gateway.ledger import AnyRequest, MeasuredRequest, WorstCase
from dgm.gateway.memory import LeaseMemory
from dgm.gateway.translation import parse_call
from dgm.messages import (
    Exchange,
    JsonObject,
    Reply,
    Request,
    Role,
    WireProtocol,
    WireReply,
    WireRequest,
)
from dgm.protocols import DryCalls, LentModel, WireModel
from dgm.wires import WIRES, whole_of
from dgm.wires.wire import Wire

DEFAULT = "default"
"""A name that always stands for the lent model."""
FAMILIES: Mapping[str, str] = {
    "Anthropic": r"claude|haiku|sonnet|opus|fable",
    "OpenAI": r"gpt|chatgpt|codex|o\d",
    "Google": r"gemini|gemma",
    "Qwen": r"qwen|qwq",
    "DeepSeek": r"deepseek",
    "Mistral": r"mistral|mixtral|codestral|devstral|magistral|ministral",
    "Meta": r"llama",
    "xAI": r"grok",
    "Moonshot": r"kimi",
    "Zhipu": r"glm",
}
"""Map of vendor to the words by which its models' names begin, also after a prefix such as ``us.anthropic.``."""


def family_of(name: str) -> str:
    """Return the vendor whose models are named like this; empty if none is known."""
    places = (
        (match.start(), vendor)
        for vendor, words in FAMILIES.items()
        if (match := re.search(rf"(?<![a-z])(?:{words})", name.lower()))
    )
    return min(places, default=(0, ""))[1]


@dataclass(frozen=True, slots=True)
class ModelNames:
    """The names of one lent model."""

    full: str
    """The name that users type: ``openai/gpt-6.2-sol``."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Map of names that agents ask for to model names (``models.aliases``)."""
    any_name: bool = False
    """True if every name is answered, because no model is chosen yet."""

    @property
    def native(self) -> str:
        """The provider's own name of the model: ``gpt-6.2-sol``."""
        provider, slash, name = self.full.partition("/")
        return name if slash and ":" not in provider else self.full

    @property
    def listed(self) -> list[str]:
        """The names that are offered, the one that agents are told first."""
        targets = (DEFAULT, self.full, self.native)
        aliases = [name for name, target in self.aliases.items() if target in targets]
        return list(dict.fromkeys((self.native, DEFAULT, self.full, *aliases)))

    def check(self, name: str) -> bool:
        """Check a name that an agent asks for; return whether it is that of another model, answered with this one.

        Raises:
            BadRequest: the name stands for no model of the same vendor; the message says how to allow it.
        """
        if name in self.listed:
            return False
        if self.any_name or (family_of(name) and family_of(name) == family_of(self.native)):
            return True
        shown = ", ".join(repr(one) for one in self.listed)
        message = (
            f"the model {name[:80]!r} is not offered; use one of {shown}; or answer it with the lent model, in the "
            f'settings: models.aliases = {{"{name[:80]}" = "{DEFAULT}"}}'
        )
        raise BadRequest(message, "model_not_found", 404)


if TYPE_CHECKING:
    from dgm.gateway.call import Call

Recorded = Callable[[], tuple[Sequence[Exchange], Conditions]]
"""Reads the answers that earlier attempts of an action paid for, and what is known of their conditions."""
DRY_RUN = "dry-run"
"""The role of rehearsals: calls cost nothing and are not journaled, so no number clashes with a paid one."""
MOST_DETAIL = 300
"""Maximum characters of what is told of a finding."""
MOST_NAMES = 50
"""Maximum number of names of other models that are remembered for one job."""
SPENT = "action_limit_exceeded"
"""Error code of a call that a limit of its action forbids."""


class JobEnded(Exception):
    """The error of a call whose job ended before the call was sent."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits on one action's use of its model."""

    calls: int = 80
    tokens: int = 4_000_000
    """Maximum input and output tokens of all calls; the call that crosses the limit is still answered."""
    usd: float | None = None
    """Maximum cost of all calls in US dollars; a call whose worst case would cross it is refused."""
    concurrent: int = 4
    """Maximum number of concurrent calls; further calls wait."""
    waiting: int = 64
    """Maximum number of open requests, waiting ones included; more are refused."""
    body_bytes: int = 4_000_000
    output_tokens: int | None = None
    """Maximum output tokens of one reply; a larger request is reduced to this. None: ``Price.reply_limit``."""
    refusals: int = 20
    """Maximum number of recorded refusals; further ones are only counted."""


class RehearsedCalls:
    """The calls of one dry run.

    Attributes:
        other_models: names of other models that the lent one answered for, in order.
        left_out: names of what is left out of the calls to every model, in order.
    """

    def __init__(self) -> None:
        self.other_models: dict[str, None] = {}
        self.left_out: dict[str, None] = {}
        self._untranslatable: dict[WireProtocol, str] = {}
        self._turn_tokens = 0
        self._requests: list[WireRequest] = []

    def note(self, wire: Wire, body: JsonObject, tokens: int, sent: WireRequest, request: Request) -> None:
        """Note a call that its own protocol allows, and try to translate it.

        Args:
            wire: its protocol.
            body: its body, as ``read_document`` gives it.
            tokens: estimate of its input tokens.
            sent: the call as it would pass.
            request: the call in dgm's own form.
        """
        self._requests.append(sent)
        if all(message.role is not Role.ASSISTANT for message in request.messages):
            self._turn_tokens = max(self._turn_tokens, tokens)
        if self._untranslatable.setdefault(wire.protocol, ""):
            return
        try:
            parse_call(wire, body)
        except BadRequest as refusal:
            self._untranslatable[wire.protocol] = str(refusal)

    def summarise(self, refused: Mapping[str, str], left_out: Iterable[str]) -> DryCalls:
        """Return what the calls showed.

        Args:
            refused: map of code to first message of the refused requests.
            left_out: names of what is left out of the others, translated or not.
        """
        return DryCalls(
            dict(self._untranslatable),
            tuple(self.other_models),
            self._turn_tokens,
            dict(refused),
            tuple(self.left_out),
            tuple(name for name in left_out if name not in self.left_out),
            tuple(self._requests),
        )


class Lease:
    """The grant behind an agent's token, with the account of its use.

    Attributes:
        names: by which the agent may ask for the model.
        wire_model: the model, where it is asked in its provider's protocol.
        token: the agent's key; worthless outside the gateway that made it, and still set when the lease has ended.
        usage: of all answered calls, those served from the journal included.
        calls: number of answered calls.
        refusals: number of requests that were answered with an error.
        left_out: names of what was left out of its requests, in order, each once.
        refused: map of code to first message of the refusals, in order.
        findings: what its requests and its sandbox show against the agent, in order, each once.
        asked_models: names of other models that it asked for, in order, each once.
        rehearsed: what the calls of a dry run show.
        foreign: number of refusals for reasons that are not the agent's.
        heard: numbers of the calls that were answered so far in this attempt of the action; its leases share the set.
        open: number of requests that are not answered yet.
        cut: whether the agent saw the beginning of an answer that broke off.
        pace: the agent's share of the event loop.
        reached: whether a request with this token has arrived.
        asking: held while the model is asked a neutral question.
        asked_at: monotonic time of the last neutral question, in seconds.
        model_answers: whether that question was answered.
        failure: set when the model or the journal failed; the agent's behaviour after that says nothing about the
            agent.
    """

    def __init__(
        self,
        action: ActionId,
        role: str,
        model: LentModel,
        limits: CallLimits,
        names: ModelNames | None = None,
        recorded: Recorded | None = None,
    ) -> None:
        self.action = action
        self.role = role
        self.model = model
        self.names = names or ModelNames(model.name)
        self.wire_model = model if isinstance(model, WireModel) else None
        self.limits = limits
        self.token = "dgm-" + secrets.token_hex(16)
        self.usage = Usage()
        self.calls = 0
        self.refusals = 0
        self.refused: dict[str, str] = {}
        self.findings: dict[Finding, None] = {}
        self.asked_models: dict[str, None] = {}
        self.left_out: dict[str, None] = {}
        self.foreign = 0
        self.last_words = ""
        self.rehearsed = RehearsedCalls()
        self.failure: DgmError | None = None
        self.turns = asyncio.Semaphore(limits.concurrent)
        self.pace = Pace()
        self.reached = False
        self.asking = asyncio.Lock()
        self.asked_at = -math.inf
        self.model_answers = False
        self.memory = LeaseMemory()
        self._recorded = recorded
        self._recalling = asyncio.Lock()
        self.heard: set[int] = set()
        self._ended = False
        self.measured: MeasuredRequest | None = None
        self._conversations = ConversationBuilder()
        self._held_usd = 0.0
        self.open = 0
        self.cut = False
        self._admitted = 0
        self._calls: list[tuple[Call, float]] = []
        self._spans: list[tuple[float, float]] = []

    async def recall(self) -> None:
        """Read, in a thread, what earlier attempts of the action paid for; call it before a request is answered.

        Raises:
            ArchiveCorrupt: a record is missing or damaged; the lease has failed.
        """
        async with self._recalling:
            if self._recorded is None:
                return
            try:
                paid, then = await asyncio.to_thread(self._recorded)
                await asyncio.to_thread(self.memory.recall, paid, then)
            except DgmError as error:
                self.fail(error)
                raise
            self._recorded = None

    @property
    def protocol(self) -> WireProtocol | None:
        """The protocol in which the model is asked, or was when it was recorded; None: dgm's own form."""
        return self.wire_model.protocol if self.wire_model else next(iter(self.memory.protocols), None)

    def passes(self, protocol: WireProtocol) -> bool:
        """Return whether requests in a protocol pass unchanged: the model speaks it, and recorded ones did."""
        recorded = self.memory.protocols
        if self.role == DRY_RUN or self.memory.holds_neutral or (recorded and protocol not in recorded):
            return False
        return protocol in (self.wire_model.protocols if self.wire_model else recorded)

    @property
    def takes_tools(self) -> bool:
        """The model is not known to refuse tools; in a replay, the action offered it some."""
        return self.wire_model.takes_tools if self.wire_model else self.memory.offers_tools

    @property
    def threads(self) -> Sequence[Thread]:
        """The conversations of all answered calls."""
        return self._conversations.threads()

    @property
    def lost_s(self) -> float:
        """Seconds in which the agent waited for its turn, a pause of its provider or a failed try."""
        now = time.monotonic()
        lost_s, reached = 0.0, -math.inf
        under_way = [call.lost(since, now) for call, since in self._calls]
        for start, end in sorted(self._spans + under_way):
            lost_s += max(0.0, end - max(start, reached))
            reached = max(reached, end)
        return lost_s

    def join(self, call: "Call") -> None:
        """Note that the job needs the answer of a call, and waits for it from now on."""
        call.leases.add(self)
        waits = call, time.monotonic()
        self._calls.append(waits)
        call.outcome.add_done_callback(lambda _: self._forget(*waits))

    def _forget(self, call: "Call", since: float) -> None:
        """Keep of an ended call, which holds a whole conversation, only the time that it cost."""
        self._calls.remove((call, since))
        self._spans.append(call.lost(since, time.monotonic()))

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count one request as open, from its arrival to its answer.

        Raises:
            BadRequest: too many are open.
        """
        if self.open >= self.limits.waiting:
            raise BadRequest(f"more than {self.limits.waiting} requests at once", "too_many_requests", 429)
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    def admit(self) -> int:
        """Count a call on its arrival and return its number, from 1.

        Raises:
            BadRequest: the action's calls or tokens are used up.
            JobEnded: the job ended while the request was being read.
        """
        if self._ended:
            raise JobEnded
        if self._admitted >= self.limits.calls:
            raise _limit_reached(f"this job's limit of {self.limits.calls} model calls is reached")
        self.check_tokens()
        self._admitted += 1
        return self._admitted

    @property
    def has_ended(self) -> bool:
        """True if the job has ended."""
        return self._ended

    def check(self) -> None:
        """Check the lease again when a call's turn has come.

        Raises:
            Infrastructure: an earlier call failed.
            BadRequest: the action's tokens are used up.
        """
        if self.failure is not None:
            raise self.failure
        self.check_tokens()

    def check_tokens(self) -> None:
        """Check the tokens again when a call's turn has come: earlier calls may have used them up.

        Raises:
            BadRequest: the action's tokens are used up.
        """
        if self.usage.tokens >= self.limits.tokens:
            raise _limit_reached(f"this job's limit of {self.limits.tokens} tokens is reached")

    @contextmanager
    def hold(self, most: WorstCase) -> Iterator[None]:
        """Reserve a call's worst case from this action's money while the context lasts.

        Raises:
            BadRequest: that would cross the action's limit.
        """
        limit = self.limits.usd
        if limit is not None and self.usage.usd + self._held_usd + most.usd > limit:
            raise _limit_reached(
                f"this job has spent {self.usage.usd:.4f} of {limit:.2f} USD and the call may cost {most.usd:.4f}"
            )
        self._held_usd += most.usd
        try:
            yield
        finally:
            self._held_usd -= most.usd

    def hear(self, number: int, request: AnyRequest, reply: Reply | WireReply) -> None:
        """Note that a call was answered or refused, and count an answer once."""
        if number in self.heard and self.role != DRY_RUN:
            return
        self.heard.add(number)
        if not reply.error:
            self.account(request, reply)

    def account(self, request: AnyRequest, reply: Reply | WireReply) -> None:
        """Count an answered call."""
        self.calls += 1
        self.usage += reply.usage
        self.measured = MeasuredRequest(request, reply.usage.input_tokens)
        if isinstance(request, Request):
            assert isinstance(reply, Reply)
            self._conversations.add(request, reply)
            return
        assert isinstance(reply, WireReply)
        wire = WIRES[request.protocol]
        answer = wire.read_reply(whole_of(reply, request.body), request.body)
        self._conversations.add(wire.read_request(request.body), answer)

    def refuse(self, code: str, message: str = "", *, own: bool = True) -> None:
        """Count a request that was answered with an error; ``own``: the agent caused it."""
        self.refusals += 1
        self.refused.setdefault(code, message)
        if not own:
            self.foreign += 1
            self.last_words = message

    def blame(self, kind: FindingKind, detail: str) -> None:
        """Count something against the agent; the first of a kind stands for all."""
        if all(finding.kind is not kind for finding in self.findings):
            self.findings[Finding(kind, detail[:MOST_DETAIL])] = None

    @property
    def blameless(self) -> str:
        """A line saying that nothing but refusals for others' reasons came back; empty otherwise."""
        if self.calls or not self.foreign or self.foreign < self.refusals:
            return ""
        return f"all {self.refusals} model calls were refused: {self.last_words}"

    def fail(self, failure: DgmError) -> None:
        """Record a failure, unless an earlier one is recorded."""
        self.failure = self.failure or failure

    async def wait_for_calls(self, limit_s: float) -> str:
        """Wait for the calls in flight of a finished agent, to tell a slow agent from a failed model.

        Only the end of a call shows how long the agent waited for it. A call that takes longer than the limit goes on,
        and a retry of the action joins it.

        Args:
            limit_s: the agent's time in seconds; the wait is at most as long again.

        Returns:
            What the agent did not get from its model; empty if it got all answers.
        """
        late = False
        if billed := [call.task for call in self.billed_calls()]:
            late = bool((await asyncio.wait(billed, timeout=limit_s))[1])
        if late:
            return f"the model had not answered {limit_s:.0f} s after its agent had ended"
        return "an answer of the model broke off after the agent had seen its beginning" if self.cut else ""

    def end(self) -> Sequence["asyncio.Task[Any]"]:
        """Cancel the calls that cost nothing yet and that no other lease needs.

        Returns:
            The tasks of the others, for callers that wait until they are recorded.
        """
        self._ended = True
        for call, _ in self._calls:
            call.leave(self)
        return [call.task for call, _ in self._calls if not call.outcome.done()]

    def billed_calls(self) -> "Sequence[Call]":
        """Return the calls that may be billed now."""
        return [call for call, _ in self._calls if call.paying]


def _limit_reached(message: str) -> BadRequest:
    return BadRequest(message, SPENT, 403)
