"""Parent rules of other published systems, each with the schedule of its program. Numbers without a name are theirs.

In all of them a child of two parents belongs to the first, work in flight is spread or ignored as said, and expansions
in flight change nothing where a rule draws nothing at random.
"""

import math
from collections.abc import Callable, Sequence
from itertools import islice
from random import Random

import numpy as np

from dgm.archive.tree import Tree
from dgm.domain import AgentId, TaskId, Verdict
from dgm.policies.dgm import FIRST_STAGE, choose_leftover, sigmoid, staged
from dgm.policies.policy import Flags, Floats, Ints, Plan, View, draw_weighted, pick


def every_task(view: View, parent: Callable[[], AgentId | None]) -> Plan:
    """Evaluate every agent on every task, the oldest first; expand when that is done or under way."""
    return Plan(False, parent, lambda: pick(view.open, 0))


def judged(view: View) -> Flags:
    """Return which agents have a meaningful score: a whole first stage, or any verdict and no evaluation in flight.

    So a lucky first verdict does not make a parent while the rest of a stage still runs.
    """
    is_over = (view.graded >= min(FIRST_STAGE, len(view.tasks))) | (view.running == 0)
    return np.asarray((view.graded > 0) & is_over)


def candidates(view: View) -> Ints:
    """Return the ids of the fertile agents that were judged, ascending.

    Where nobody was judged it is the roots, so that an archive can always grow. While their evaluations run it is
    nobody.
    """
    agents = judged(view)
    if not agents.any():
        agents[view.tree.roots] = view.running[view.tree.roots] == 0
    return np.flatnonzero(agents & view.can_have_child)


def greedy(view: View, rng: Random) -> Plan:  # noqa: ARG001  (nothing is left to chance)
    """Take the best mean; among equals more evaluations, then the older: the control for any spreading over parents.

    Source: the method "best" of the program of Hyperagents (arXiv:2603.19461), ``select_parent`` in
    ``utils/gl_utils.py``, where age alone decides between equals.
    """

    def parent() -> AgentId | None:
        agents = candidates(view)
        return pick(agents[np.lexsort((-agents, view.graded[agents], view.score[agents]))], -1)

    return staged(view, parent)


def adas(view: View, rng: Random) -> Plan:  # noqa: ARG001
    """Continue one line: the newest evaluated agent is the parent (ADAS, Meta Agent Search, arXiv:2408.08435).

    There a model sees all of the archive and writes the next agent, which is evaluated on all tasks. Only an operator
    that shows the archive to the model makes the search ADAS; with another one it is an ablation.
    """
    return every_task(view, lambda: pick(candidates(view), -1))


def sica(view: View, rng: Random) -> Plan:  # noqa: ARG001
    """Take the newest agent about as good as the best (SICA, arXiv:2504.15228, and its program's runner).

    Its mean is at least the lower end of the 95 % interval of the best agent's mean:

        bound = mean - 1.96 * s / sqrt(n) = mean - 1.96 * sqrt(mean * (1 - mean) / (n - 1))

    with the sample standard deviation s of n outcomes. The oldest of equals counts as the best. Departures: no shares
    for cost and time in a score; the bound of a single outcome, undefined in SICA, is the outcome itself.
    """

    def parent() -> AgentId | None:
        agents = candidates(view)
        if not len(agents):
            return None
        rates = view.score[agents]
        best = int(np.argmax(rates))
        mean, n = float(rates[best]), int(view.graded[agents[best]])
        bound = mean - 1.96 * math.sqrt(mean * (1 - mean) / (n - 1)) if n > 1 else mean
        return pick(agents[rates >= bound], -1)

    return every_task(view, parent)


def weighted(view: View, rng: Random) -> Plan:
    """Weigh scores against the archive's median, in units of its spread (ShinkaEvolve, arXiv:2509.19349, section 3).

        p ∝ σ(10 * (score - median) / MAD) / (1 + children)

    MAD is the median absolute deviation from the median, at least 1e-6. Stillborn children count, like failed programs
    in ``WeightedSamplingStrategy``; children being made count too. Departures: one population instead of islands, and
    nobody is forgotten.
    """

    def parent() -> AgentId | None:
        agents = candidates(view)
        if not len(agents):
            return None
        deviations = view.score[agents] - np.median(view.score[agents])
        scale = max(float(np.median(np.abs(deviations))), 1e-6)
        return draw_weighted(sigmoid(10.0 * deviations / scale) / (1 + _offspring(view)[agents]), agents, rng)

    return every_task(view, parent)


