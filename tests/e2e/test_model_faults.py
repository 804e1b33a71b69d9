"""What comes of every fault of a provider: for one call of every kind, and for a whole search."""

import asyncio
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import pytest

from dgm.config import ProviderSettings, Settings
from dgm.domain import ActionId, Usage
from dgm.gateway.blame import QUESTION
from dgm.messages import Reply, Stop, WireProtocol, WireReply
from dgm.models.choose import open_model
from dgm.wires import WIRES, whole_of
from tests.e2e.faulty_search import Trial, perform
from tests.support.gateway.bench import MemoryJournal, client, gateway
from tests.support.hosted import HANGS, KEY, PROVIDERS
from tests.support.wire_server import Kind, Rule, Script, Scripted, WireServer

PATIENT_S, HASTY_S = 30.0, 3.0
"""Time-outs: where an answer comes in the end, however busy the machine, and where it never does."""
TRIES = 4
SAID = "All is well."
GRADED = "is graded"
INVALID = "`invalid`, performed again"
ENDS = "`invalid`; the session ends, `dgm resume` performs it again"
HALF = "half an answer"
BEGUN = "the beginning of an answer; asked again, "
"""Streams are real: what a provider broke off has partly been told."""
PERHAPS = ", perhaps after its beginning"
"""A stream that breaks at once: how much of it the agent has read by then is a race."""
BREAKING = {Kind.RESET_MIDWAY, Kind.DROPPED, Kind.TRUNCATED, Kind.MALFORMED, Kind.ERROR_EVENT}
NAMES = {"chat": "openai-chat", "responses": "openai", "messages": "anthropic"}
PROTOCOLS = {
    "chat": WireProtocol.CHAT,
    "responses": WireProtocol.RESPONSES,
    "messages": WireProtocol.MESSAGES,
}
KINDS = [(wire, streaming) for wire in NAMES for streaming in (False, True)]
"""Every kind of call: the protocol, and whether the answer is streamed."""


@dataclass(frozen=True)
class Fault:
    """A row of the table: what a provider does."""

    what: str
    rule: Rule | None = None
    """None: the provider does not know the model."""

    @property
    def silent(self) -> bool:
        """Whether nothing but the time-out ends it."""
        return self.rule is not None and any(kind in HANGS for kind in self.rule.kinds)

    @property
    def breaks(self) -> bool:
        """Whether its streams may break before or after the agent has read a part of them."""
        return self.rule is not None and any(kind in BREAKING for kind in self.rule.kinds)


@dataclass(frozen=True)
class Seen:
    """What came of it."""

    tries: int
    agent: str
    recorded: str
    verdict: str
    line: str
    """What a person reads."""


def once(kind: Kind, what: str, **more: object) -> Fault:
    return Fault(f"{what}, once", Rule(kind, calls=(1,), **more))


def always(kind: Kind, what: str, **more: object) -> Fault:
    return Fault(f"{what}, every time", Rule(kind, **more))


PASSING = (
    once(Kind.RATE_LIMIT, "429"),
    Fault("429 with `Retry-After`, once", Rule(Kind.RATE_LIMIT, calls=(1,), retry_after_s=0.02)),
    Fault("429 with `retry-after-ms`, once", Rule(Kind.RATE_LIMIT, calls=(1,), retry_after_ms=20)),
    *(once(kind, kind.removeprefix("error_")) for kind in Kind if kind.startswith(("error_4", "error_5"))),
    Fault("503 with `Retry-After`, once", Rule(Kind.ERROR_503, calls=(1,), retry_after_s=0.02)),
    once(Kind.HANG, "no byte until the time-out", seconds=60.0),
    once(Kind.HANG_MIDWAY, "half an answer, then none until the time-out", seconds=60.0),
    once(Kind.RESET, "connection reset before the answer"),
    once(Kind.RESET_MIDWAY, "connection reset in mid-answer"),
    once(Kind.DROPPED, "connection closed in mid-answer"),
    once(Kind.TRUNCATED, "half an answer as if it was whole"),
    once(Kind.MALFORMED, "malformed JSON"),
    once(Kind.HTML, "200 with a page in HTML"),
    once(Kind.EMPTY, "an answer with nothing in it"),
    once(Kind.ERROR_EVENT, "an error within the stream (plain: 500 or 529)"),
    once(Kind.DRIP, "the answer byte by byte", seconds=0.1),
    once(Kind.SPLIT_ARGUMENTS, "the answer in deltas of two characters"),
    Fault("three faults of three kinds", Rule((Kind.ERROR_500, Kind.RESET, Kind.HTML), calls=(1, 2, 3))),
)
LASTING = (
    always(Kind.RATE_LIMIT, "429"),
    always(Kind.ERROR_503, "503"),
    always(Kind.RESET, "connection reset before the answer"),
    always(Kind.TRUNCATED, "half an answer as if it was whole"),
    always(Kind.MALFORMED, "malformed JSON"),
    always(Kind.HTML, "200 with a page in HTML"),
)
HOPELESS = (
    Fault("the key is wrong", Rule(Kind.WRONG_KEY)),
    Fault("the key may not use the model", Rule(Kind.FORBIDDEN)),
    Fault("no credit is left", Rule(Kind.NO_CREDIT)),
    Fault("the provider does not know the model"),
)
TOLD = (
    Fault("the conversation exceeds the context", Rule(Kind.CONTEXT_LENGTH)),
    Fault("the model refuses", Rule(Kind.REFUSAL)),
)
TEXT_ALONE = [(LASTING[3].what, (wire, True)) for wire in NAMES]
"""A text that is whole, and no end behind it: when that comes again, the server means it so."""
MEANT = (always(Kind.EMPTY, "an answer with nothing in it"),)
"""An empty answer that comes again and again is what the model means, unless there is not even a choice in it."""
FAULTS = (*PASSING, *LASTING, *MEANT, *TOLD, *HOPELESS)


