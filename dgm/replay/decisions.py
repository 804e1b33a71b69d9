"""Replay of decisions: ask the policy every question of a run again, in one pass over the log."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from dgm import assemble
from dgm.analysis.budgets import Reason, has_evaluation_room
from dgm.archive.events import ActionStarted, Recorded, RunStopped, TasksChanged
from dgm.archive.run import Run, RunKind
from dgm.archive.tree import PROMOTION_EVENTS, Tree
from dgm.config import CurriculumSettings, Settings
from dgm.domain import Action, ActionId, Evaluate
from dgm.errors import Hint, UserError
from dgm.evaluation.control import HoldoutSchedule
from dgm.evaluation.schedule import Schedule, find_entered, first_attempts
from dgm.policies.curriculum import choose_tasks
from dgm.policies.registry import open_policy
from dgm.protocols import Needs, Policy
from dgm.search.loop import decision_stream
from dgm.search.prepare import RunController
from dgm.search.start import settings_of


@dataclass(frozen=True, slots=True)
class Decision:
    """One question that now has another answer."""

    seq: int
    """Number of the event that the question led to."""
    action: ActionId
    did: Action | TasksChanged | None
    """The run's action, or its change of the tasks; None if the run ended because nothing was left to do."""
    says: Action | TasksChanged | None
    """The answer now; None if the policy would wait or end."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """All questions of a run, asked again."""

    asked: int
    differing: int
    first: Decision | None
    """The first question that now has another answer."""
    seconds: float


def decide_again(run: Run) -> Decisions:
    """Ask the run's own policy every question again, on the tree of that moment; use no sandbox and no model.

    Args:
        run: open to read; may still be written by another process.

    Raises:
        UserError: the run's policy is a plug-in that is not installed, or the run has no policy.
        ArchiveCorrupt: an event cannot be read, or cannot follow what came before.
    """
    settings = settings_of(run)
    assemble.warn_changed_objects(run)
    needs = assemble.needs_of(settings)
    return replay_decisions(run, _open_policy(run, settings, needs), settings, needs)


def _open_policy(run: Run, settings: Settings, needs: Mapping[str, Needs]) -> Policy:
    match run.kind:
        case RunKind.EVALUATION:
            raise UserError(
                f"{run.name}: an evaluation: no policy decided anything",
                hint=Hint(
                    "to grade its patches again", "replay", (str(run.folder),), {"what": "evaluations"}
                ),
            )
        case RunKind.REPLAY if run.plan["what"] == "lineage":
            raise UserError(
                f"{run.name}: holds a lineage that another model made again; replay the run that it is of"
            )
        case RunKind.REPLAY:
            ids = {agent: find_entered(run, commit) for agent, commit in run.plan["commits"].items()}
            pairs = [(ids[str(agent)], task) for agent, task in run.plan["pairs"]]
            return Schedule(lambda _: [Evaluate(agent, task) for agent, task in pairs if agent is not None])
        case RunKind.HOLDOUT:
            return HoldoutSchedule()
        case RunKind.PROMOTION:
            return Schedule(first_attempts)
        case _:
            return open_policy(settings, needs)


def replay_decisions(
    run: Run, policy: Policy, settings: Settings, needs: Mapping[str, Needs] | None = None
) -> Decisions:
    """Ask ``policy`` again what to do, once for each fresh start and for an end with nothing left to do.

    Each change of a curriculum's tasks is a question, too.

    A repeated action was the loop's choice, so it is no question. A policy that said to wait left no event.
    Later questions are asked on the tree of the log, whatever the earlier answers.

    Args:
        run: open to read.
        policy: a fresh one.
        settings: of the run.
        needs: of its operators, by name: evidence is chosen again, too.

    Raises:
        ArchiveCorrupt: an event cannot be read, or cannot follow what came before.
    """
    began = time.monotonic()
    tree, controller = Tree(), RunController(run, settings, needs)
    rule = settings.curriculum if run.kind in (RunKind.SEARCH, RunKind.SIMULATION) else CurriculumSettings()
    asked = differing = 0
    first: Decision | None = None
    for recorded in run.store.read():
        question = _recorded_question(tree, recorded)
        if question is not None:
            action, did = question
            says: Action | TasksChanged | None = None
            # As in ``Search``: nothing is asked if the budget has no room for one more evaluation.
            if has_evaluation_room(tree) and (says := choose_tasks(tree, rule, settings.seed)) is None:
                says = policy.next(tree, decision_stream(settings.seed, action))
                if says is not None:
                    says = controller.with_evidence(action, says, tree)
            asked += 1
            if says != did:
                differing += 1
                first = first or Decision(recorded.seq, action, did, says)
        tree.apply(recorded)
        if policy.keeps_state and not isinstance(recorded.event, PROMOTION_EVENTS):
            policy.observe(recorded)
    return Decisions(asked, differing, first, time.monotonic() - began)


def _recorded_question(
    tree: Tree, recorded: Recorded
) -> tuple[ActionId, Action | TasksChanged | None] | None:
    match recorded.event:
        case TasksChanged() as change:
            return tree.next_action, change
        case ActionStarted(action, what, again=False):
            return action, what
        case RunStopped(reason) if reason == Reason.NOTHING_LEFT.value:
            return tree.next_action, None
        case _:
            return None
