"""A model behind a provider's network address: wait in the queue, send, and retry while that may help.

The request is sent as JSON, changed only as ``abilities`` says. ``faults`` decides the outcome of an error,
``throttle`` orders the calls, and ``connections`` reaches the provider.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from dgm.domain import Usage
from dgm.errors import Infrastructure, ProviderRefuses, ProviderWaits
from dgm.messages import NO_TOOLS, JsonObject, RequestRefused, WireProtocol, WireReply, WireRequest
from dgm.models.abilities import Abilities
from dgm.models.check import (
    NO_TOOL_CALL,
    NullDelivery,
    NullListener,
    check_request,
    check_warnings,
    describe_refused_check,
    read_listed_sizes,
)
from dgm.models.connections import Connection, read_beginning
from dgm.models.extras import default_effort
from dgm.models.faults import (
    MALFORMED,
    UNSUPPORTED,
    Fault,
    Repair,
    Retry,
    TellAgent,
    UserMustAct,
    judge_refusal,
    judge_transport,
)
from dgm.models.keys import mask_secret_bytes
from dgm.models.pricing import REPLY_TOKENS
from dgm.models.receiving import EVENTS, AnswerReader, ReceivedAnswer, receive
from dgm.models.refusals import read_refusal
from dgm.models.throttle import LONGEST_WAIT_S, Throttle
from dgm.protocols import Checked, Delivery, ModelListener, Sleep
from dgm.wires import WIRES
from dgm.wires.values import dump_json
from dgm.wires.wire import ErrorInAnswer, UnusableReply, Wire

if TYPE_CHECKING:
    import aiohttp

logger = logging.getLogger(__name__)

TOLD_WAIT_S = 30.0
"""Wait in seconds above which people are told."""
LONGEST_BACKOFF_S = 60.0
REPAIRS = 12
"""Maximum number of changes that refusals may cause in one request."""
SAMPLES = 3
"""Maximum number of tries of a request whose sampled output is malformed."""
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Retries:
    """The number of tries of a call, and the delays between them."""

    tries: int = 8
    """Maximum number of tries, the first included."""
    backoff_s: float = 1.0
    """Seconds before the second try; doubled for each further one, up to 60 s."""
    sleep: Sleep = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    rng: Random = field(default_factory=Random)
    """Random stream for jitter only: no decision of a search depends on it."""


@dataclass(frozen=True, slots=True)
class Access:
    """Settings for requests to a hosted model, beside its connection."""

    key_env: str = ""
    """Environment variable of the key, for messages; empty: there is no key."""
    secrets: tuple[str, ...] = ()
    """Secrets that no message and no answer may hold."""
    timeout_s: float = 600.0
    """Maximum seconds without progress of an answer."""
    stream: bool = True
    """Whether the provider may be asked to stream."""
    tools: bool = True
    """Whether agents call tools; decides the question of the check."""
    reasoning_effort: str | None = None
    """Effort that is added to requests that name none."""
    always: Mapping[WireProtocol, Mapping[str, Any]] = field(default_factory=dict)
    """Protocol → keys of every request, whatever the agent asks for."""
    output_tokens: int = REPLY_TOKENS
    """Output limit of the check, equal to that of agents."""
    half_context: bool = False
    """A reply may fill at most half of the context that the server tells."""
    forms: bool = False
    """Permission for dgm's own questions to ask for an answer by a JSON schema."""
    longest_wait_s: float = LONGEST_WAIT_S
    """Maximum wait in seconds at the provider's request; one that asks for more fails the call, and pauses a run."""
    changes: Abilities = field(default_factory=Abilities)
    """What the settings leave out, rename and set in this model's requests."""


