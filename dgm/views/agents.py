"""Agents of a run: their tree, one of them in full, its lineage, the difference between two, and waiting children."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from dgm.analysis.accounts import Accounts, AgentAccount, Purpose, RefusedRequest
from dgm.analysis.agents import best_of, count_abandoned, trace_lineage
from dgm.archive.events import ActionStarted, AgentBorn, AgentNoted
from dgm.archive.live import UnreadableApproval, read_answer
from dgm.archive.run import LIVING, Run, evaluations_of, state
from dgm.archive.tree import Tree, WaitingChild
from dgm.domain import ActionId, Agent, AgentId, Cost, Evaluate, Evaluation, Expand, Usage, Verdict
from dgm.policies.limits import BARREN
from dgm.stats import lower_bound
from dgm.views.conduct import FindingView
from dgm.views.probes import AgentProbesView
from dgm.views.progress import agent_of
from dgm.views.promotion import PromotionsView
from dgm.views.values import DeltaView, SpendView, TallyView, UsageView, View


class AgentState(StrEnum):
    """What an agent is doing now."""

    WAITING = "waiting"
    """A child of the agent waits for the user's approval."""
    EXPANDING = "expanding"
    """A child of the agent is being made."""
    EVALUATING = "evaluating"
    IDLE = "idle"
    BARREN = "barren"
    """The agent gets no more children: too many in a row were stillborn."""


class AgentRow(View):
    """An agent in a list or a tree."""

    agent: int
    """Its id; the seed is 0."""
    parents: tuple[int, ...]
    """The lineage parent first; empty for a seed."""
    children: tuple[int, ...]
    depth: int
    """Steps to the seed along first parents."""
    commit: str
    """Its commit in the run's ``agents.git``."""
    operator: str
    """The operator that made it; ``seed`` for a seed."""
    aim: str
    """The weakness that the operator set out to fix, in one word; empty if it named none."""
    rationale: str
    """Why it was made, in the words of an agent or a model."""
    own: TallyView
    """Its graded evaluations on the search tasks."""
    clade: TallyView
    """Those of the agent and all its descendants; their rate estimates its CMP (arXiv:2510.21614, section 3)."""
    lower_bound: float
    """The rate that it exceeds with a probability of 99 %: 1st percentile of Beta(1 + resolved, 1 + unresolved)."""
    abandoned: int
    """Tasks without a verdict because every evaluation failed for infrastructure reasons."""
    delta: DeltaView | None
    """Difference to the first parent; None without a common graded task."""
    state: AgentState
    best: bool
    """Whether the policy recommends it."""
    front: bool = False
    """True if it is on the Pareto front of ``objective.front``."""
    findings: int = 0
    """Findings against it: in its evaluations, in its edit, and in its work on its children."""
    clade_findings: int = 0
    """The same of the agent and all its descendants."""
    kept: int = 0
    """Predictions of its edit that were kept; ``PredictionView.state`` says when one is."""
    tested: int = 0
    """Predictions of its edit that were kept or broken."""
    clade_kept: int = 0
    clade_tested: int = 0
    clade_gain: float | None = None
    """Gain per expansion of the clade: how much better children are than their parents, in rate, on average over the
    agent and all its descendants (``Tree.clade_gain``). None if no expansion counts yet."""
    clade_expansions: int = 0
    """Number of expansions that ``clade_gain`` is the mean of: stillborn children and those compared with a parent."""

    @classmethod
    def of(
        cls,
        tree: Tree,
        agent: Agent,
        best: AgentId | None,
        states: Mapping[AgentId, AgentState] = MappingProxyType({}),
        **more: Any,  # noqa: ANN401  (fields of a subclass)
    ) -> Self:
        """Return an agent's row; a subclass has more fields. Agents that ``states`` does not have are idle."""
        own = tree.own(agent.id)
        gain, expansions = tree.clade_gain(agent.id)
        promises, clade_promises = tree.promises(agent.id), tree.clade_promises(agent.id)
        values: dict[str, Any] = {
            "agent": agent.id,
            "parents": agent.parents,
            "children": tuple(tree.children(agent.id)),
            "depth": tree.depth(agent.id),
            "commit": agent.commit,
            "operator": agent.operator,
            "aim": tree.aim(agent.id),
            "rationale": agent.rationale,
            "own": TallyView.of(own),
            "clade": TallyView.of(tree.clade(agent.id)),
            "lower_bound": lower_bound(own),
            "abandoned": count_abandoned(tree, agent.id),
            "delta": DeltaView.between(tree, agent.parents[0], agent.id) if agent.parents else None,
            "state": states.get(agent.id, AgentState.IDLE),
            "best": agent.id == best,
            "front": agent.id in tree.front,
            "findings": int(tree.own_findings[agent.id]),
            "clade_findings": int(tree.clade_findings[agent.id]),
            "kept": promises.resolved,
            "tested": promises.n,
            "clade_kept": clade_promises.resolved,
            "clade_tested": clade_promises.n,
            "clade_gain": gain if expansions else None,
            "clade_expansions": expansions,
        }
        return cls(**values, **more)


