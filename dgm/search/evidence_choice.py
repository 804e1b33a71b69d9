"""Choice of the evidence for an operator, made once when an expansion is first started, so that it can be repeated.

The choice is a function of the log up to that moment and of a random stream of its own. ``meta.evidence``
decides how evidence looks.
"""

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from random import Random

from msgspec.structs import replace

from dgm.archive.history import evaluations_of
from dgm.archive.run import Run
from dgm.archive.traces import name_of
from dgm.archive.tree import Tree
from dgm.config import EvidenceSettings, Settings
from dgm.domain import NO_ACTION, ActionId, AgentId, Evaluation, Expand, TaskId, Verdict
from dgm.meta.entries import CONTEXT, EMPTY, EMPTY_SHARE, ENTRIES, SHARE, STOCHASTIC, UNRESOLVED
from dgm.protocols import Needs
from dgm.stats.rates import wilson

POOL = 256
"""Maximum number of agents considered: those with the most resolved verdicts."""
EACH = 3
"""Cases of each agent that is shown beside the first parent."""
TELLING = 2
"""Maximum number of those that are tasks which the agent resolved and the first parent did not."""
COMMON = 5
"""Minimum number of shared tasks for comparing two agents, as in ``policies.novelty``."""
EPSILON = 1e-8

_NOTHING = name_of(b"")

Own = Mapping[ActionId, Evaluation]
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
    past = {parent: evaluations_of(run, parent, before=action) for parent in what.parents}
    own = past[what.parents[0]]
    chosen = {
        *_sample_evaluations(own, Verdict.UNRESOLVED, settings.evidence.failures, rng),
        *_sample_evaluations(own, Verdict.RESOLVED, settings.evidence.successes, rng),
    }
    what = replace(what, shown=_choose_shown(tree, what.parents, needs, settings.evidence))
    failed = _find_failed_tasks(tree, what.parents[0])
    first = {own[number].task for number in chosen} & failed
    for agent in (*what.parents[1:], *what.shown):
        theirs = past[agent] if agent in past else evaluations_of(run, agent, before=action)
        chosen.update(_sample_further(theirs, (first, failed), rng))
    if not what.aim and set(needs.aims) <= set(ENTRIES):
        what = _choose_aim(run, what, own, needs.aims, rng)
    if what.case:
        chosen.add(what.case)
    probes = _choose_probes(list(past.values()), settings.vetting.probes, rng)
    return replace(what, evidence=tuple(sorted(chosen)), probes=probes)


def _sample_evaluations(mine: Own, verdict: Verdict, most: int, rng: Random) -> list[ActionId]:
    fitting = [action for action, evaluation in mine.items() if evaluation.verdict is verdict]
    return rng.sample(fitting, min(most, len(fitting)))


def _choose_shown(
    tree: Tree, parents: tuple[AgentId, ...], needs: Needs, settings: EvidenceSettings
) -> tuple[AgentId, ...]:
    """Return the nearest ancestors, the nearest first, then others."""
    line = {ancestor for parent in parents for ancestor in tree.ancestors(parent)} - {*parents}
    nearest = heapq.nlargest(settings.ancestors, line)
    known = {*parents, *nearest}
    pool = [agent for agent in _choose_pool(tree) if agent not in known]
    most = max(settings.others, needs.relatives, needs.archive)
    if needs.archive:
        others = _choose_diverse(tree, parents[0], pool, most)
    elif needs.relatives:
        others = _rank_agents(tree, pool, most, _find_failed_tasks(tree, parents[0]))
    else:
        others = _rank_agents(tree, pool, most)
    return (*nearest, *others)


def _choose_pool(tree: Tree) -> list[AgentId]:
    """Return the evaluated agents with the most resolved verdicts, the older one first among equals."""
    tried = (agent.id for agent in tree.agents if tree.own(agent.id).n)
    return heapq.nsmallest(POOL, tried, key=lambda agent: (-tree.own_resolved[agent], agent))


def _rank_agents(
    tree: Tree, pool: Iterable[AgentId], most: int, wanted: Collection[TaskId] = ()
) -> list[AgentId]:
    """Return the agents that resolved most of the wanted tasks; ties go by the lower end of their rate's interval."""

    def rank(agent: AgentId) -> tuple[int, float, int]:
        solved = sum(tree.verdict(agent, task) is Verdict.RESOLVED for task in wanted)
        return -solved, -wilson(tree.own(agent))[0], agent

    return heapq.nsmallest(most, pool, key=rank)