@dataclass(slots=True)
class _CallInProgress:
    """One call over all its tries."""

    request: WireRequest
    delivery: Delivery
    room: int | None = None
    """The output limit that the provider would accept now."""
    known: Abilities = field(default_factory=Abilities)
    """The known abilities of the model when the last try was sent."""
    sent: bool = False
    """Whether the last try was sent whole, so that it may be billed."""
    proxy_failed: bool = False
    """Whether the last try failed at the proxy that the environment names."""
    samples: int = 0
    unreadable: int = 0
    refusal: tuple[int, bytes] = (400, b"")
    """Status and body of the last refusal."""

    def break_off(self, reader: AnswerReader | None, body: JsonObject, *, billed: bool = True) -> None:
        """Take back the bytes that were handed on, and count the received part as billed.

        Args:
            reader: the received part of the answer, if there is one.
            body: the request's body, as it was sent.
            billed: whether the input counts if nothing arrived: the provider did not say that it failed.
        """
        came = reader.spoken if reader is not None else {}
        if not came and not billed:
            self.delivery.take_back(Usage())
            return
        usage = WIRES[self.request.protocol].usage(came, body)
        self.delivery.take_back(replace(usage, calls=0, output_tokens=usage.output_tokens if came else 0))


class _RetrySignal(Exception):
    """The exception that carries a temporary fault through tenacity."""

    def __init__(self, fault: Retry) -> None:
        super().__init__(fault.reason)
        self.fault = fault


