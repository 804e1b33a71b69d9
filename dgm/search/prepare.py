"""From the policy's expansion to the operator's brief: a function of the log up to the action's start.

``choose_evidence`` draws once what an operator may see, when the expansion is first started. ``read_brief`` reads it.
``AgentIndex`` has the agents with which a child is compared. So an expansion has the same inputs when it is repeated or
replayed. ``RunController`` writes the run on behalf of the loop: events, and children that wait for a person.

A child waits from the event that proposes it to the birth or stillbirth that ends its expansion. Its commit is
durable before that event. The answer survives every crash: it is read again until the log has the result.
"""

import heapq
import itertools
import logging
import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from msgspec import structs

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentNoted,
    AgentStillborn,
    ChildProposed,
    Event,
    Recorded,
)
from dgm.archive.live import (
    ApprovalAnswer,
    UnreadableApproval,
    forget_answer,
    is_diff_written,
    read_answer,
    read_notes,
    write_diff,
)
from dgm.archive.log import name_of as digest_of
from dgm.archive.run import Run, evaluations_of
from dgm.archive.tree import Tree, WaitingChild
from dgm.config import EvidenceSettings, Settings
from dgm.domain import (
    NO_ACTION,
    Action,
    ActionId,
    AgentId,
    Born,
    CommitId,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    Tally,
    TaskId,
    Verdict,
)
from dgm.errors import UserError
from dgm.meta.evidence import NOTES_FILE, begin_with_actions, count_problems, evidence_folder
from dgm.meta.issue import CONTEXT, EMPTY, EMPTY_SHARE, ENTRIES, SHARE, STOCHASTIC, UNRESOLVED
from dgm.meta.similarity import VERSION, syntax_key
from dgm.policies.published import outcome_distances
from dgm.protocols import Benchmark, Brief, Case, Member, Needs, ProgramEnd
from dgm.search.overview import read_overview
from dgm.stats import wilson

POOL = 256
"""Maximum number of agents considered: those with the most resolved verdicts."""
CASES = 3
"""Cases of each agent that is shown beside the first parent."""
SOLVED_CASES = 2
"""Maximum number of those that are tasks which the agent resolved and the first parent did not."""
NOTES_SHOWN = 20
"""Maximum number of notes by people that an operator may see."""
ATTEMPTS = 3
"""Maximum attempts at a task that are shown side by side."""
SIBLINGS = 100
"""An edit is compared with at most this many of the parent's newest children."""
EVIDENCE_TRACES = ("patch", "failures", "log", "conversation", "prompts")
"""Traces of an evaluation that become evidence."""

_NOTHING = digest_of(b"")
_NO_NEEDS = Needs()

Evaluations = Mapping[ActionId, Evaluation]
"""An agent's resolved and unresolved evaluations."""


def choose_evidence(
    run: Run, tree: Tree, action: ActionId, what: Expand, needs: Needs, settings: Settings
) -> Expand:
    """Return the expansion with its evidence, the agents shown, its aim, and its probes.

    For an action that was started already, only facts known then are chosen: a replay draws the same again.

    Args:
        run: the run whose log holds the evaluations.
        tree: the fold of the log up to this decision.
        action: the expansion.
        what: as the policy decided it.
        needs: of its operator.
        settings: of the run.

    Raises:
        ArchiveCorrupt: a trace on the end of an evaluation is missing or damaged.
    """
    rng = Random(f"{settings.seed}/{action}/evidence")
    past = {parent: read_honest(run, parent, action)[0] for parent in what.parents}
    parents_own = past[what.parents[0]]
    chosen = _sample_past(parents_own, settings.evidence, rng)
    chosen_failed = {parents_own[number].task for number in chosen}
    partners = tuple(agent for agent in what.group if agent not in what.parents)
    for agent in partners:
        past[agent] = read_honest(run, agent, action)[0]
        chosen |= _sample_past(past[agent], settings.evidence, rng)
    relatives = _choose_shown(tree, (*what.parents, *partners), needs, settings.evidence)
    what = structs.replace(what, shown=(*partners, *relatives))
    failed = _find_failed_tasks(tree, what.parents[0])
    wanted = [chosen_failed & failed, failed, *([set(tree.tasks)] if needs.successes else [])]
    for agent in (*what.parents[1:], *what.shown):
        if agent not in past:
            past[agent] = read_honest(run, agent, action)[0]
        chosen.update(_sample_cases(past[agent], wanted, rng))
    if needs.attempts:
        chosen.update(_choose_attempts(past, what.parents[0], needs.attempts, rng))
    if not what.aim and set(needs.aims) <= set(ENTRIES):
        what = _choose_aim(run, what, parents_own, needs.aims, rng)
    if what.case:
        chosen.add(what.case)
    probes = _choose_probes([past[parent] for parent in what.parents], settings.vetting.probes, rng)
    return structs.replace(what, evidence=tuple(sorted(chosen)), probes=probes)