def _choose_diverse(tree: Tree, parent: AgentId, pool: Sequence[AgentId], most: int) -> list[AgentId]:
    """Return half the best agents, then repeatedly the agent farthest from its nearest chosen one."""
    chosen = _rank_agents(tree, pool, math.ceil(most / 2))
    left = [agent for agent in _rank_agents(tree, pool, len(pool)) if agent not in chosen]
    nearest = {agent: _cosine_distance(tree, agent, parent) for agent in left}
    for one in chosen:
        nearest = {agent: min(far, _cosine_distance(tree, agent, one)) for agent, far in nearest.items()}
    while len(chosen) < most and nearest:
        # Among equally far agents take the better: the first in this order.
        one = max(nearest, key=nearest.__getitem__)
        chosen.append(one)
        del nearest[one]
        nearest = {agent: min(far, _cosine_distance(tree, agent, one)) for agent, far in nearest.items()}
    return chosen


def _cosine_distance(tree: Tree, one: AgentId, other: AgentId) -> float:
    """Return 1 - the cosine of two agents' resolved tasks, over their common tasks; 1 with too few of them.

    A task is common if both have a verdict on it. Source: arXiv:2602.04837, section 3, as in
    ``policies.novelty``.
    """
    first, second = tree.verdicts(one), tree.verdicts(other)
    common = [task for task, verdict in first.items() if verdict and second.get(task)]
    if len(common) < min(COMMON, len(tree.tasks)):
        return 1.0
    solved = {task for task in common if first[task] is Verdict.RESOLVED}
    theirs = {task for task in common if second[task] is Verdict.RESOLVED}
    return 1 - len(solved & theirs) / (math.sqrt(len(solved) * len(theirs)) + EPSILON)


def _find_failed_tasks(tree: Tree, agent: AgentId) -> set[TaskId]:
    return {task for task, verdict in tree.verdicts(agent).items() if verdict is Verdict.UNRESOLVED}


def _sample_further(theirs: Own, wanted: Sequence[set[TaskId]], rng: Random) -> list[ActionId]:
    """Return cases of another agent: resolved ones of the first telling set of tasks, then any.

    A set of tasks is telling if the agent resolved one of its tasks.
    """
    for tasks in wanted:
        telling = [
            number
            for number, each in theirs.items()
            if each.verdict is Verdict.RESOLVED and each.task in tasks
        ]
        if telling:
            break
    found = rng.sample(telling, min(TELLING, len(telling)))
    rest = [number for number in theirs if number not in found]
    return [*found, *rng.sample(rest, min(EACH - len(found), len(rest)))]


def _choose_aim(run: Run, what: Expand, own: Own, aims: Sequence[str], rng: Random) -> Expand:
    """Return the expansion with one kind of entry and its evaluation; unchanged if nothing has failed.

    Source: ``choose_selfimproves`` of the program of arXiv:2505.22954.
    """
    failed = {number: each for number, each in own.items() if each.verdict is Verdict.UNRESOLVED}
    if not aims or not failed:
        return what
    empty = [number for number, each in failed.items() if each.cost.traces.get("patch", _NOTHING) == _NOTHING]
    if empty and len(empty) >= EMPTY_SHARE * len(own) and rng.random() < SHARE:
        return replace(what, aim=EMPTY, case=rng.choice(empty))
    if rng.random() < SHARE:
        return replace(what, aim=STOCHASTIC, case=NO_ACTION)
    full = [number for number, each in failed.items() if _exceeded_context(run, each)]
    if full and rng.random() < SHARE:
        return replace(what, aim=CONTEXT, case=rng.choice(full))
    wrong = [number for number in failed if number not in empty]
    return replace(what, aim=UNRESOLVED, case=rng.choice(wrong or empty))


def _exceeded_context(run: Run, evaluation: Evaluation) -> bool:
    signs = evaluation.cost.traces.get("circumstances")
    if signs is None:
        return False
    with run.traces.reading(signs) as recorded:
        return bool(recorded.get("context"))


def _choose_probes(past: Sequence[Own], most: int, rng: Random) -> tuple[TaskId, ...]:
    """Return tasks that every parent resolved at each of its tries."""
    always = [
        {each.task for each in own.values()}
        - {each.task for each in own.values() if each.verdict is not Verdict.RESOLVED}
        for own in past
    ]
    common = sorted(set.intersection(*always)) if most else []
    return tuple(rng.sample(common, min(most, len(common))))