class AttemptView(View):
    """One evaluation of an agent."""

    action: int
    agent: int
    task: str
    attempt: int
    """Number of the attempt at this task, from 1."""
    verdict: str
    """``resolved``, ``unresolved`` or ``invalid``."""
    reason: str
    score: float
    """1 if resolved, otherwise the share of the tests that had to start passing and did."""
    seconds: float
    cost: SpendView
    """Usage over all tries of the action."""
    traces: dict[str, str]
    """Name → digest of what is stored: ``patch``, ``log``, ``tests``."""
    findings: tuple[FindingView, ...] = ()
    """Findings against the agent."""

    @classmethod
    def of(
        cls,
        action: int,
        evaluation: Evaluation,
        by: Mapping[tuple[str, str], Usage],
        **more: Any,  # noqa: ANN401  (fields of a subclass)
    ) -> Self:
        """Return the view of an evaluation whose model calls used ``by``; a subclass has more fields."""
        values: dict[str, Any] = {
            "action": action,
            "agent": evaluation.agent,
            "task": evaluation.task,
            "attempt": evaluation.attempt + 1,
            "verdict": evaluation.verdict.value,
            "reason": evaluation.reason,
            "score": evaluation.score,
            "seconds": evaluation.cost.seconds,
            "cost": SpendView.by_role(by),
            "traces": dict(evaluation.cost.traces),
            "findings": FindingView.all_of(evaluation.findings),
        }
        return cls(**values, **more)


class TreeView(View):
    """All agents of a run. Parents come before their children."""

    run: str
    folder: str
    state: str
    """``running``, ``paused``, ``interrupted``, or how the run ended."""
    best: int | None
    """The recommended agent; None without an agent."""
    promotions: PromotionsView | None
    """None before the first round of promotion."""
    agents: tuple[AgentRow, ...]
    """An agent's id is its index."""

    @classmethod
    def load(cls, run: Run, best: AgentId | None = None) -> Self:
        """Read the tree as far as the run's log is folded.

        Args:
            run: the run.
            best: the recommended agent if it is known already; finding it can take seconds in a long run.
        """
        tree = run.tree
        best = best_of(run) if best is None and tree.agents else best
        states = agent_states(run)
        rows = tuple(AgentRow.of(tree, agent, best, states) for agent in tree.agents)
        return cls(
            run=run.name,
            folder=str(run.folder),
            state=state(run),
            best=best,
            promotions=PromotionsView.load(run),
            agents=rows,
        )


class ActionSpend(View):
    """Usage of one action."""

    action: int
    purpose: Purpose
    by: SpendView


class AccountView(View):
    """Usage of one agent, by purpose."""

    making: UsageView
    """The expansion that created the agent."""
    evaluating: UsageView
    stillborn: UsageView
    """Expansions of the agent without a child."""
    unfinished: UsageView
    """Expansions of the agent that may still give a child."""
    total: SpendView
    clade: UsageView
    """Usage of the agent and all its descendants."""
    actions: tuple[ActionSpend, ...]

    @classmethod
    def of(cls, account: AgentAccount, clade: Usage) -> Self:
        """Return the view of an account."""
        return cls(
            **{purpose.value: UsageView.of(account.of(purpose)) for purpose in Purpose},
            total=SpendView.by_role(account.by),
            clade=UsageView.of(clade),
            actions=tuple(
                ActionSpend(action=line.action, purpose=line.purpose, by=SpendView.by_role(line.by))
                for line in account.lines
            ),
        )


class MakingView(View):
    """How an agent was made."""

    action: int
    """The expansion; 0 for a seed."""
    shown: tuple[int, ...]
    """Other agents whose source and verdicts the operator could see."""
    evidence: tuple[int, ...]
    """Evaluations (actions) whose traces the operator could see."""
    case: int | None
    """The one evaluation that the child was made for."""
    seconds: float
    vetting: dict[str, float]
    """Vetting stage → seconds."""
    offered: int
    """Number of files of evidence that the operator could read."""
    read: dict[str, int]
    """File of evidence → lines that the operator read; only runs of earlier versions recorded them."""
    statement: str | None
    """The general statement that the operator wrote about the failure."""
    traces: dict[str, str]
    findings: tuple[FindingView, ...] = ()
    """Those with a location count against the agent, the others against its first parent, which made it."""