def hyperagents(view: View, rng: Random) -> Plan:
    """Prefer few children and scores above the top's (Hyperagents, arXiv:2603.19461, ``select_parent``).

        p ∝ σ(10 * (score - mean of the 3 highest)) * exp(-(children / 8) ** 3)

    Stillborn children count, and children being made. Departures: the program shrinks the score of an agent that
    stopped at its first stage, and passes over an agent whose own editing failed once.
    """

    def parent() -> AgentId | None:
        agents = candidates(view)
        rates = view.score[agents]
        midpoint = np.sort(rates)[-3:].sum() / max(min(3, len(rates)), 1)
        crowding = (_offspring(view)[agents] / 8.0) ** 3
        return draw_weighted(sigmoid(10.0 * (rates - midpoint)) * np.exp(-crowding), agents, rng)

    return staged(view, parent)


def _offspring(view: View) -> Ints:
    return view.children + view.stillborn_of


EXPANSIONS = 3
"""Children before the walk of ``uct`` goes on below an agent."""
UNIT = 10**9
"""Rewards are summed in whole billionths, so that no order of summing changes a decision."""


def uct(view: View, rng: Random) -> Plan:  # noqa: ARG001
    """Walk from the roots down by upper confidence bounds (SWE-Search, arXiv:2410.20285, on agents instead of edits).

    Each step goes to the child with the highest value / n + √2 * sqrt(ln N / n), the older of equals. Every agent is
    one visit of itself and of all its ancestors; its reward is its score. n counts the visits of a child's clade, value
    sums their rewards, N is the n of the parent. The walk stops at the first fertile agent with fewer than 3 children,
    born or being made, or where no child has been judged yet. It skips clades without a fertile agent.

    Virtual loss: an agent that is being made or was not judged is already a visit with reward 0, so that workers
    spread; a stillborn child stays one. Departures: the program picks among all nodes at once, uses a node's own
    reward, and adds bonuses that concern edits.
    """
    return staged(view, lambda: _walk(view) if len(candidates(view)) else None)


def _walk(view: View) -> AgentId | None:
    tree, able = view.tree, view.can_have_child
    visits, values, children = _sum_clades(view)
    walkable, leads = judged(view), able.copy()
    for agent in reversed(tree.agents):  # a child's id is above its parent's
        leads[agent.id] &= walkable[agent.id]
        if agent.parents and leads[agent.id]:
            leads[agent.parents[0]] = True

    def best(below: Sequence[AgentId], above: int) -> AgentId:
        return max(below, key=lambda child: (upper_bound(values[child], visits[child], above), -child))

    roots = [root for root in tree.roots if leads[root]] or tree.roots
    node = best(roots, sum(visits[root] for root in tree.roots)) if len(roots) > 1 else roots[0]
    while children[node] >= EXPANSIONS or not able[node]:
        below = [
            child for child in tree.children(node) if tree.agents[child].parents[0] == node and leads[child]
        ]
        if not below:
            break
        node = best(below, visits[node])
    return node if able[node] else None


def upper_bound(value: int, visits: int, visits_above: int) -> float:
    """Return the upper confidence bound of a child whose clade's rewards sum to ``value`` billionths."""
    return value / UNIT / visits + math.sqrt(2) * math.sqrt(math.log(visits_above) / visits)


def _sum_clades(view: View) -> tuple[list[int], list[int], list[int]]:
    """Return per agent the visits of its clade, their summed rewards in billionths, and its number of children."""
    visits: list[int] = (1 + view.stillborn_of).tolist()
    children = [0] * len(visits)
    rewards = view.solved * UNIT // np.maximum(view.graded, 1)
    values: list[int] = np.where(judged(view), rewards, 0).tolist()
    for parents in view.parents_of_unborn:
        visits[parents[0]] += 1
        children[parents[0]] += 1
    for agent in reversed(view.tree.agents):
        if not agent.parents:
            continue
        parent = agent.parents[0]
        visits[parent] += visits[agent.id]
        values[parent] += values[agent.id]
        children[parent] += 1
    return visits, values, children