def read_honest(run: Run, agent: AgentId, before: ActionId) -> tuple[Evaluations, int]:
    """Return an agent's evaluations without findings, and how many others there are, when an action was first started.

    What a cheat did, and what it learned, is no evidence.
    """
    evaluations = evaluations_of(run, agent, before=before)
    honest = {number: each for number, each in evaluations.items() if not each.findings}
    return honest, len(evaluations) - len(honest)


def _sample_past(evaluations: Evaluations, settings: EvidenceSettings, rng: Random) -> set[ActionId]:
    """Return some of an agent's failures and successes."""
    chosen: set[ActionId] = set()
    for verdict, count in (
        (Verdict.UNRESOLVED, settings.failures),
        (Verdict.RESOLVED, settings.successes),
    ):
        fitting = [number for number, each in evaluations.items() if each.verdict is verdict]
        chosen.update(rng.sample(fitting, min(count, len(fitting))))
    return chosen


def _choose_shown(
    tree: Tree, parents: tuple[AgentId, ...], needs: Needs, settings: EvidenceSettings
) -> tuple[AgentId, ...]:
    """Return the nearest ancestors, the nearest first, then others."""
    line = {ancestor for parent in parents for ancestor in tree.ancestors(parent)}
    line -= {*parents} | tree.flagged
    nearest = heapq.nlargest(max(settings.ancestors, needs.ancestors), line)
    tried = [agent.id for agent in tree.agents if tree.own(agent.id).n]
    excluded = {*parents, *nearest} | tree.flagged
    if needs.overview:
        others = [agent for agent in tried if agent not in excluded]
        pairs = zip(_rank_agents(tree, others, len(others)), reversed(others), strict=True)
        return (*nearest, *list(dict.fromkeys(itertools.chain(*pairs)))[: needs.overview])
    pool = heapq.nsmallest(POOL, tried, key=lambda agent: (-tree.own_resolved[agent], agent))
    pool = [agent for agent in pool if agent not in excluded]
    count = max(settings.others, needs.relatives, needs.archive)
    if needs.archive:
        return (*nearest, *_choose_diverse(tree, parents[0], pool, count))
    wanted = _find_failed_tasks(tree, parents[0]) if needs.relatives else ()
    return (*nearest, *_rank_agents(tree, pool, count, wanted))


def _rank_agents(
    tree: Tree, pool: Sequence[AgentId], count: int, wanted: Collection[TaskId] = ()
) -> list[AgentId]:
    """Return the agents that resolved most of the wanted tasks; ties go by the lower end of their rate's interval."""

    def rank(agent: AgentId) -> tuple[int, float, int]:
        solved = sum(tree.verdict(agent, task) is Verdict.RESOLVED for task in wanted)
        return -solved, -wilson(tree.own(agent))[0], agent

    return heapq.nsmallest(count, pool, key=rank)


