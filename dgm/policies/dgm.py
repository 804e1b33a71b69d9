"""The Darwin Gödel Machine (arXiv:2505.22954), its stages of evaluation, and its two ablations.

Stages (section 4.2, and the published program, jennyzzt/dgm, ``self_improve_step.py``): 10 tasks, then 50 more where at
least 0.4 of the 10 were resolved. A suite with fewer tasks has shorter stages. The paper's third stage (140 more for
the two best) is left out; the program does not use its threshold. Tasks that were given up count nowhere here, and as
unresolved in the program. The seed is evaluated, and paid for, like its descendants.

Parents (section 4.3, appendix C.2, ``DGM_outer.py``) are drawn with

    p ∝ σ(λ (score - α₀)) / (1 + children),   λ = 10,   α₀ = 0.5

An agent that resolved everything stays eligible, as in the program (the paper leaves it out). The program makes two
children at once, and both join the archive when both are evaluated. Here there is no such barrier: at most two births
are under way, they count as children at once, and an agent can be a parent when its first stage is graded.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import chain, islice
from random import Random

import numpy as np

from dgm.domain import AgentId, Evaluate, TaskId, Verdict
from dgm.policies.limits import BARREN
from dgm.policies.policy import Flags, Floats, Ints, Plan, View, draw_weighted, next_root, pick

FIRST_STAGE = 10
SECOND_STAGE = 50
THRESHOLD = 0.4
"""Share of the first stage that must be resolved for the second."""
BIRTHS_AT_ONCE = 2
"""``selfimprove_size`` of the program; the paper has 2 for SWE-bench and 4 for Polyglot."""


def dgm(view: View, rng: Random) -> Plan:
    """Prefer high scores and few children."""

    def parent() -> AgentId | None:
        agents = np.flatnonzero(_eligible(view))
        weights = sigmoid(10.0 * (view.score[agents] - 0.5)) / (1.0 + view.children[agents])
        return draw_weighted(weights, agents, rng) if view.births < BIRTHS_AT_ONCE else None

    return staged(view, parent)


def no_archive(view: View, rng: Random) -> Plan:  # noqa: ARG001  (nothing is left to chance)
    """Take always the latest agent, one step after the other: "DGM w/o open-ended exploration"."""

    def parent() -> AgentId | None:
        return None if view.births or view.running[-1] else pick(np.flatnonzero(_eligible(view)), -1)

    return staged(view, parent)


def no_self_improvement(view: View, rng: Random) -> Plan:  # noqa: ARG001
    """Let the seed make all children (several roots in turn): "DGM w/o self-improve".

    In the paper the unchanged seed edits a parent that is drawn as in ``dgm``. Here the edited agent is also the
    editor, so the seed is the parent of all.
    """
    return staged(view, lambda: next_root(view, _eligible(view)) if view.births < BIRTHS_AT_ONCE else None)


def _eligible(view: View) -> Flags:
    """Return which agents can be parents.

    They are fertile, and have a graded first stage, or any result and no evaluation under way. A root needs no result
    where none is to come: an archive must be able to grow.
    """
    has_result = view.graded > 0
    has_result[view.tree.roots] |= view.tried[view.tree.roots] > 0
    is_over = (view.graded >= min(FIRST_STAGE, len(view.tasks))) | (view.running == 0)
    return np.asarray(view.can_have_child & has_result & is_over)


def staged(view: View, parent: Callable[[], AgentId | None]) -> Plan:
    """Evaluate by stages, the oldest agent first, all on the same tasks in the same order; expand when none is owed."""
    owed = _owed(view)
    return Plan(
        expand=not len(owed) and _may_grow(view),
        parent=parent,
        agent=lambda: pick(owed, 0) if len(owed) else choose_leftover(view),
        task=lambda agent: next(
            task for task in _fixed_order(view.tasks) if task not in view.tree.tried(agent)
        ),
    )


def choose_leftover(view: View) -> AgentId | None:
    """Return the agent that may try a task that no stage asks for; None where there is none.

    Once the archive cannot grow it is the agent with the best score and an untried task (the program ends there). It is
    nobody while a child is on its way to the last place.
    """
    return None if _may_grow(view) or (view.births and not view.may_expand) else view.best_open()


def _may_grow(view: View) -> bool:
    """Return whether the archive may grow and its failed births do not exceed its evaluations plus ``BARREN``.

    The published program ends after a number of generations. Here a search whose births nearly all fail would spend on
    little else.
    """
    return view.may_expand and view.stillborn <= BARREN + view.evaluations


def _owed(view: View) -> Ints:
    """Return the ids of the agents whose stage has a task that was not started yet; ascending.

    The second stage is owed once every task of the first is graded or given up, if enough of the first were resolved.
    From then on it is owed to its end, whatever its results.
    """
    tried = view.tried
    first = min(FIRST_STAGE, len(view.tasks))
    both = min(FIRST_STAGE + SECOND_STAGE, len(view.tasks))
    promoted = (tried == first) & (view.running == 0) & (view.graded > 0) & (view.score >= THRESHOLD)
    begun = np.flatnonzero((tried > first) & (tried < both))
    promoted[begun] = _passed(view, [AgentId(agent) for agent in begun.tolist()])
    return np.flatnonzero((tried < first) | promoted & (tried < both))


def _passed(view: View, agents: Sequence[AgentId]) -> list[bool]:
    """Return for each agent whether its first stage is over and it resolved enough of it, whatever it tried since."""
    actions = chain(view.tree.pending.values(), view.tree.to_redo().values())
    running = {(action.agent, action.task) for action in actions if isinstance(action, Evaluate)}
    passed = []
    for agent in agents:
        stage = list(islice(view.tree.verdicts(agent).items(), FIRST_STAGE))
        known = [verdict for _, verdict in stage if verdict is not None]
        is_over = len(known) > 0 and not any((agent, task) in running for task, _ in stage)
        passed.append(is_over and known.count(Verdict.RESOLVED) >= THRESHOLD * len(known))
    return passed


@lru_cache(maxsize=16)
def _fixed_order(tasks: tuple[TaskId, ...]) -> tuple[TaskId, ...]:
    """Return the tasks in an order that is the same in every run (the program has two lists, drawn once)."""
    return tuple(sorted(tasks, key=lambda task: sha256(task.encode()).digest()))


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)
