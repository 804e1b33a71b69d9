"""A model behind a provider's network address: wait in the queue, send, and retry while that may help.

The request is sent as unchanged JSON. ``faults`` decides the meaning of an error, ``abilities`` keeps the model's
limits, ``throttle`` orders the calls, and ``connections`` reaches the provider.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from dgm.domain import Usage
from dgm.errors import Infrastructure, ProviderRefuses, ProviderWaits
from dgm.messages import NO_TOOLS, JsonObject, RequestRefused, WireProtocol, WireReply, WireRequest
from dgm.models.abilities import Abilities, Change
from dgm.models.access import Access, Retries
from dgm.models.checking import (
    NO_TOOL_CALL,
    add_url_suggestion,
    check_request,
    check_warnings,
    describe_refused_check,
    read_listed_sizes,
)
from dgm.models.connections import Connection
from dgm.models.fault_kinds import (
    AccountFault,
    AgentRequestFault,
    ContentRefused,
    Fault,
    MalformedOutput,
    TemporaryFault,
    UnsupportedPart,
    UnsupportedRequest,
    judge_transport,
)
from dgm.models.faults import judge_refusal
from dgm.models.fitting import fit_body
from dgm.models.keys import mask_secret_bytes
from dgm.models.listening import NullDelivery, NullListener
from dgm.models.listing import is_unknown_path
from dgm.models.receiving import AnswerReceiver, ReceivedAnswer, render_whole
from dgm.models.refusals import read_refusal
from dgm.models.throttle import Throttle
from dgm.models.tries import (
    CallInProgress,
    RetrySignal,
    estimate_tokens,
    fault_of,
    read_count,
    wait_s,
    was_never_sent,
)
from dgm.protocols import Checked, Delivery, ModelListener
from dgm.wires import WIRES
from dgm.wires.events import ErrorInAnswer, UnusableReply

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger(__name__)

TOLD_WAIT_S = 30.0
"""Wait in seconds above which people are told."""
CHANGES = 12
"""Maximum number of changes that refusals may cause in one request."""
SAMPLES = 3
"""Maximum number of tries of a request whose sampled output is malformed."""


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
        return await self._try_until_answered(CallInProgress(request, delivery))

    async def check(self) -> Checked:
        """Make one small real call with a tool; see ``WireModel.check``."""
        before = self.abilities
        self.abilities = before.learn(await read_listed_sizes(self._connection, self.own_name))
        tools, output = self.takes_tools, self._access.output_tokens
        request = check_request(self.protocol, self.own_name, tools=tools, output=output)
        sending = CallInProgress(request, NullDelivery())
        try:
            reply = await self._try_until_answered(sending)
        except RequestRefused as error:
            raise ProviderRefuses(f"{self.name}: {describe_refused_check(error)}") from error
        except ProviderRefuses as error:
            raise (
                await add_url_suggestion(self._connection, error) if sending.unknown_path else error
            ) from error
        except Infrastructure as error:
            if not sending.proxy_failed:
                raise
            raise ProviderRefuses(str(error)) from error  # a person must correct the environment
        words = [] if self.abilities == before else [self.abilities.describe()]
        words += check_warnings(reply, request, tools=tools)
        if NO_TOOL_CALL in words:
            self.abilities = self.abilities.learn(Change(tools=False))
        return Checked(self.name, self.abilities.as_record(), tuple(words), reply.usage)

    async def count_tokens(self, request: WireRequest) -> int | None:
        """Return the input tokens as the provider counts them; see ``WireModel.count_tokens``."""
        if self.protocol is not WireProtocol.MESSAGES:
            return None
        body = {**request.body, "model": self.own_name}
        try:
            response = await self._connection.post(
                "/messages/count_tokens", body, stream=False, headers=request.headers
            )
            return read_count(response.status_code, response.content)
        except Exception as error:
            if judge_transport(error) is None:
                raise
            return None

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._connection.close()

    # Tries

    async def _try_until_answered(self, sending: CallInProgress) -> WireReply:
        async def attempt() -> WireReply:
            return await self._try(sending)

        async def pause(seconds: float) -> None:
            with sending.delivery.waiting():
                await self._retries.sleep(seconds)

        begun = self._retries.clock()
        retrying = AsyncRetrying(
            sleep=pause,
            stop=stop_after_attempt(self._retries.tries),
            wait=lambda state: wait_s(state, self._retries),
            retry=retry_if_exception_type(RetrySignal),
            before_sleep=self._note,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except RetrySignal as error:
            seconds, tries = self._retries.clock() - begun, self._retries.tries
            tried = f"{tries} tries in {seconds:.0f} s, the last" if tries > 1 else "1 try"
            raise Infrastructure(f"{self.name}: {tried}: {error.fault.reason}") from error.__cause__

    async def _try(self, sending: CallInProgress) -> WireReply:
        """Send once, and once more for each change that the model's abilities require.

        Raises:
            Again: the next try may succeed.
        """
        outcome: Fault = TemporaryFault("the provider asked for too many changes of one request")
        for _ in range(CHANGES):
            self._check_wait()
            async with AsyncExitStack() as stack:
                body, stream = self._fit_body(sending)
                with sending.delivery.waiting():
                    turn = await stack.enter_async_context(self._throttle.turn(estimate_tokens(body)))
                self._check_wait()
                await sending.delivery.sending()
                answer = await self._ask(sending, body, stream)
                if isinstance(answer, WireReply):
                    self._throttle.used(turn, answer.usage.tokens)
                    self._throttle.went_well()
                    return answer
                outcome = answer
                self._throttle.used(turn, 0)
                if isinstance(outcome, TemporaryFault) and outcome.overload:
                    self._throttle.note_too_many(turn)
            if not isinstance(outcome, UnsupportedPart) or not self._learn(outcome, sending):
                break
        raise self._error_of_fault(outcome, sending)

    async def _ask(self, sending: CallInProgress, body: JsonObject, stream: bool) -> WireReply | Fault:
        """Send one request; return the answer or the fault."""
        wire = WIRES[self.protocol]
        asked = sending.request.body
        receiving = AnswerReceiver(
            wire, body, asked, sending.delivery, self._access.timeout_s, self._secret_bytes
        )
        response: httpx2.Response | None = None
        try:
            response = await self._connection.post(
                wire.path, body, stream=stream, headers=self.abilities.apply_headers(sending.request.headers)
            )
            if response.status_code >= 400:
                await response.aread()
                sending.refused(
                    response.status_code, mask_secret_bytes(response.content, self._access.secrets)
                )
                sending.unknown_path = is_unknown_path(response)
                return self._judge_refusal(
                    response.status_code, response.content, response.headers, (sending, body)
                )
            received = await receiving.take(response)
        except ErrorInAnswer as error:
            sending.broke(receiving, asked_at_least=False)
            sending.refused(400, json.dumps(error.body).encode())
            return self._judge_refusal(error.status or 0, error.body, {}, (sending, body))
        except UnusableReply as error:
            return self._handle_unreadable(error, sending, body)
        except TimeoutError:
            sending.broke(receiving)
            reason = f"no progress of the answer for {self._access.timeout_s:g} s"
            return TemporaryFault(reason, None, overload=False)
        except Exception as error:
            fault = judge_transport(error, secrets=self._access.secrets)
            if fault is None:
                raise
            sending.proxy_failed = "the proxy " in str(error.__cause__ or error)
            if response is not None or not was_never_sent(error):
                sending.broke(receiving)
            return fault
        finally:
            if response is not None:
                await response.aclose()
        return self._make_reply(received, body)

    def _judge_refusal(
        self,
        status: int,
        content: object,
        headers: Mapping[str, str],
        asked: tuple[CallInProgress, JsonObject],
    ) -> Fault:
        sending, body = asked
        return judge_refusal(
            read_refusal(status, content, headers),
            body,
            self.protocol,
            sent=sending.request.headers,
            secrets=self._access.secrets,
            form_optional=sending.request.form_optional and sending.known.forms,
        )

    def _make_reply(self, received: ReceivedAnswer, body: JsonObject) -> WireReply:
        wire = WIRES[self.protocol]
        usage = wire.usage(received.whole, body)
        limit = wire.output_limit(body)
        if limit is not None and usage.output_tokens > limit * wire.choices(body):
            self.listener.overran(self.name, limit, usage.output_tokens)
        return WireReply(self.protocol, received.content, received.stream, usage, wire.stop(received.whole))

    def _handle_unreadable(
        self, error: UnusableReply, sending: CallInProgress, body: JsonObject
    ) -> WireReply | Fault:
        """Retry after an incomplete answer; accept the same form the second time, because the server means it."""
        wire = WIRES[self.protocol]
        whole = error.reply_whole
        if whole is not None:
            if sending.unreadable:
                sending.delivery.take_back(Usage())
                return self._make_reply(
                    render_whole(wire, whole, stream=bool(sending.request.body.get("stream"))), body
                )
            sending.unreadable += 1
            sending.delivery.take_back(replace(wire.usage(whole, body), calls=0))
        else:
            sending.delivery.take_back(Usage())
        return TemporaryFault(str(error))

    def _fit_body(self, sending: CallInProgress) -> tuple[JsonObject, bool]:
        """Return the body to send, and whether to ask the provider to stream."""
        sending.known = self.abilities
        fitted = fit_body(sending, self.own_name, self._access)
        return fitted, bool(fitted.get("stream"))

    def _learn(self, fault: UnsupportedPart, sending: CallInProgress) -> bool:
        """Learn from a refusal; return whether a retry can give another result."""
        # Another call may have learned the same meanwhile.
        news = self.abilities.learn(fault.change) != sending.known
        before = sending.room
        if fault.output_limit is not None and (before is None or fault.output_limit < before):
            sending.room = fault.output_limit
        logger.info("%s: %s", self.name, fault.message)
        self._keep_lesson(fault.change)
        return news or sending.room != before

    def _keep_lesson(self, change: Change) -> None:
        learned = self.abilities.learn(change)
        if learned != self.abilities:
            self.abilities = learned
            self.listener.learned(self.name, learned.as_record(), learned.describe())

    def _error_of_fault(self, fault: Fault, sending: CallInProgress) -> Exception:
        status, content = sending.refusal
        match fault:
            case TemporaryFault(reason, retry_after_s):
                return self._error_of_temporary(fault, reason, retry_after_s)
            case MalformedOutput(reason):
                sending.samples += 1
                if sending.samples < SAMPLES:
                    return RetrySignal(TemporaryFault(reason, 0.0))
                return RequestRefused("model_output_invalid", reason, status=status, content=content)
            case AgentRequestFault(code, message) if code == NO_TOOLS:
                # Told in dgm's own words, whatever flag of its server the provider names.
                self._keep_lesson(Change(tools=False))
                return RequestRefused(code, f"this model takes no tools: {message}")
            case AgentRequestFault(code, message):
                return RequestRefused(code, message, status=status, content=content)
            case ContentRefused(code, message):
                return RequestRefused(code, message, own=False, status=status, content=content)
            case UnsupportedRequest(code, message):
                return RequestRefused(code, message, own=False, kept=False, status=status, content=content)
            case UnsupportedPart(_, message):
                return RequestRefused(
                    "unsupported_parameter", message, own=False, kept=False, status=status, content=content
                )
            case AccountFault(message, key) if key and self._access.key_env:
                return ProviderRefuses(
                    f"{self.name}: the key in {self._access.key_env} is refused: {message}"
                )
            case AccountFault(message):
                return ProviderRefuses(f"{self.name}: {message}")

    def _error_of_temporary(
        self, fault: TemporaryFault, reason: str, retry_after_s: float | None
    ) -> Exception:
        if retry_after_s is None:
            return RetrySignal(fault)
        self._throttle.pause(retry_after_s, reason)
        if retry_after_s > TOLD_WAIT_S:
            self.listener.waits(self.name, reason, self._retries.now() + retry_after_s)
        if retry_after_s > self._access.longest_wait_s:
            return self._waits()
        return RetrySignal(fault)

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
        fault = fault_of(state)
        said = (self.name, state.attempt_number, seconds, fault.reason)
        logger.info("%s: try %d failed, the next in %.1f s: %s", *said)
        # A wait that the provider asked for was reported at that time.
        if seconds > TOLD_WAIT_S and fault.retry_after_s is None:
            self.listener.waits(self.name, fault.reason, self._retries.now() + seconds)