class PredictionView(View):
    """One task that an agent's edit promised to get resolved."""

    task: str
    reason: str
    """Why, in the editor's words."""
    state: Literal["kept", "broken", "open"]
    """``kept``: its first attempt is resolved; ``broken``: it is unresolved; ``open``: it has no verdict yet."""

    @classmethod
    def all_of(cls, tree: Tree, agent: Agent) -> tuple[Self, ...]:
        """Return the views of an agent's predictions."""
        states: dict[Verdict | None, Literal["kept", "broken"]] = {
            Verdict.RESOLVED: "kept",
            Verdict.UNRESOLVED: "broken",
        }
        return tuple(
            cls(
                task=each.task,
                reason=each.reason,
                state=states.get(tree.verdict(agent.id, each.task), "open"),
            )
            for each in agent.predictions
        )


class NoteView(View):
    """A person's note about an agent."""

    at: float
    """Unix time."""
    text: str


class AgentView(AgentRow):
    """One agent in full."""

    run: str
    making: MakingView
    predictions: tuple[PredictionView, ...] = ()
    """Predictions of its edit: tasks that it should get solved."""
    notes: tuple[NoteView, ...] = ()
    """People's notes about it (``dgm note``), oldest first."""
    spend: AccountView
    refusals: tuple[RefusedRequest, ...]
    """The most frequent first."""
    evaluations: tuple[AttemptView, ...]
    """In the order of their verdicts."""
    probes: AgentProbesView
    """State of its probes: how far its solutions are known to be safe."""

    @classmethod
    def load(
        cls, run: Run, agent: Agent, best: AgentId | None = None, accounts: Accounts | None = None
    ) -> Self:
        """Read an agent with its evaluations and what they cost.

        Args:
            run: the run.
            agent: one of its agents.
            best: as in ``TreeView.load``.
            accounts: of the run if they are computed already, perhaps some events ago.

        Raises:
            ArchiveCorrupt: a trace of its making is damaged.
        """
        accounts = accounts or Accounts(run)
        return cls.of(
            run.tree,
            agent,
            best_of(run) if best is None else best,
            agent_states(run),
            run=run.name,
            making=read_making(run, agent),
            predictions=PredictionView.all_of(run.tree, agent),
            notes=tuple(
                NoteView(at=recorded.at, text=recorded.event.text)
                for recorded in run.store.select("kind = 'agent_noted'")
                if isinstance(recorded.event, AgentNoted) and recorded.event.agent == agent.id
            ),
            spend=AccountView.of(accounts.of(agent.id), accounts.clade(agent.id)),
            refusals=tuple(accounts.refusals(agent.id)),
            evaluations=tuple(
                AttemptView.of(action, evaluation, accounts.action(action))
                for action, evaluation in evaluations_of(run, agent.id).items()
            ),
            probes=AgentProbesView.load(run, agent),
        )


class LineageStep(AgentRow):
    """One agent of a lineage."""

    patch: str
    """Diff of its source against the first parent's; empty for a seed."""


class LineageView(View):
    """The agents from a seed to one agent along first parents."""

    run: str
    agent: int
    lineage: tuple[LineageStep, ...]
    """The seed comes first."""

    @classmethod
    def load(cls, run: Run, agent: AgentId) -> Self:
        """Read a lineage."""
        best, states = best_of(run), agent_states(run)
        line = trace_lineage(run.tree, agent)
        patches = [b"", *(run.repository.diff(a.commit, b.commit) for a, b in pairwise(line))]
        steps = tuple(
            LineageStep.of(run.tree, member, best, states, patch=decode(patch))
            for member, patch in zip(line, patches, strict=True)
        )
        return cls(run=run.name, agent=agent, lineage=steps)


class DiffView(View):
    """What the source of one agent changes against another's."""

    model_config = ConfigDict(serialize_by_alias=True, populate_by_name=True)
    run: str
    base: int = Field(alias="from")
    """The agent before the change."""
    agent: int = Field(alias="to")
    """The agent after the change."""
    patch: str
    """Unified diff as git writes it."""

    @classmethod
    def load(cls, run: Run, agent: Agent, base: Agent | None = None) -> Self:
        """Compare two agents; ``base`` is the first parent by default (a seed is compared with itself)."""
        base = base or run.tree.agents[agent.parents[0] if agent.parents else agent.id]
        patch = run.repository.diff(base.commit, agent.commit)
        return cls(run=run.name, patch=decode(patch), **{"from": base.id, "to": agent.id})


