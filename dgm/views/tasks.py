"""Tasks of a run: the attempts at each, and one attempt in full with its patch, tests and transcript."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Literal, Self

from dgm.analysis.accounts import read_usage
from dgm.archive.conversations import ConversationBuilder, Prompts, Thread
from dgm.archive.events import ModelCalled
from dgm.archive.journal import CallReader
from dgm.archive.run import Run, evaluations_of
from dgm.domain import ActionId, Agent, Evaluation, Tally, TaskId, Verdict
from dgm.errors import ArchiveCorrupt, UserError
from dgm.views.agents import AttemptView, decode
from dgm.views.values import TallyView, View

_NAMED = 5
"""Maximum number of tasks or agents that a message names."""


class ToolCallView(View):
    """A call of a tool."""

    name: str
    arguments: str
    """JSON as the model wrote it."""


class TurnView(View):
    """One message of a conversation."""

    call: int
    """Number of the model call that it answers, or in whose request it appears first."""
    role: str
    text: str
    tools: tuple[ToolCallView, ...] = ()
    """Tools that the message calls."""
    reasoning: str = ""
    error: str = ""
    model: str | None = None
    """The model that wrote it; None if it is no reply."""


class SegmentView(View):
    """Calls of which each extends the one before."""

    left_out: int
    """Earlier messages of the thread that its first request does not repeat."""
    turns: tuple[TurnView, ...]


class ThreadView(View):
    """One conversation of an action."""

    calls: int
    prompts: tuple[Prompts, ...]
    segments: tuple[SegmentView, ...]


class TranscriptView(View):
    """The conversations of an action with its models."""

    threads: tuple[ThreadView, ...]
    problem: str | None = None
    """Why the calls after these cannot be read."""

    @classmethod
    def load(cls, run: Run, action: ActionId) -> Self:
        """Read the calls of an action, up to the first one that cannot be read."""
        reader, conversations, done = CallReader(run.store), ConversationBuilder(), {}
        problem = None
        try:
            for call in run.store.calls(action):
                conversations.add(*reader.exchange(call), call.number)
                done[call.number] = call
        except (ArchiveCorrupt, ValueError, LookupError, TypeError) as error:
            problem = str(error)
        threads = tuple(_view_thread(thread, done) for thread in conversations.threads())
        return cls(threads=threads, problem=problem)


class AttemptDetail(AttemptView):
    """One attempt in full."""

    documents: dict[str, str]
    """Name → text of each trace: ``patch``, ``tests``, ``log`` and others."""
    transcript: TranscriptView

    @classmethod
    def load(cls, run: Run, action: ActionId, evaluation: Evaluation) -> Self:
        """Read an attempt.

        Raises:
            ArchiveCorrupt: a trace is missing or damaged.
        """
        texts = {name: decode(run.traces.get(digest)) for name, digest in evaluation.cost.traces.items()}
        return cls.of(
            action,
            evaluation,
            read_usage(run, [action]).get(action, {}),
            documents=texts,
            transcript=TranscriptView.load(run, action),
        )


class TaskView(View):
    """The attempts at one task."""

    run: str
    task: str
    tally: TallyView
    """Over all of ``attempts``."""
    attempts: tuple[AttemptView, ...]
    """By agent and number."""

    @classmethod
    def load(cls, run: Run, task: TaskId) -> Self:
        """Read the attempts of all agents at a task."""
        attempts = {
            action: evaluation
            for agent in run.tree.agents
            if task in run.tree.verdicts(agent.id)
            for action, evaluation in evaluations_of(run, agent.id).items()
            if evaluation.task == task
        }
        usage = read_usage(run, list(attempts))
        resolved = sum(evaluation.verdict is Verdict.RESOLVED for evaluation in attempts.values())
        return cls(
            run=run.name,
            task=task,
            tally=TallyView.of(Tally(resolved, len(attempts) - resolved)),
            attempts=tuple(
                AttemptView.of(action, evaluation, usage.get(action, {}))
                for action, evaluation in attempts.items()
            ),
        )


class AgentTaskView(View):
    """All attempts of one agent at one task, in full."""

    run: str
    agent: int
    task: str
    attempts: tuple[AttemptDetail, ...]
    """The oldest comes first."""

    @classmethod
    def load(cls, run: Run, agent: Agent, task: str) -> Self:
        """Read the attempts.

        Raises:
            UserError: the agent has no verdict on such a task.
            ArchiveCorrupt: a trace is missing or damaged.
        """
        done = evaluations_of(run, agent.id)
        attempts = {action: evaluation for action, evaluation in done.items() if evaluation.task == task}
        if not attempts:
            raise UserError(_no_verdict_text(run, agent, task, done))
        return cls(
            run=run.name,
            agent=agent.id,
            task=task,
            attempts=tuple(
                AttemptDetail.load(run, action, evaluation) for action, evaluation in attempts.items()
            ),
        )


class TaskRow(View):
    """A task in a list."""

    task: str
    tally: TallyView
    """First attempts of all agents."""
    state: Literal["active", "pool", "retired"] = "active"
    """Its state in a curriculum; without one all tasks are active."""


def list_tasks(run: Run) -> Sequence[TaskRow]:
    """Return all search tasks of the run with their tallies, in the order of the suite."""
    counts: dict[TaskId, list[int]] = {task: [0, 0] for task in run.tree.tasks}
    for agent in run.tree.agents:
        for task, verdict in run.tree.verdicts(agent.id).items():
            if verdict is not None:
                counts.setdefault(task, [0, 0])[verdict is not Verdict.RESOLVED] += 1
    idle: dict[TaskId, Literal["pool", "retired"]] = dict.fromkeys(run.tree.curriculum.pool, "pool")
    idle |= dict.fromkeys(run.tree.curriculum.retired, "retired")
    return [
        TaskRow(task=task, tally=TallyView.of(Tally(*pair)), state=idle.get(task, "active"))
        for task, pair in counts.items()
    ]


def _view_thread(thread: Thread, calls: Mapping[int, ModelCalled]) -> ThreadView:
    segments = tuple(
        SegmentView(
            left_out=segment.left_out,
            turns=tuple(
                TurnView(
                    call=turn.call,
                    role=turn.message.role.value,
                    text=turn.message.text,
                    tools=tuple(
                        ToolCallView(name=call.name, arguments=call.arguments) for call in turn.message.calls
                    ),
                    reasoning=turn.reply.reasoning if turn.reply else "",
                    error=turn.reply.error if turn.reply else "",
                    model=calls[turn.call].model if turn.reply else None,
                )
                for turn in segment.turns
            ),
        )
        for segment in thread.segments
    )
    return ThreadView(calls=thread.calls, prompts=tuple(thread.prompts), segments=segments)


def _no_verdict_text(run: Run, agent: Agent, task: str, done: Mapping[ActionId, Evaluation]) -> str:
    tried = list(dict.fromkeys(str(evaluation.task) for evaluation in done.values()))
    problem = f"task '{task}': agent {agent.id} has no verdict on it"
    if near := difflib.get_close_matches(task, tried, 1, 0.5):
        return f"{problem}; did you mean '{near[0]}'?"
    if task in run.tree.tasks:
        others = [str(other.id) for other in run.tree.agents if task in run.tree.verdicts(other.id)]
        return f"{problem} yet; agents that tried it: {', '.join(others[:_NAMED]) or 'none'}"
    more = f" and {len(tried) - _NAMED} more" if len(tried) > _NAMED else ""
    return f"{problem}; it has verdicts on {', '.join(tried[:_NAMED])}{more}" if tried else problem