GROUP, NEIGHBOURS = 2, 4
"""K and M of ``novelty``."""
COMMON = 5
"""Tasks that two agents must share to be compared."""


def novelty(view: View, rng: Random) -> Plan:
    """Weigh performance and novelty of outcomes (Group-Evolving Agents, arXiv:2602.04837, section 3).

        worth_i = score_i * sqrt(novelty_i),    novelty_i = mean distance to the 4 nearest (``outcome_distances``)

    The 2 agents of highest worth are the parents of a round, with one child each; here each expansion draws one of the
    two that has fewer children being made. Departures: an agent that compares with nobody has the highest novelty, 1.
    Where nobody solves anything, the oldest two are the group. Sharing experience is the operator's part.
    """

    def parent() -> AgentId | None:
        members = rank_by_worth(view)[:GROUP]
        if not members:
            return None
        making = [parent for parents in view.parents_of_unborn for parent in parents]
        fewest = min(map(making.count, members))
        free = [member for member in members if making.count(member) == fewest]
        return free[int(rng.random() * len(free))]

    return staged(view, parent)


def rank_by_worth(view: View) -> list[AgentId]:
    """Return the candidates by their worth in ``novelty``, best first; among equals the older."""
    agents = candidates(view)
    worth = view.score[agents] * np.sqrt(novelties(view.tree, [AgentId(agent) for agent in agents.tolist()]))
    return [AgentId(int(agents[row])) for row in np.lexsort((agents, -worth))]


def novelties(tree: Tree, agents: Sequence[AgentId]) -> Floats:
    """Return the novelty of each agent among these, from 0.0 (the nearest have the same outcomes) to 1.0."""
    nearest = np.sort(outcome_distances(tree, agents), axis=1)[:, :NEIGHBOURS]
    comparable = np.isfinite(nearest)
    total = np.where(comparable, nearest, 0.0).sum(axis=1)
    count = comparable.sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), 1.0)


def outcome_distances(tree: Tree, agents: Sequence[AgentId]) -> Floats:
    """Return the distances between agents in the space of task outcomes, shape (agents, agents).

        d(i, j) = 1 - z_i · z_j / (|z_i| * |z_j| + 1e-8)

    over the tasks on which both have a verdict; z is 1 for a solved task (arXiv:2602.04837, where vectors cover a fixed
    list of tasks). It is infinite for fewer than ``COMMON`` such tasks (or than all, in a smaller suite) and for an
    agent itself.
    """
    solved, known = outcomes(tree, agents)
    by_other = _multiply(solved, known)  # tasks that i solved of those that j tried
    apart = 1.0 - _multiply(solved, solved) / (np.sqrt(by_other * by_other.T) + 1e-8)
    apart[_multiply(known, known) < min(COMMON, len(tree.tasks))] = np.inf
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart)


def _multiply(left: Floats, right: Floats) -> Floats:
    """Return ``left @ right.T`` without BLAS, whose threads are slower by far where all processors are busy."""
    return np.asarray(np.einsum("it,jt->ij", left, right))


def outcomes(tree: Tree, agents: Sequence[AgentId]) -> tuple[Floats, Floats]:
    """Return which tasks each agent solved, and on which it has a verdict; entries 0 and 1, shapes (agents, tasks)."""
    column = {task: number for number, task in enumerate(tree.tasks)}
    solved, known = np.zeros((2, len(agents), len(column)))
    for row, agent in enumerate(agents):
        verdicts = tree.verdicts(agent).items()
        known[row, [column[task] for task, verdict in verdicts if verdict is not None]] = 1.0
        solved[row, [column[task] for task, verdict in verdicts if verdict is Verdict.RESOLVED]] = 1.0
    return solved, known


BATCH = 3
"""Tasks on which a child must beat its parent in ``pareto``."""