def _choose_diverse(tree: Tree, parent: AgentId, pool: Sequence[AgentId], count: int) -> list[AgentId]:
    """Return half the best agents, then repeatedly the agent farthest from its nearest chosen one."""
    ranked = _rank_agents(tree, pool, len(pool))
    chosen = ranked[: math.ceil(count / 2)]
    row = {agent: number for number, agent in enumerate([*ranked, parent])}
    apart = outcome_distances(tree, list(row)).clip(max=1.0).tolist()  # 1 without enough common tasks
    known, others = [parent, *chosen], ranked[len(chosen) :]
    while len(chosen) < count and others:
        # Among equally far agents take the better: the first in this order.
        farthest = max(others, key=lambda agent: min(apart[row[agent]][row[other]] for other in known))
        chosen.append(farthest)
        known.append(farthest)
        others.remove(farthest)
    return chosen


def _find_failed_tasks(tree: Tree, agent: AgentId) -> set[TaskId]:
    return {task for task, verdict in tree.verdicts(agent).items() if verdict is Verdict.UNRESOLVED}


def _sample_cases(evaluations: Evaluations, wanted: Sequence[set[TaskId]], rng: Random) -> list[ActionId]:
    """Return cases of another agent: wanted tasks that it resolved, then any others.

    Args:
        evaluations: of the agent.
        wanted: sets of tasks; the first one counts of which the agent resolved a task.
        rng: the random stream.
    """
    solved: list[ActionId] = []
    for tasks in wanted:
        solved = [
            number
            for number, each in evaluations.items()
            if each.verdict is Verdict.RESOLVED and each.task in tasks
        ]
        if solved:
            break
    cases = rng.sample(solved, min(SOLVED_CASES, len(solved)))
    rest = [number for number in evaluations if number not in cases]
    return [*cases, *rng.sample(rest, min(CASES - len(cases), len(rest)))]


def _choose_attempts(
    past: Mapping[AgentId, Evaluations], parent: AgentId, count: int, rng: Random
) -> list[ActionId]:
    """Return attempts at ``count`` tasks that the parent tried, and tried more than once or others tried, too.

    Tasks with both verdicts come first. Of each task, return the parent's first attempt, then those that ended
    otherwise.
    """
    first: dict[TaskId, ActionId] = {}
    for number, each in past[parent].items():
        first.setdefault(each.task, number)
    attempts: dict[TaskId, list[ActionId]] = {task: [] for task in sorted(first)}
    verdicts: dict[ActionId, Verdict] = {}
    for evaluations in past.values():
        for number, each in evaluations.items():
            verdicts[number] = each.verdict
            if first.get(each.task, number) != number:
                attempts[each.task].append(number)
    tasks = [task for task, others in attempts.items() if others]
    rng.shuffle(tasks)
    chosen = []
    for task in sorted(
        tasks, key=lambda task: {verdicts[n] for n in attempts[task]} == {verdicts[first[task]]}
    ):
        others = sorted(attempts[task], key=lambda number: verdicts[number] is verdicts[first[task]])
        chosen.append([first[task], *others[: ATTEMPTS - 1]])
    return [number for numbers in chosen[:count] for number in numbers]


def _choose_aim(run: Run, what: Expand, parents_own: Evaluations, aims: Sequence[str], rng: Random) -> Expand:
    """Return the expansion with one kind of entry and its evaluation; unchanged if nothing has failed.

    Source: ``choose_selfimproves`` of the program of arXiv:2505.22954.
    """
    failed = {number: each for number, each in parents_own.items() if each.verdict is Verdict.UNRESOLVED}
    if not aims or not failed:
        return what
    empty = [number for number, each in failed.items() if each.cost.traces.get("patch", _NOTHING) == _NOTHING]
    if empty and len(empty) >= EMPTY_SHARE * len(parents_own) and rng.random() < SHARE:
        return structs.replace(what, aim=EMPTY, case=rng.choice(empty))
    if rng.random() < SHARE:
        return structs.replace(what, aim=STOCHASTIC, case=NO_ACTION)
    full = [number for number, each in failed.items() if _read_program_end(run, each).context]
    if full and rng.random() < SHARE:
        return structs.replace(what, aim=CONTEXT, case=rng.choice(full))
    wrong = [number for number in failed if number not in empty]
    return structs.replace(what, aim=UNRESOLVED, case=rng.choice(wrong or empty))


