"""The making of an agent: the order, and the conversation of its operator with its model."""

from collections.abc import Iterator, Sequence

from dgm.analysis.lookups import read_births
from dgm.archive.events import AgentBorn, ModelCalled
from dgm.archive.run import Run
from dgm.archive.traces import Traces
from dgm.domain import AgentId, Digest
from dgm.messages import Role, ToolCall
from dgm.show.agents import root_text
from dgm.show.making import making_lines
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, line
from dgm.show.transcripts import Exchange, exchanges
from dgm.show.words import operator_text, usage_text
from dgm.tui.bodies import Body, Lines, Missing, Prose, Raw, Stack, fact, heading, paragraphs
from dgm.tui.reader import Reader
from dgm.tui.tabs import UNREADABLE, Load, answered

MESSAGE = 100_000
"""Maximum characters of one message that are shown."""
_ROLES = {Role.SYSTEM: Tone.WARN, Role.USER: Tone.KEY, Role.ASSISTANT: Tone.GOOD, Role.TOOL: Tone.DIM}


def load(reader: Reader, agent: AgentId) -> Load:
    """Return a loader of everything, in the order in which it happened."""
    aim = reader.aim(agent)
    traces = Traces(reader.folder / "traces")
    folded = reader.run is not None

    def look() -> Body:
        born = reader.ask(lambda store: read_births(store, [agent]))[agent]
        if not born.parents:
            who = root_text(born)
            said = f"{who[0].upper()}{who[1:]}: no operator made it."
            return Prose([line(said), (), *paragraphs(born.rationale)])
        calls = reader.ask(lambda store: store.calls(born.action))
        parts: list[Body] = [Prose(list(_head(born, aim)))]
        if folded:
            parts.append(answered("what is kept of its making", lambda: _making(reader, agent)))
        parts += _calls(traces, calls)
        if "log" in born.cost.traces:
            parts += [
                Lines([(), heading("output of the operator's program")]),
                _log(traces, born.cost.traces["log"]),
            ]
        return Stack(parts)

    return look


def _head(born: AgentBorn, aim: str) -> Iterator[Line]:
    yield fact("operator", operator_text(born.operator, aim))
    yield fact("parents", " and ".join(map(str, born.parents)))
    yield fact("took", f"{born.cost.seconds:.1f} s, {usage_text(born.cost.usage)}")
    if born.decided:
        yield fact("decided by", one_line(born.decided, 200))
    yield ()
    yield from paragraphs(born.rationale or "(no rationale)")


def _making(reader: Reader, agent: AgentId) -> Body:
    def ask(run: Run) -> Sequence[Line]:
        return making_lines(run, run.tree.agents[agent])

    return Prose([(), *reader.ask_tree(ask)])


def _calls(traces: Traces, calls: Sequence[ModelCalled]) -> Iterator[Body]:
    said = exchanges(traces, calls)
    for place, call in enumerate(calls):
        try:
            # A request is kept as its addition to an earlier one: only the new messages.
            exchange = next(said)
        except UNREADABLE as error:
            yield Missing(f"model call {call.number} of {len(calls)}", str(error))
            if place + 1 < len(calls):
                yield Lines([line(f"  and no more of the {len(calls)} calls is shown")])
            return
        yield Prose(list(_exchange(exchange)))
    if not calls:
        yield Lines([(), line("  no model was asked")])


def _exchange(exchange: Exchange) -> Iterator[Line]:
    call, reply = exchange.call, exchange.reply
    yield ()
    model = f"{one_line(call.role, 30)}, {one_line(call.model, 80)}"
    yield heading(
        f"call {call.number}", Span(f"  {model}, {call.seconds:.1f} s, {usage_text(call.usage)}", Tone.DIM)
    )
    for message in exchange.asked:
        yield from _message(message.role, message.text, message.calls)
    if reply.reasoning:
        yield line(Span("reasoning", Tone.DIM))
        yield from _text(reply.reasoning, Tone.DIM)
    yield from _message(Role.ASSISTANT, reply.text, reply.calls)
    if reply.error:
        yield line(Span(f"refused: {one_line(reply.error, 200)}", Tone.BAD))


def _message(role: Role, text: str, calls: Sequence[ToolCall]) -> Iterator[Line]:
    yield line(Span(role.value, _ROLES[role]))
    if text:
        yield from _text(text)
    for call in calls:
        yield line("  ", Span(f"{one_line(call.name, 80)} ", Tone.STRONG))
        yield from _text(call.arguments, Tone.CODE_STRING)


def _text(text: str, tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    yield from paragraphs(text[:MESSAGE], tone, indent="  ")
    if len(text) > MESSAGE:
        yield line(Span(f"  … {len(text) - MESSAGE:,} characters more", Tone.WARN))


def _log(traces: Traces, digest: Digest) -> Body:
    return answered("trace log", lambda: Raw(traces.get(digest)))