def pareto(view: View, rng: Random) -> Plan:
    """Draw parents by fronts per task (GEPA, arXiv:2507.19457, algorithms 1 and 2, and its program).

    Parent: each task has a front, the candidates with the best result on it (those that solved it or, where nobody did,
    tried it). Candidates whose every front has other members are dropped one by one, from the worst up. One of the rest
    is drawn, in proportion to its number of fronts.

    Schedule: the roots are evaluated on all tasks. A child tries a batch of 3 tasks that its parent has tried. If it
    solves more of them than the parent did, it is a candidate and is evaluated on the rest. The program skips a batch
    that the parent solves completely; so the last task of a batch is one that the parent failed, if it solved the
    others.

    Departures: batches come from the tasks of the fronts. The worst candidate solved the fewest tasks (GEPA: lowest
    mean), and is the newer of equals. A candidate must also be judged. A task given up in a batch makes room for
    another. Once the archive cannot grow, agents that failed their batch are evaluated on the rest.
    """

    def agent() -> AgentId | None:
        begun = view.graded + view.running
        for number in map(AgentId, view.open.tolist()):
            if begun[number] < BATCH or passed_batch(view, number):
                return number
        return choose_leftover(view)

    def task(agent: AgentId) -> TaskId:
        untried = view.untried(agent)
        choice = _comparable_tasks(view, agent, untried) or untried
        return choice[int(rng.random() * len(choice))]

    def parent() -> AgentId | None:
        agents, fronts = front_members(view)
        return draw_weighted(fronts, agents, rng)

    return Plan(False, parent, agent, task)


def passed_batch(view: View, agent: AgentId) -> bool:
    """Return whether an agent is a root, or solved more of its batch than its parent, where both have verdicts."""
    parents = view.tree.agents[agent].parents
    if not parents:
        return True
    verdicts, of_parent = view.tree.verdicts(agent), view.tree.verdicts(parents[0])
    batch = list(islice((task for task in verdicts if verdicts[task] is not None), BATCH))
    both = [task for task in batch if of_parent.get(task) is not None]
    solved = sum(verdicts[task] is Verdict.RESOLVED for task in both)
    solved_by_parent = sum(of_parent[task] is Verdict.RESOLVED for task in both)
    return len(batch) == min(BATCH, len(view.tasks)) and solved > solved_by_parent


def front_members(view: View) -> tuple[Ints, Floats]:
    """Return the candidates that remain on the fronts, and their numbers of fronts; roots without a verdict count."""
    agents = np.array(
        [agent for agent in candidates(view).tolist() if passed_batch(view, agent)], dtype=np.int64
    )
    solved, known = outcomes(view.tree, agents.tolist())
    fronts = np.where(solved.any(axis=0), solved, known)
    remaining = undominated(fronts, np.argsort(-solved.sum(axis=1), kind="stable")[::-1])
    if len(agents) and not len(remaining):
        return agents, np.ones(len(agents))
    return agents[remaining], fronts[remaining].sum(axis=1)


def undominated(fronts: Floats, order: Ints) -> Ints:
    """Return the rows that remain when rows that share every front are dropped in the given order, ascending.

    One pass is enough: a row that is alone on a front stays alone when others go. Shapes: ``fronts`` (candidates,
    tasks), ``order`` (candidates,).
    """
    members = fronts.sum(axis=0)
    remaining = []
    for row in order.tolist():
        if (fronts[row].astype(bool) & (members == 1)).any():
            remaining.append(row)
        else:
            members = members - fronts[row]
    return np.array(sorted(remaining), dtype=np.int64)


def _comparable_tasks(view: View, agent: AgentId, untried: list[TaskId]) -> list[TaskId]:
    """Return the untried tasks that suit a batch; none where there is no batch, or nothing to compare with."""
    parents = view.tree.agents[agent].parents
    if not parents or view.tried[agent] >= BATCH:
        return []
    other = view.tree.verdicts(parents[0])
    if view.tried[agent] == BATCH - 1 and Verdict.UNRESOLVED not in map(other.get, view.tree.tried(agent)):
        failed = [task for task in untried if other.get(task) is Verdict.UNRESOLVED]
        if failed:
            return failed
    return [task for task in untried if other.get(task) is not None]