class HostedModel:
    """A client for one provider's protocol; implements ``dgm.protocols.WireModel``."""

    def __init__(
        self,
        name: str,
        own_name: str,
        connection: Connection,
        throttle: Throttle,
        retries: Retries,
        access: Access | None = None,
    ) -> None:
        """Take over the connection, and share the throttle.

        Args:
            name: as users type it: ``openai/gpt-5.2``.
            own_name: the provider's name for it.
            connection: used once per try; closed by ``close``.
            throttle: the provider's own, one for all of its models.
            retries: number of tries and delays.
            access: key and bounds.
        """
        self.name = name
        self.own_name = own_name
        self.protocol: WireProtocol = connection.protocol
        self.protocols: Collection[WireProtocol] = connection.protocols
        self.abilities = Abilities()
        self.listener: ModelListener = NullListener()
        self._connection = connection
        self._throttle = throttle
        self._retries = retries
        self._access = access or Access()
        self._secret_bytes = tuple(secret.encode() for secret in self._access.secrets if len(secret) >= 8)

    @property
    def takes_tools(self) -> bool:
        """Whether neither the settings nor the check say that the model calls no tools."""
        return self._access.tools and self.abilities.tools

    @property
    def takes_form(self) -> bool:
        """Requests may hold a form of the answer; what refusals taught is applied to each try."""
        return self._access.forms

    def adopt(self, listener: ModelListener, abilities: Mapping[str, Any] | None) -> None:
        """Set the listener, and start with abilities that were learned earlier; see ``WireModel.adopt``."""
        self.listener = listener
        if abilities:
            self.abilities = Abilities.from_record(abilities)

    async def send(self, request: WireRequest, delivery: Delivery) -> WireReply:
        """Return one answer, however many tries it takes; see ``WireModel.send``."""
        return await self._try_until_answered(_CallInProgress(request, delivery))

    async def check(self) -> Checked:
        """Make one small real call with a tool; see ``WireModel.check``."""
        before = self.abilities
        self.abilities = before.learn(await read_listed_sizes(self._connection, self.own_name))
        tools, output = self.takes_tools, self._access.output_tokens
        request = check_request(self.protocol, self.own_name, tools=tools, output=output)
        sending = _CallInProgress(request, NullDelivery())
        try:
            reply = await self._try_until_answered(sending)
        except RequestRefused as error:
            raise ProviderRefuses(f"{self.name}: {describe_refused_check(error)}") from error
        except Infrastructure as error:
            if not sending.proxy_failed:
                raise
            raise ProviderRefuses(str(error)) from error  # a person must correct the environment
        words = [] if self.abilities == before else [self.abilities.describe()]
        words += check_warnings(reply, request, tools=tools)
        if NO_TOOL_CALL in words:
            self.abilities = self.abilities.learn(Abilities(tools=False))
        return Checked(self.name, self.abilities.as_record(), tuple(words), reply.usage)

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._connection.close()

    # Tries

    async def _try_until_answered(self, sending: _CallInProgress) -> WireReply:
        async def attempt() -> WireReply:
            return await self._try(sending)

        async def pause(seconds: float) -> None:
            with sending.delivery.waiting():
                await self._retries.sleep(seconds)

        begun = self._retries.clock()
        retrying = AsyncRetrying(
            sleep=pause,
            stop=stop_after_attempt(self._retries.tries),
            wait=lambda state: _backoff_s(state, self._retries),
            retry=retry_if_exception_type(_RetrySignal),
            before_sleep=self._note,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except _RetrySignal as error:
            seconds, tries = self._retries.clock() - begun, self._retries.tries
            tried = f"{tries} tries in {seconds:.0f} s, the last" if tries > 1 else "1 try"
            raise Infrastructure(f"{self.name}: {tried}: {error.fault.reason}") from error.__cause__

    async def _try(self, sending: _CallInProgress) -> WireReply:
        """Send once, and once more for each change that the model's abilities require.

        Raises:
            _RetrySignal: the next try may succeed.
        """
        outcome: Fault = Retry("the provider asked for too many changes of one request")
        for _ in range(REPAIRS):
            self._check_wait()
            async with AsyncExitStack() as stack:
                sending.known = self.abilities
                body = fit_body(sending.request, sending.room, sending.known, self.own_name, self._access)
                with sending.delivery.waiting():
                    turn = await stack.enter_async_context(self._throttle.turn(estimate_tokens(body)))
                self._check_wait()
                answer = await self._ask(sending, body)
                if isinstance(answer, WireReply):
                    self._throttle.used(turn, answer.usage.tokens)
                    self._throttle.went_well()
                    return answer
                outcome = answer
                self._throttle.used(turn, 0)
                if isinstance(outcome, Retry) and outcome.overload:
                    self._throttle.note_too_many(turn)
            if not isinstance(outcome, Repair) or not self._learn(outcome, sending):
                break
        raise self._error_of_fault(outcome, sending)

    async def _ask(self, sending: _CallInProgress, body: JsonObject) -> WireReply | Fault:
        """Send one request; return the answer or the fault."""
        wire = WIRES[sending.request.protocol]
        reader: AnswerReader | None = None
        sending.sent = False
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._post(sending, wire.path, body)
            if response.status >= 300:
                sending.refusal = response.status, await read_beginning(response)
                return self._judge_refusal(
                    sending, body, response.status, sending.refusal[1], response.headers
                )
            kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
            asked, streamed = sending.request.body, kind == EVENTS
            reader = AnswerReader(wire, body, asked, self._secret_bytes, streamed=streamed)
            received = await receive(response, reader, sending.delivery, self._access.timeout_s)
        except ErrorInAnswer as error:
            sending.break_off(reader, body, billed=False)
            sending.refusal = 400, dump_json(error.body)
            return self._judge_refusal(sending, body, error.status or 0, error.body, {})
        except UnusableReply as error:
            return self._handle_unreadable(error, sending, body)
        except Exception as error:
            fault = judge_transport(error, secrets=self._access.secrets)
            if fault is None:
                raise
            if sending.sent:
                sending.break_off(reader, body)
                if isinstance(error, TimeoutError):
                    return Retry(f"no progress of the answer for {self._access.timeout_s:g} s")
            sending.proxy_failed = not sending.sent and bool(self._connection.proxy)
            if sending.proxy_failed and isinstance(fault, Retry):
                return Retry(f"{fault.reason} (by the proxy that {self._connection.proxy} names)")
            return fault
        finally:
            if response is not None:
                response.close()
        return self._make_reply(wire, received, body)

    async def _post(self, sending: _CallInProgress, path: str, body: JsonObject) -> "aiohttp.ClientResponse":
        """Send one request while its beginning becomes durable; its last byte waits for that."""
        begun = asyncio.ensure_future(sending.delivery.begin())

        async def ready() -> None:
            await asyncio.shield(begun)
            sending.delivery.sending()
            sending.sent = True

        request = sending.request
        try:
            return await self._connection.post(
                path, body, headers=request.headers, ready=ready, own=request.own
            )
        finally:
            await _settle(begun)
            begun.result()

    def _judge_refusal(
        self,
        sending: _CallInProgress,
        body: JsonObject,
        status: int,
        content: object,
        headers: Mapping[str, str],
    ) -> Fault:
        return judge_refusal(
            read_refusal(status, content, headers),
            body,
            sending.request.protocol,
            secrets=self._access.secrets,
            form_optional=sending.request.form_optional and sending.known.forms,
        )

    def _make_reply(self, wire: Wire, received: ReceivedAnswer, body: JsonObject) -> WireReply:
        usage = wire.usage(received.whole, body)
        limit = wire.output_limit(body)
        if limit is not None and usage.output_tokens > limit * wire.choices(body):
            self.listener.overran(self.name, limit, usage.output_tokens)
        return WireReply(
            wire.protocol,
            received.content,
            received.stream,
            usage,
            wire.stop(received.whole),
            whole=received.whole,
        )

    def _handle_unreadable(
        self, error: UnusableReply, sending: _CallInProgress, body: JsonObject
    ) -> WireReply | Fault:
        """Retry after an incomplete answer; accept the same form the second time, because the server means it."""
        wire = WIRES[sending.request.protocol]
        whole = error.reply_whole
        if whole is not None:
            if sending.unreadable:
                sending.delivery.take_back(Usage())
                stream = bool(sending.request.body.get("stream"))
                received = ReceivedAnswer(wire.render(whole, stream=stream), stream, whole)
                return self._make_reply(wire, received, body)
            sending.unreadable += 1
            sending.delivery.take_back(replace(wire.usage(whole, body), calls=0))
        else:
            sending.delivery.take_back(Usage())
        return Retry(str(error))

    def _learn(self, fault: Repair, sending: _CallInProgress) -> bool:
        """Learn from a refusal; return whether a retry can give another result."""
        # Another call may have learned the same meanwhile.
        news = self.abilities.learn(fault.change) != sending.known
        before = sending.room
        if fault.output_limit is not None and (before is None or fault.output_limit < before):
            sending.room = fault.output_limit
        logger.info("%s: %s", self.name, fault.message)
        self._keep_lesson(fault.change)
        return news or sending.room != before

    def _keep_lesson(self, change: Abilities) -> None:
        learned = self.abilities.learn(change)
        if learned != self.abilities:
            self.abilities = learned
            self.listener.learned(self.name, learned.as_record(), learned.describe())

    def _error_of_fault(self, fault: Fault, sending: _CallInProgress) -> Exception:
        status, content = sending.refusal[0], mask_secret_bytes(sending.refusal[1], self._access.secrets)
        match fault:
            case Retry(reason, sampled=True):
                sending.samples += 1
                if sending.samples < SAMPLES:
                    return _RetrySignal(Retry(reason, 0.0))
                return self._error_of_fault(TellAgent(MALFORMED, reason), sending)
            case Retry(reason, retry_after_s):
                return self._error_of_temporary(fault, reason, retry_after_s)
            case TellAgent(code, message) if code == NO_TOOLS:
                # Told in dgm's own words, whatever flag of its server the provider names.
                self._keep_lesson(Abilities(tools=False))
                return RequestRefused(code, f"this model takes no tools: {message}")
            case TellAgent(code, message):
                return RequestRefused(
                    code, message, own=fault.own, kept=fault.kept, status=status, content=content
                )
            case Repair(_, message, output_limit):  # it was made already, and did not help
                code = UNSUPPORTED if output_limit is None else "context_length_exceeded"
                return self._error_of_fault(TellAgent(code, message), sending)
            case UserMustAct(message, key) if key and self._access.key_env:
                return ProviderRefuses(
                    f"{self.name}: the key in {self._access.key_env} is refused: {message}"
                )
            case UserMustAct(message):
                return ProviderRefuses(f"{self.name}: {message}")

    def _error_of_temporary(self, fault: Retry, reason: str, retry_after_s: float | None) -> Exception:
        if retry_after_s is None:
            return _RetrySignal(fault)
        self._throttle.pause(retry_after_s, reason)
        if retry_after_s > TOLD_WAIT_S:
            self.listener.waits(self.name, reason, self._retries.now() + retry_after_s)
        if retry_after_s > self._access.longest_wait_s:
            return self._waits()
        return _RetrySignal(fault)

    def _check_wait(self) -> None:
        """Fail a call that would wait longer than a sandbox is held open for."""
        if self._throttle.resumes_in > self._access.longest_wait_s:
            raise self._waits()

    def _waits(self) -> ProviderWaits:
        seconds = self._throttle.resumes_in
        message = f"{self.name}: the provider asks to wait {seconds:,.0f} s: {self._throttle.pause_reason}"
        return ProviderWaits(message, self._retries.now() + seconds)

    def _note(self, state: RetryCallState) -> None:
        seconds = state.next_action.sleep if state.next_action else 0.0
        fault = _fault_of(state)
        said = (self.name, state.attempt_number, seconds, fault.reason)
        logger.info("%s: try %d failed, the next in %.1f s: %s", *said)
        # A wait that the provider asked for was reported at that time.
        if seconds > TOLD_WAIT_S and fault.retry_after_s is None:
            self.listener.waits(self.name, fault.reason, self._retries.now() + seconds)


def fit_body(
    request: WireRequest, room: int | None, known: Abilities, own_name: str, access: Access
) -> JsonObject:
    """Return an agent's request with the settings' additions, in the form that the model accepts.

    Args:
        request: as the agent made it.
        room: output tokens that the provider would accept now; None: not known.
        known: what was learned of the model.
        own_name: the provider's own name of the model.
        access: the settings.
    """
    wire = WIRES[request.protocol]
    body: dict[str, Any] = {
        **known.drop_form(request),
        "model": own_name,
        **access.always.get(request.protocol, {}),
    }
    for changes in (access.changes, known):
        if "stream" in changes.settings:
            body["stream"] = changes.settings["stream"]
    if body.get("stream") and not access.stream:
        body["stream"] = False
        body.pop("stream_options", None)
    if body.get("stream") and request.protocol is WireProtocol.CHAT:
        options = body.get("stream_options")
        body["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    asked = default_effort(wire.mended_request(body), request.protocol, access.reasoning_effort)
    fitted = known.apply(access.changes.apply(asked))
    wished = wire.output_limit(fitted)
    if room is None:
        room = known.room(len(dump_json(fitted)) * 2 // 7 if known.context is not None else 0)
    if access.half_context and known.context is not None:
        half = max(known.context // 2, 1)
        room = half if room is None else min(room, half)
    if wished is not None and room is not None and room < wished:
        return wire.limited(fitted, room)
    return fitted


def estimate_tokens(body: JsonObject) -> int:
    """Return the estimated maximum tokens of a request: a quarter of its characters, and all its output."""
    wires = WIRES.values()
    output = next((limit for wire in wires if (limit := wire.output_limit(body)) is not None), 0)
    return len(dump_json(body)) // CHARACTERS_PER_TOKEN + output


async def _settle(task: "asyncio.Future[None]") -> None:
    """Wait until a task has ended, even if cancelled meanwhile."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise


def _fault_of(state: RetryCallState) -> Retry:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, _RetrySignal):
        raise TypeError(f"retried without a passing fault: {error!r}")
    return error.fault


def _backoff_s(state: RetryCallState, retries: Retries) -> float:
    """Return the seconds until the next try: what the provider asks for, else a jittered exponential back-off.

    A provider that refuses again twice after the time that it asked for gets the back-off at least: a limit of a
    minute that asks for milliseconds must not use up all tries.
    """
    asked_s = _fault_of(state).retry_after_s
    if asked_s is not None and state.attempt_number <= 2:
        return asked_s
    # The exponent is bounded so that no number of tries overflows a float.
    longest = min(LONGEST_BACKOFF_S, retries.backoff_s * 2.0 ** min(state.attempt_number - 1, 60))
    return max(longest * retries.rng.uniform(0.5, 1.0), asked_s or 0.0)
