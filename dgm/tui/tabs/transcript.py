"""The making of an agent: the order, and the conversation of its operator with its model."""

from collections.abc import Iterator, Sequence

from dgm.analysis.lookups import read_births
from dgm.archive.conversations import Thread, Turn
from dgm.archive.events import AgentBorn, ModelCalled
from dgm.archive.journal import CallReader
from dgm.archive.run import Run
from dgm.archive.store import EventStore
from dgm.archive.traces import Traces
from dgm.domain import ActionId, AgentId
from dgm.messages import Role, ToolCall
from dgm.show.agents import root_text
from dgm.show.making import making_lines
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, fact_line, make_line
from dgm.show.transcripts import Transcript, read_transcript
from dgm.show.words import count_text, operator_text, usage_text
from dgm.tui.bodies import (
    Body,
    LineBody,
    RawBody,
    StackedBody,
    UnreadableBody,
    WrappedBody,
    heading_line,
    paragraph_lines,
)
from dgm.tui.reader import RunReader
from dgm.tui.tabs import Load, load_or_explain

MESSAGE = 100_000
"""Maximum characters of one message that are shown."""
_ROLES = {Role.SYSTEM: Tone.WARN, Role.USER: Tone.KEY, Role.ASSISTANT: Tone.GOOD, Role.TOOL: Tone.DIM}


def load(reader: RunReader, agent: AgentId) -> Load:
    """Return a loader of everything, in the order in which it happened."""
    aim = reader.aim(agent)
    traces = Traces(reader.folder / "traces")
    folded = reader.run is not None

    def look() -> Body:
        born = reader.ask(lambda store: read_births(store, [agent]))[agent]
        if not born.parents:
            who = root_text(born)
            said = f"{who[0].upper()}{who[1:]}: no operator made it."
            return WrappedBody([make_line(said), (), *paragraph_lines(born.rationale)])
        calls, transcript = reader.ask(lambda store: _read(store, traces, born.action))
        parts: list[Body] = [WrappedBody(list(_head_lines(born, aim)))]
        if folded:
            parts.append(load_or_explain("what is kept of its making", lambda: _making_body(reader, agent)))
        parts += _call_bodies(transcript, calls)
        if "log" in born.cost.traces:
            log = load_or_explain("trace log", lambda: RawBody(traces.get(born.cost.traces["log"])))
            parts += [LineBody([(), heading_line("output of the operator's program")]), log]
        return StackedBody(parts)

    return look


def _head_lines(born: AgentBorn, aim: str) -> Iterator[Line]:
    yield fact_line("operator", operator_text(born.operator, aim))
    yield fact_line("parents", " and ".join(map(str, born.parents)))
    yield fact_line("took", f"{born.cost.seconds:.1f} s, {usage_text(born.cost.usage)}")
    if born.decided:
        yield fact_line("decided by", one_line(born.decided, 200))
    yield ()
    yield from paragraph_lines(born.rationale or "(no rationale)")


def _making_body(reader: RunReader, agent: AgentId) -> Body:
    def ask(run: Run) -> Sequence[Line]:
        return making_lines(run, run.tree.agents[agent])

    return WrappedBody([(), *reader.ask_tree(ask)])


def _read(store: EventStore, traces: Traces, action: ActionId) -> tuple[Sequence[ModelCalled], Transcript]:
    calls = store.calls(action)
    return calls, read_transcript(CallReader(store, traces), calls)


def _call_bodies(transcript: Transcript, calls: Sequence[ModelCalled]) -> Iterator[Body]:
    for number, thread in enumerate(transcript.threads, 1):
        yield WrappedBody(list(_thread_lines(number, thread, transcript)))
    if transcript.fault is not None:
        number = calls[len(transcript.calls)].number
        yield UnreadableBody(f"model call {number} of {len(calls)}", str(transcript.fault))
        if len(transcript.calls) + 1 < len(calls):
            yield LineBody([make_line(f"  and no more of the {len(calls)} calls is shown")])
    if not calls:
        yield LineBody([(), make_line("  no model was asked")])


def _thread_lines(number: int, thread: Thread, transcript: Transcript) -> Iterator[Line]:
    if len(transcript.threads) > 1:
        yield ()
        yield heading_line(f"conversation {number} of {len(transcript.threads)}")
    for prompts in thread.prompts:
        if text := prompts.text():
            tools = count_text(len(prompts.tools), "tool")
            yield make_line(Span(f"system prompt and {tools}, {len(text):,} characters", _ROLES[Role.SYSTEM]))
            yield from _text_lines(text, Tone.DIM)
    last = None
    for place, segment in enumerate(thread.segments):
        if place:
            yield make_line(Span(f"new context, {segment.left_out:,} earlier messages left out", Tone.WARN))
        for turn in segment.turns:
            if turn.call != last:
                last = turn.call
                yield from _call_lines(transcript.calls[last])
            yield from _turn_lines(turn)


def _call_lines(call: ModelCalled) -> Iterator[Line]:
    yield ()
    model = f"{one_line(call.role, 30)}, {one_line(call.model, 80)}"
    yield heading_line(
        f"call {call.number}", Span(f"  {model}, {call.seconds:.1f} s, {usage_text(call.usage)}", Tone.DIM)
    )


def _turn_lines(turn: Turn) -> Iterator[Line]:
    message, reply = turn.message, turn.reply
    if reply and reply.reasoning:
        yield make_line(Span("reasoning", Tone.DIM))
        yield from _text_lines(reply.reasoning, Tone.DIM)
    yield from _message_lines(message.role, message.text, message.calls)
    if reply and reply.error:
        yield make_line(Span(f"refused: {one_line(reply.error, 200)}", Tone.BAD))


def _message_lines(role: Role, text: str, calls: Sequence[ToolCall]) -> Iterator[Line]:
    yield make_line(Span(role.value, _ROLES[role]))
    if text:
        yield from _text_lines(text)
    for call in calls:
        yield make_line("  ", Span(f"{one_line(call.name, 80)} ", Tone.STRONG))
        yield from _text_lines(call.arguments, Tone.CODE_STRING)


def _text_lines(text: str, tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    yield from paragraph_lines(text[:MESSAGE], tone, indent="  ")
    if len(text) > MESSAGE:
        yield make_line(Span(f"  … {len(text) - MESSAGE:,} characters more", Tone.WARN))