def body_of(wire, streaming):
    said = [{"role": "user", "content": "How are things?"}]
    if wire == "responses":
        return {"model": "default", "input": said, "stream": streaming}
    more = {"max_tokens": 500} if wire == "messages" else {}
    return {"model": "default", "messages": said, "stream": streaming, **more}


async def ask(http, wire, streaming, token):
    """One call as an agent makes it, which asks again where an answer breaks off: its status, and what it says."""
    try:
        return await ask_once(http, wire, streaming, token)
    except httpx2.RemoteProtocolError:
        assert streaming, "only what has begun can break off"
        return f"{BEGUN}{await ask_once(http, wire, streaming, token)}"


async def ask_once(http, wire, streaming, token):
    """One call: its status, and what it says."""
    path = PROVIDERS[NAMES[wire]].dialect
    response = await http.post(
        path, json=body_of(wire, streaming), headers={"Authorization": f"Bearer {token}"}
    )
    if response.status_code != 200:
        error = response.json()["error"]
        return f"{response.status_code} `{error.get('code') or error['type']}`"
    protocol, body = PROTOCOLS[wire], body_of(wire, streaming)
    reply = WireReply(protocol, response.content, streaming, Usage(), Stop.END)
    text = WIRES[protocol].read_reply(whole_of(reply, body), body).text
    if text == SAID:
        return "the answer"
    if "never" in text.lower():
        return HALF
    if "refus" in text.lower() or "sorry" in text.lower() or '"refusal"' in response.text:
        return "a refusal"
    return "an empty answer"


def hosted(wire, streaming, server, monkeypatch, timeout_s):
    provider = PROVIDERS[NAMES[wire]]
    monkeypatch.setenv(provider.key_env, KEY)
    reached = ProviderSettings(
        base_url=server.url if wire == "messages" else server.openai_url,
        timeout_s=timeout_s,
        tries=TRIES,
        backoff_s=0.001,
        stream=streaming,
        api="chat" if wire == "chat" else "responses",
    )
    settings = Settings(providers={provider.section: reached})
    return open_model(provider.model, settings)


def said(call):
    """The text of a recorded reply."""
    body = call.request.body
    return WIRES[call.reply.protocol].read_reply(whole_of(call.reply, body), body).text


async def meet(wire, streaming, server, fault, opened, action):
    """One call that meets the fault, and what came of it."""
    known = (PROVIDERS[NAMES[wire]].own_name,) if fault.rule else ("another",)
    server.app.config = replace(
        server.app.config, script=Script((fault.rule,) if fault.rule else ()), models=known
    )
    opened.caller.trouble.clear()
    before, answered = len(server.requests), server.answered
    with opened.lend(action, "solve") as lease:
        saw = await ask(opened.http, wire, streaming, lease.token)
    if streaming and fault.breaks:
        saw = f"{saw.removeprefix(BEGUN)}{'' if lease.failure else PERHAPS}"
    paid = [call for call in opened.journal.paid.values() if call.key.action == action]
    assert sum(said(call) == SAID for call in paid) == server.answered - answered
    assert [call.key.number for call in paid] == [1] * len(paid)
    errors = [call.reply.error for call in paid]
    recorded = [f"one call, `{error}`" if error else "one call" for error in errors]
    refusals = [each for each in opened.journal.refused if each[0] == action]
    recorded += [f"`call_refused` {status}" for _, _, status, _, _ in refusals]
    verdict, line = GRADED, ""
    if lease.failure:
        refused = opened.caller.refused
        verdict = ENDS if refused else INVALID
        line = re.sub(r"in \d+ s", "in … s", str(lease.failure).partition(": ")[2])
        assert refused in ("", line)
        assert opened.caller.trouble
    tries = sum(QUESTION not in str(record.body) for record in server.requests[before:])
    return Seen(tries, saw, " and ".join(recorded) or "nothing", verdict, line)