class WaitingChildView(View):
    """A child that is ready to be born once the user approves it."""

    child: int
    """Number of the action that made it."""
    parents: tuple[int, ...]
    operator: str
    rationale: str
    """Why it was made, in the words of a model."""
    commit: str
    files: int
    """Changed files, against the first parent."""
    added: int
    """Added lines."""
    removed: int
    """Removed lines."""
    since: float
    """Unix time."""
    until: float | None
    """Unix time when nobody is waited for any longer; None: without end."""
    answer: Literal["yes", "no"] | None
    """An answer that the search has not read yet."""
    reason: str
    fault: str
    """Why the file of its answer holds none; empty if it is in order."""

    @classmethod
    def load(cls, run: Run, action: ActionId, waiting: WaitingChild) -> Self:
        """Return the view of a child that waits."""
        child, limit_s = waiting.child, run.config["settings"]["gates"]["approve_s"]
        lines = read_waiting_patch(run, action).split(b"\n")
        answer, fault = None, ""
        try:
            answer = read_answer(run.folder, action)
        except UnreadableApproval as error:
            fault = str(error)
        return cls(
            child=action,
            parents=child.parents,
            operator=child.operator,
            rationale=child.rationale,
            commit=child.commit,
            files=sum(line.startswith(b"diff --git ") for line in lines),
            added=sum(line.startswith(b"+") and not line.startswith(b"+++ ") for line in lines),
            removed=sum(line.startswith(b"-") and not line.startswith(b"--- ") for line in lines),
            since=waiting.since,
            until=None if limit_s is None else waiting.since + limit_s,
            answer=None if answer is None else "yes" if answer.yes else "no",
            reason=answer.reason if answer else "",
            fault=fault,
        )


def read_waiting_patch(run: Run, action: ActionId) -> bytes:
    """Return a waiting child's change against its first parent."""
    child = run.tree.waiting[action].child
    return run.repository.diff(run.tree.agents[child.parents[0]].commit, child.commit)


def decode(data: bytes) -> str:
    """Return stored text; invalid UTF-8 is replaced."""
    return data.decode("utf-8", "replace")


def agent_states(run: Run) -> Mapping[AgentId, AgentState]:
    """Return what each agent that is not idle is doing now."""
    tree = run.tree
    states = {agent.id: AgentState.BARREN for agent in tree.agents if tree.barren[agent.id] >= BARREN}
    actions = tree.pending.values() if state(run) in LIVING else ()
    for wanted, now in ((Evaluate, AgentState.EVALUATING), (Expand, AgentState.EXPANDING)):
        states |= {agent_of(action): now for action in actions if isinstance(action, wanted)}
    return states | {child.child.parents[0]: AgentState.WAITING for child in tree.waiting.values()}


def read_making(run: Run, agent: Agent) -> MakingView:
    """Read how an agent was made.

    Raises:
        ArchiveCorrupt: a trace is missing or damaged.
    """
    from dgm.analysis.accounts import stage_times

    events = [item.event for item in run.store.events_of_action(agent.action)] if agent.parents else []
    born = next((event.outcome for event in events if isinstance(event, AgentBorn)), None)
    cost = born.cost if born else Cost()
    starts = [event.action for event in events if isinstance(event, ActionStarted)]
    what = next((action for action in starts if isinstance(action, Expand)), None)
    statement = cost.traces.get("statement")
    return MakingView(
        action=agent.action,
        shown=what.shown if what else (),
        evidence=what.evidence if what else (),
        case=what.case or None if what else None,
        seconds=cost.seconds,
        vetting={stage: took.seconds for stage, took in stage_times(run, cost).items()},
        offered=len(_read_json_trace(run, cost, "evidence")),
        read={path: int(counts[0]) for path, counts in _read_json_trace(run, cost, "reading").items()},
        statement=decode(run.traces.get(statement)) if statement else None,
        traces=dict(cost.traces),
        findings=FindingView.all_of(born.findings if born else ()),
    )


def _read_json_trace(run: Run, cost: Cost, name: str) -> Mapping[str, Any]:
    if name not in cost.traces:
        return {}
    with run.traces.reading(cost.traces[name]) as record:
        return dict(record)
