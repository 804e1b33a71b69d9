"""Ablation of an agent (``dgm agent ablate``): an evaluation of the whole agent and of the agent without each part.

Before anything is paid, every one of them is started with a scripted model. That tells the tokens that each part adds
to a turn, and the parts without which the agent cannot start.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from dgm import assemble
from dgm.api.evaluating import (
    Contestant,
    EvaluationChoice,
    EvaluationRequest,
    make_plan,
    make_request,
    prepare,
    read_contestant,
)
from dgm.api.evaluation_session import EvaluationSession, select_tasks
from dgm.api.watcher import Watcher
from dgm.archive.durable import write_durably
from dgm.archive.repository import tree_id
from dgm.archive.run import Run
from dgm.domain import Snapshot, Task
from dgm.errors import UserError
from dgm.evaluation.ablation import Effect, PartEffect, judge_parts
from dgm.evaluation.evaluating import EvaluationProgress
from dgm.meta.contract import read_contract
from dgm.meta.removable_parts import remove_each_part
from dgm.models.pricing import Price
from dgm.search.costs import max_evaluation_usd, solver_price
from dgm.sessions.imported_agent import accept_settings
from dgm.views.evaluation import EvaluationView
from dgm.worker.rehearsal import rehearse

TURNS = "ablation.json"
"""File of the evaluation's folder: an agent's tree → the tokens of its first turn; null: it cannot start."""
COMPLETE = ""
"""Stands for the whole agent among the parts left out."""


@dataclass(frozen=True, slots=True)
class AblationPlan:
    """An ablation whose agents have all been started, with its price; nothing is paid yet."""

    request: EvaluationRequest
    parts: Sequence[str]
    """Parts whose agents follow the whole agent among the request's contestants."""
    turns: Mapping[str, int | None]
    """Estimated tokens of a first turn without each part, ``COMPLETE`` among them; None: it cannot start."""
    known_turns: Mapping[str, int | None]
    """The same by tree, those of earlier sessions included."""
    folder: Path
    tasks: int
    evaluations: int
    missing: int
    """Number of evaluations that earlier sessions did not perform."""
    price: Price | None
    """Price of the model; None if it costs nothing."""
    usd_limit: float | None
    """Limit on the cost over all sessions; None: none was chosen."""

    @property
    def usd_each(self) -> float:
        """The greatest cost of one evaluation, by the limits; 0 if the model costs nothing."""
        return max_evaluation_usd(self.request.settings, self.price) if self.price else 0.0

    @property
    def needs_consent(self) -> bool:
        """Whether it would spend money without a limit."""
        return bool(self.missing and self.price and self.usd_limit is None)


@dataclass(frozen=True, slots=True)
class Ablation:
    """The results of an ablation so far."""

    report: EvaluationView
    effects: Sequence[PartEffect]

    def record(self) -> dict[str, Any]:
        """Return the document that ``dgm agent ablate --json`` prints."""
        return {**self.report.model_dump(mode="json"), "parts": [asdict(each) for each in self.effects]}