def _choose_probes(past: Sequence[Evaluations], count: int, rng: Random) -> tuple[TaskId, ...]:
    """Return tasks that every parent resolved at each of its tries."""
    always = [
        {each.task for each in evaluations.values()}
        - {each.task for each in evaluations.values() if each.verdict is not Verdict.RESOLVED}
        for evaluations in past
    ]
    common = sorted(set.intersection(*always)) if count else []
    return tuple(rng.sample(common, min(count, len(common))))


def read_brief(
    run: Run,
    benchmark: Benchmark,
    action: ActionId,
    what: Expand,
    settings: EvidenceSettings,
    needs: Needs = _NO_NEEDS,
) -> Brief:
    """Return the inputs of an expansion's operator, as they were known when it was first started; used in a thread.

    ``needs`` are the operator's.

    Raises:
        ArchiveCorrupt: a source or a trace is missing or damaged.
    """
    tree, repository = run.tree, run.repository
    read = {agent: read_honest(run, agent, action) for agent in (*what.parents, *what.shown)}
    past = {agent: evaluations for agent, (evaluations, _) in read.items()}
    members = [_read_member(run, agent, evaluations) for agent, evaluations in past.items()]
    parents, shown = members[: len(what.parents)], members[len(what.parents) :]
    evaluations = {number: each for own in past.values() for number, each in own.items()}
    cases = [
        _read_case(run, benchmark, number, evaluations[number])
        for number in what.evidence
        if number in evaluations
    ]
    own_cases = [case for case in cases if case.evaluation.agent == what.parents[0]]
    ancestor = tree.common_ancestor(*what.parents) if len(what.parents) == 2 else None
    noted = read_notes_of(run, what.parents, action)
    notes = "".join(f"- agent {note.agent}: {note.text}\n" for note in noted).encode()
    return Brief(
        parents=parents,
        evidence=evidence_folder(
            parents,
            shown,
            cases,
            settings.folder_bytes,
            withheld=sum(count for _, count in read.values()),
            overview={
                **({NOTES_FILE: notes} if notes else {}),
                **(read_overview(run, action) if needs.overview else {}),
            },
        ),
        facts=count_problems(parents[0].own, own_cases),
        child_number=tree.child_number(action),
        members=shown,
        cases=cases,
        aim=what.aim,
        case=what.case,
        group=what.group,
        ancestor=None if ancestor is None else repository.source(tree.agents[ancestor].commit),
        notes=notes,
    )


def read_notes_of(run: Run, agents: Sequence[AgentId], action: ActionId) -> Sequence[AgentNoted]:
    """Return the newest notes about the agents and their ancestors from before the action's first start."""
    before = run.store.starts_of_action(action)[0][0]
    line = {*agents}.union(*map(run.tree.ancestors, agents))
    notes = [note for note in run.store.events(AgentNoted, until=before) if note.agent in line]
    return notes[-NOTES_SHOWN:]


def _read_member(run: Run, number: AgentId, evaluations: Evaluations) -> Member:
    agent = run.tree.agents[number]
    before = run.tree.agents[agent.parents[0]].commit if agent.parents else None
    return Member(
        agent=agent,
        source=run.repository.source(agent.commit),
        own=sum((each.tally for each in evaluations.values()), Tally()),
        verdicts={each.task: each.verdict for each in evaluations.values() if each.attempt == 0},
        change=run.repository.diff(before, agent.commit) if before else b"",
    )