async def meet_all(wire, streaming, monkeypatch):
    """Every fault, at one kind of call; those that are silences with a shorter time-out, beside the others."""
    hasty, patient = (
        [fault for fault in FAULTS if fault.silent],
        [fault for fault in FAULTS if not fault.silent],
    )
    found = await asyncio.gather(
        meet_each(wire, streaming, monkeypatch, hasty, HASTY_S),
        meet_each(wire, streaming, monkeypatch, patient, PATIENT_S),
    )
    return [(found[0] if fault.silent else found[1]).pop(0) for fault in FAULTS]


async def meet_each(wire, streaming, monkeypatch, faults, timeout_s):
    """Some of the faults, one after the other."""
    brain = Scripted([Reply(SAID, usage=Usage(1, 20, 5))])
    journal = MemoryJournal()
    with (
        tempfile.TemporaryDirectory(prefix="dgm-faults-") as folder,
        WireServer(key=KEY, brain=brain) as server,
    ):
        model = hosted(wire, streaming, server, monkeypatch, timeout_s)
        async with gateway(Path(folder) / "g", model, journal) as opened, client(opened, "") as http:
            opened.journal, opened.http = journal, http
            found = [
                await meet(wire, streaming, server, fault, opened, ActionId(number))
                for number, fault in enumerate(faults, 1)
            ]
        await model.close()
    return found


@pytest.fixture(scope="module")
def seen():
    """Fault → kind of call → what came of it."""

    async def scenario():
        return await asyncio.gather(*(meet_all(*kind, monkeypatch) for kind in KINDS))

    with pytest.MonkeyPatch.context() as monkeypatch:
        columns = asyncio.run(asyncio.wait_for(scenario(), 300))
    return {
        fault.what: dict(zip(KINDS, row, strict=True))
        for fault, row in zip(FAULTS, zip(*columns, strict=True), strict=True)
    }


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "evaluations", "share"),
    [
        ("openai", 2, 0.25),
        pytest.param("anthropic", 2, 0.25, marks=pytest.mark.sampled),
        pytest.param("openai", 100, 0.1, marks=pytest.mark.minutes),
    ],
)
def test_a_search_under_faults_gives_the_same_archive(provider, evaluations, share, tmp_path):
    found = perform(Trial(provider, evaluations, share), tmp_path)
    assert found["same"], found
    assert found["faults"] >= 3
    assert found["evaluations"] == evaluations
    assert found["answered_but_not_journaled"] == [0, 0]


def all_of(seen, faults):
    return [(fault.what, kind, found) for fault in faults for kind, found in seen[fault.what].items()]


def test_what_passes_is_retried_and_invisible_to_the_agent(seen):
    for what, kind, found in all_of(seen, PASSING):
        answer = found.agent.removeprefix(BEGUN).removesuffix(PERHAPS) if kind[1] else found.agent
        assert (answer, found.recorded, found.verdict) == ("the answer", "one call", GRADED), (what, kind)


def test_what_does_not_pass_is_an_outage_and_never_the_agents_fault(seen):
    for what, kind, found in all_of(seen, LASTING):
        if (what, kind) in TEXT_ALONE:
            expected = (2, f"{HALF}{PERHAPS}", "one call", GRADED)
            assert (found.tries, found.agent, found.recorded, found.verdict) == expected
            continue
        assert found.tries == TRIES, (what, kind)
        assert (found.agent[:3], found.recorded, found.verdict) == ("503", "nothing", INVALID), (what, kind)
        assert f"{TRIES} tries in … s, the last: " in found.line


def test_what_a_person_must_mend_is_asked_once_and_said_in_one_line(seen):
    for what, kind, found in all_of(seen, HOPELESS):
        assert found.tries == 1, (what, kind)
        assert (found.agent[:3], found.recorded, found.verdict) == ("503", "nothing", ENDS), (what, kind)
        assert 0 < len(found.line) < 400
        assert "\n" not in found.line
        assert KEY not in found.line


def test_what_the_agent_must_mend_is_told_and_recorded_once(seen):
    for kind, found in seen["the conversation exceeds the context"].items():
        told = "invalid_request_error" if kind[0] == "messages" else "context_length_exceeded"
        assert found.agent == f"400 `{told}`"
        assert found.recorded == "one call, `context_length_exceeded` and `call_refused` 400"
    for kind, found in seen["the model refuses"].items():
        assert (found.agent, found.recorded) == ("a refusal", "one call"), kind
    for what, kind, found in all_of(seen, TOLD):
        assert found.verdict == GRADED, (what, kind)
        assert found.tries <= 3