async def plan_ablation(
    agent: str,
    only: Sequence[str],
    chosen: EvaluationChoice,
    watcher: Watcher,
    begins: Callable[[str], None] = lambda _: None,
) -> AblationPlan:
    """Find the parts of an agent, start it without each, and say what the evaluation would cost.

    Args:
        agent: a folder or a shipped agent.
        only: patterns of the parts to leave out, such as ``CLAUDE.md#*``; empty: all parts.
        chosen: the tasks and conditions.
        watcher: is asked about a model that costs money.
        begins: hears of each start.

    Raises:
        UserError: there is no such agent, part or task, or the agent cannot start.
        Infrastructure: a sandbox failed.
    """
    complete = read_contestant(agent)
    request = make_request(None, [complete], chosen, watcher)
    request = replace(request, prefix=f"ablate-{complete.key[:8]}", named_model=True)
    without = choose_parts(agent, complete.source(), only)
    parts = assemble.parts_of(request.settings)
    folder = request.folder(parts.benchmark.name)
    tasks = select_tasks(parts.benchmark, chosen.split, chosen.tasks)
    turns, known = dict[str, int | None](), _read_turns(folder)
    trees = {part: tree_id(source) for part, source in {COMPLETE: complete.source(), **without}.items()}
    for part, tree in trees.items():
        if tree not in known:
            begins(part)
            source = without.get(part) or complete.source()
            try:
                known[tree] = (await rehearse(agent, source, parts.engine, request.settings)).turn_tokens
            except UserError:
                if part == COMPLETE:
                    raise
                known[tree] = None
        turns[part] = known[tree]
    kept = [part for part in without if turns[part] is not None]
    variants = [
        Contestant(f"without {part}", trees[part], partial(without.__getitem__, part), vetted=True)
        for part in kept
    ]
    if not kept:
        raise UserError(f"{agent}: it does not start without any one of its parts: nothing to compare")
    request = replace(request, contestants=[replace(complete, vetted=True), *variants])
    solver = solver_price(request.settings)
    evaluations = len(request.contestants) * len(tasks) * chosen.attempts
    done, limit = _read_progress(folder, request, tasks)
    return AblationPlan(
        request=request,
        parts=kept,
        turns=turns,
        known_turns=known,
        folder=folder,
        tasks=len(tasks),
        evaluations=evaluations,
        missing=evaluations - done,
        price=solver[1] if solver else None,
        usd_limit=chosen.max_usd or limit,
    )


def _read_progress(
    folder: Path, request: EvaluationRequest, tasks: Sequence[Task]
) -> tuple[int, float | None]:
    """Return the number of evaluations that earlier sessions performed, and the last limit in USD."""
    if not (folder / "run.json").exists():
        return 0, None
    with Run.open(folder) as made:
        wanted = make_plan(made, request, tasks)
        return len(wanted.all()) - len(EvaluationProgress(made).missing(wanted)), made.tree.budget.usd


async def begin_ablation(plan: AblationPlan, watcher: Watcher) -> EvaluationSession:
    """Open the evaluation to write; raise as ``prepare``."""
    session = await prepare(plan.request, watcher)
    write_durably(plan.folder / TURNS, json.dumps(plan.known_turns, indent=2).encode() + b"\n")
    return session


def judge_ablation(plan: AblationPlan, session: EvaluationSession, report: EvaluationView) -> Ablation:
    """Return the effects of the parts, by the results so far."""
    complete, *results = session.results()
    base = plan.turns[COMPLETE] or 0
    tokens = {part: base - (turn or 0) for part, turn in plan.turns.items()}
    judged = {
        each.part: each for each in judge_parts(complete, dict(zip(plan.parts, results, strict=True)), tokens)
    }
    effects = [
        judged.get(part) or PartEffect(part, 0, Effect.NEEDED) for part in plan.turns if part != COMPLETE
    ]
    return Ablation(report, effects)


def choose_parts(agent: str, source: Snapshot, only: Sequence[str]) -> Mapping[str, Snapshot]:
    """Return the agent without each part that fits a pattern of ``only``, by the part's name; all parts if it is empty.

    Raises:
        UserError: there is no part, or a pattern fits none.
    """
    without = remove_each_part(source, read_contract(source))
    if not without:
        raise UserError(
            f"{agent}: no part to leave out: no section of an editable Markdown file, no skill, sub-agent, command, "
            "hook or MCP server"
        )
    for pattern in only:
        if not any(fnmatchcase(part, pattern) for part in without):
            raise UserError(f"--part {pattern}: fits no part of {agent}; there are {', '.join(without)}")
    return {
        part: accept_settings(rest)
        for part, rest in without.items()
        if not only or any(fnmatchcase(part, pattern) for pattern in only)
    }


def _read_turns(folder: Path) -> dict[str, int | None]:
    file = folder / TURNS
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