def _read_case(run: Run, benchmark: Benchmark, action: ActionId, evaluation: Evaluation) -> Case:
    digests = evaluation.cost.traces
    traces = {name: run.traces.get(digests[name]) if name in digests else b"" for name in EVIDENCE_TRACES}
    if "prompts" in digests:
        traces["conversation"] = begin_with_actions(traces["conversation"])
    problem = benchmark.task(evaluation.task).prompt
    return Case(evaluation, problem, traces, _read_program_end(run, evaluation), action)


def _read_program_end(run: Run, evaluation: Evaluation) -> ProgramEnd:
    digest = evaluation.cost.traces.get("circumstances")
    if digest is None:
        return ProgramEnd()
    with run.traces.reading(digest) as recorded:
        return ProgramEnd(**recorded)


@dataclass(slots=True)
class _Known:
    """An agent or a waiting child in the index."""

    name: str
    """As messages name it."""
    child: Born
    since: int
    """Number of the event of its birth or proposal."""
    until: int = sys.maxsize
    """Number of the event that ended its wait."""


class AgentIndex:
    """A run's agents and waiting children by content and by syntax, at any moment; each is read once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._read = 0
        self._agents: list[_Known] = []
        self._waiting: dict[ActionId, _Known] = {}
        """Children that wait or have waited for a person."""
        self._trees: dict[CommitId, str] = {}
        self._keys: dict[CommitId, str] = {}

    def contents(self, before: int = sys.maxsize, itself: ActionId = NO_ACTION) -> Mapping[str, str]:
        """Return git tree id → name of every agent and waiting child at event ``before``, without ``itself``."""
        known = self._known_at(before, itself)
        new = [each.child.commit for each in known if each.child.commit not in self._trees]
        self._trees.update(zip(new, self._run.repository.trees_of(new), strict=True))
        return {self._trees[each.child.commit]: each.name for each in reversed(known)}

    def syntax(self, before: int = sys.maxsize, itself: ActionId = NO_ACTION) -> Mapping[str, str]:
        """Return ``syntax_key`` → name, for the same agents and children.

        Agents without a key, or with a key of another version, get one from their sources.
        """
        return {self._key_of(each.child): each.name for each in reversed(self._known_at(before, itself))}

    def siblings(self, parent: AgentId, before: int) -> Mapping[str, CommitId]:
        """Return the newest children of a first parent at event ``before``, waiting ones included: name → commit."""
        known = self._known_at(before)
        children = [each for each in known if each.child.parents[:1] == (parent,)][-SIBLINGS:]
        # Not by name: a waiting child may be an agent by the time of a replay.
        return {each.name: each.child.commit for each in sorted(children, key=lambda each: each.child.commit)}

    def find_twin(self, content: str, syntax: str, itself: ActionId = NO_ACTION) -> tuple[str, str]:
        """Return the stage at which a child about to be born fails as a copy, and why; two empty texts if it is new.

        Args:
            content: git tree id of its source.
            syntax: its ``syntax_key``; empty if it is not to be compared.
            itself: its action, if it waits.
        """
        if same := self.contents(itself=itself).get(content):
            return "duplicate", f"the same content as {same}, which was there first"
        if syntax and (same := self.syntax(itself=itself).get(syntax)):
            why = f"but for comments, docstrings and layout the same as {same}, which was there first"
            return "syntax", why
        return "", ""

    def _key_of(self, child: Born) -> str:
        if child.commit not in self._keys:
            recorded = child.syntax.startswith(VERSION)
            source = self._run.repository.source
            self._keys[child.commit] = child.syntax if recorded else syntax_key(source(child.commit))
        return self._keys[child.commit]

    def _known_at(self, before: int, itself: ActionId = NO_ACTION) -> list[_Known]:
        """Return the agents, then the waiting children."""
        self._catch_up()
        waiting = (each for action, each in self._waiting.items() if action != itself)
        return [each for each in (*self._agents, *waiting) if each.since < before <= each.until]

    def _catch_up(self) -> None:
        kinds = "kind IN ('agent_born', 'agent_stillborn', 'child_proposed') AND seq > ?"
        for recorded in self._run.store.select(kinds, (self._read,)):
            self._read = recorded.seq
            match recorded.event:
                case ChildProposed(action, child):
                    name = f"the child of action {action}"
                    self._waiting[action] = _Known(name, child, recorded.seq)
                case AgentBorn(action, agent, child):
                    self._end_wait(action, recorded.seq)
                    self._agents.append(_Known(f"agent {agent}", child, recorded.seq))
                case AgentStillborn(action):
                    self._end_wait(action, recorded.seq)
                case _:
                    pass

    def _end_wait(self, action: ActionId, seq: int) -> None:
        if action in self._waiting:
            self._waiting[action].until = seq


PERSON = "a person"
TIME_OUT = "time-out"

log = logging.getLogger(__name__)


class RunController:
    """A run on disk, on behalf of the loop; beside events it writes refs of agents and files of waiting children."""

    def __init__(self, run: Run, settings: Settings, needs: Mapping[str, Needs] | None = None) -> None:
        """Write nothing yet.

        Args:
            run: open to write, or to be replayed.
            settings: of the run.
            needs: operator → its needs, for every operator there is; None: allow any operator, without needs.
        """
        self._run = run
        self._settings = settings
        self._needs = needs
        self._index = AgentIndex(run)
        self._warned: dict[ActionId, str] = {}
        """The fault of each action's invalid answer; each is logged once."""
        self._repaired = False
        self._starts: dict[ActionId, int] = {}
        """Actions under way → numbers of the events that started them."""

    @property
    def tree(self) -> Tree:
        """The run's tree, up to date with ``append``."""
        return self._run.tree

    def append(self, event: Event) -> Recorded:
        """Append an event to the run, and remove what an ended action leaves behind; raise as ``Run.append``."""
        recorded = self._run.append(event)
        if isinstance(event, ActionStarted):
            self._starts[event.id] = recorded.seq
        else:
            self._starts = {
                action: seq for action, seq in self._starts.items() if action in self.tree.pending
            }
            self._run.traces.drop_unnamed(before=min(self._starts.values(), default=recorded.seq))
        match event:
            # Also for a child that did not wait: the process may have died between the diff and the ChildProposed
            # event.
            case (
                AgentBorn(action=action)
                | AgentStillborn(action=action)
                | ActionLost(action=action, final=True)
            ):
                if action and self._settings.gates.approve:
                    self._forget_waiting(action)
            case _:
                pass
        return recorded

    def since(self, seq: int) -> Iterable[Recorded]:
        """Return the events after number ``seq``, model calls included, in order."""
        return self._run.store.read(seq)

    def with_evidence(self, action: ActionId, what: Action, tree: Tree) -> Action:
        """Return the action with all that its operator may see, drawn once so that it can be repeated.

        For an action that was started already, draw only from what was known then. A replay draws the same
        again from the ``tree`` of that moment.

        Raises:
            UserError: the run has no such operator.
        """
        if isinstance(what, Evaluate):
            return what
        needs = Needs() if self._needs is None else self._needs.get(what.operator)
        if needs is None:
            raise UserError(
                f"the policy asks for the operator '{what.operator}', and the run has "
                f"{', '.join(self._needs or ())}; a policy takes its kit's operator"
            )
        return choose_evidence(self._run, tree, action, what, needs, self._settings)

    def birth(self, action: ActionId, outcome: Born) -> AgentBorn | AgentStillborn | ChildProposed:
        """Return the event of a birth, or of the child's wait for a person if the gate ``approve`` is on.

        A twin that another worker made at the same time is stillborn.
        """
        dead = self._find_twin(outcome)
        if dead:
            return AgentStillborn(action, dead)
        if not self._settings.gates.approve:
            return self._run.birth(outcome, action)
        # If the process died in between, an answer may be there already. It is taken if it can only be for this child.
        repository = self._run.repository
        if repository.waiting_refs().get(action) != outcome.commit:
            forget_answer(self._run.folder, action)
            repository.name_waiting(action, outcome.commit)
        self._write_diff(action, outcome)
        return ChildProposed(action, outcome)

    def answered(self, now: float) -> AgentBorn | AgentStillborn | AgentNoted | None:
        """Return a person's first note, or the event of the first child that waits no longer at ``now`` (Unix time)."""
        for path, note in read_notes(self._run.folder):
            # A process that died before it removed the file has recorded the note already.
            if note.agent < len(self.tree.agents) and note not in self._run.store.events(AgentNoted):
                return note
            path.unlink(missing_ok=True)
        self._repair_files()
        for action, waiting in self._run.tree.waiting.items():
            answer, by = self._read_answer(action), PERSON
            limit_s = self._settings.gates.approve_s
            if answer is None and limit_s is not None and now - waiting.since >= limit_s:
                accepts = self._settings.gates.on_timeout == "accept"
                answer, by = ApprovalAnswer(accepts, f"nobody answered within {limit_s:g} s"), TIME_OUT
            if answer is not None:
                return self._end_wait(action, waiting, answer, by)
        return None

    def _end_wait(
        self, action: ActionId, waiting: WaitingChild, answer: ApprovalAnswer, by: str
    ) -> AgentBorn | AgentStillborn:
        child = waiting.child
        if not answer.yes:
            stage = "rejected" if by == PERSON else "expired"
            reason = answer.reason or "the user answered no"
            return AgentStillborn(
                action,
                Stillborn(
                    child.parents, child.operator, stage, reason, child.cost, by, findings=child.findings
                ),
            )
        twin = self._find_twin(child, action)
        if twin:
            return AgentStillborn(action, replace(twin, decided=by))
        return self._run.birth(child, action, by)

    def _find_twin(self, child: Born, itself: ActionId = NO_ACTION) -> Stillborn | None:
        syntax = child.syntax if self._settings.vetting.syntax else ""
        content = self._run.repository.tree_of(child.commit)
        stage, reason = self._index.find_twin(content, syntax, itself)
        if not stage:
            return None
        return Stillborn(child.parents, child.operator, stage, reason, child.cost, findings=child.findings)

    def _read_answer(self, action: ActionId) -> ApprovalAnswer | None:
        try:
            return read_answer(self._run.folder, action)
        except UnreadableApproval as fault:
            if self._warned.get(action) != str(fault):
                self._warned[action] = str(fault)
                log.warning("no answer: %s", fault)
            return None

    def _write_diff(self, action: ActionId, child: Born) -> None:
        parent = self._run.tree.agents[child.parents[0]]
        write_diff(self._run.folder, action, self._run.repository.diff(parent.commit, child.commit))

    def _forget_waiting(self, action: ActionId) -> None:
        """Remove the files that exist only while the child waits; the log holds the result.

        The commit of a child that was not born stays, because an expansion started meanwhile may name it.
        """
        forget_answer(self._run.folder, action)
        kinds = {type(recorded.event) for recorded in self._run.store.events_of_action(action)}
        if ChildProposed not in kinds or AgentBorn in kinds:
            self._run.repository.forget_waiting(action)

    def _repair_files(self) -> None:
        """Remove, once, what a process left that died between an event and the removal of its files.

        Also write the missing diffs of waiting children in an unpacked run.
        """
        if self._repaired:
            return
        self._repaired = True
        tree = self._run.tree
        for action in self._run.repository.waiting_refs():
            # A child that is to be made again will be proposed again, and may have its answer already.
            if not any(action in actions for actions in (tree.waiting, tree.pending, tree.to_redo())):
                self._forget_waiting(action)
        for action, waiting in tree.waiting.items():
            if not is_diff_written(self._run.folder, action):
                self._write_diff(action, waiting.child)
