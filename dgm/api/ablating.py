"""Ablation of an agent (``dgm agent ablate``): an evaluation of the whole agent and of the agent without each part.

Before anything is paid, every one of them is started with a scripted model. That tells the tokens that each part adds
to a turn, and the parts without which the agent cannot start.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from dgm import assemble
from dgm.api.agent_import import accept_settings
from dgm.api.arguments import (
    SettingValues,
    assignments_of,
    check_amount,
    model_of,
    name_of,
    split_engine,
)
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
from dgm.api.running import run_session
from dgm.api.watcher import OnEvent, Watcher
from dgm.archive.durable import write_durably
from dgm.archive.run import Run
from dgm.archive.snapshots import tree_id
from dgm.domain import Snapshot, Split, Task
from dgm.errors import UserError
from dgm.evaluation.ablation import (
    DIFFERENCE,
    Effect,
    PartEffect,
    fewest_tasks,
    judge_parts,
    remove_each_part,
    tasks_to_show,
)
from dgm.evaluation.schedule import EvaluationProgress
from dgm.meta.contract import read_contract
from dgm.models.pricing import Price
from dgm.models.scripted import Script
from dgm.protocols import Benchmark
from dgm.render import fmt
from dgm.sandboxes.engine_address import use_engine
from dgm.sandboxes.preparing import LOGGER
from dgm.search.start import max_evaluation_usd, solver_price
from dgm.views.evaluation import EvaluationView
from dgm.views.own_agent import AblationView
from dgm.worker.agent_check import rehearse

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
    missing: int
    """Number of evaluations that earlier sessions did not perform."""
    price: Price | None
    """Price of the model; None if it costs nothing."""
    usd_limit: float | None
    """Limit on the cost over all sessions; None: none was chosen."""

    @property
    def evaluations(self) -> int:
        """All evaluations, earlier sessions included."""
        return len(self.request.contestants) * self.tasks * self.request.chosen.attempts

    @property
    def most_usd(self) -> float:
        """The greatest cost of what is missing, by the limits; 0 if the model costs nothing."""
        evaluation_usd = max_evaluation_usd(self.request.settings, self.price) if self.price else 0.0
        return self.missing * evaluation_usd

    @property
    def is_unbounded(self) -> bool:
        """True if the ablation costs money and has no limit."""
        return bool(self.missing and self.price and self.usd_limit is None)

    def describe(self) -> str:
        """Return the work and its price in one line."""
        parts, attempts = len(self.parts), self.request.chosen.attempts
        fewest = fewest_tasks(parts)
        text = (
            f"{fmt.count(parts + 1, 'agent')} × {fmt.count(self.tasks, 'task')} × {fmt.count(attempts, 'attempt')} = "
            f"{fmt.count(self.evaluations, 'evaluation')}, {self.missing:,} still to do; an effect shows if {fewest} "
            f"tasks or more change in the same direction; a difference of {100 * DIFFERENCE:.0f} points takes about "
            f"{tasks_to_show(parts)} tasks"
        )
        if self.tasks < fewest:
            text += "; these tasks are too few to show any effect: give more, or fewer parts"
        if self.price:
            text += f"; it costs at most {self.most_usd:.2f} USD by the limits of each evaluation"
        return text


def agent_ablate(
    agent: str | Path,
    *parts: str,
    benchmark: str | Path | Benchmark | None = None,
    tasks: Sequence[str] = (),
    attempts: int = 1,
    model: str | Script | None = None,
    max_usd: float | None = None,
    settings: SettingValues | None = None,
    allow_paid: bool = False,
    confirm: Callable[[str], bool] = lambda _: False,
    watcher: Watcher | None = None,
    on_event: OnEvent | None = None,
) -> AblationView:
    """Evaluate an agent on search tasks with and without each of its parts: which help, hurt, or only cost tokens.

    Parts are sections of Markdown files, skills, sub-agents, commands, hooks and MCP servers. First it is started
    without each part, at no cost. The same command continues where it ended and pays for nothing twice.

    Args:
        agent: A folder, or a shipped agent.
        parts: Only these parts, such as 'CLAUDE.md#*' (default: all).
        benchmark: The suite whose search tasks it tries (default: starter).
        tasks: Only these tasks.
        attempts: Attempts per task.
        model: Model that the agent uses (default: auto).
        max_usd: Spending limit, earlier sessions included.
        settings: A setting such as workers=4, limits.calls=20 or sandbox=docker.
        allow_paid: Whether the model ``auto`` may stand for one that costs money.
        confirm: Is asked, with the price, where it would spend money without a limit.
        watcher: Is informed and asked on the way.
        on_event: Is called with each event of the evaluation, model calls left out, once it is on disk.

    Raises:
        UserError: what is wrong, before anything is spent; also if the model costs money and ``max_usd`` is missing.
        ArchiveBusy: another process is writing this evaluation.
        Infrastructure: a sandbox or a model failed before the first task.
    """
    check_amount("max_usd", max_usd)
    others, engines = split_engine(settings)
    chosen = EvaluationChoice(
        benchmark=name_of("benchmarks", benchmark),
        split=Split.SEARCH,
        tasks=tasks,
        attempts=attempts,
        model=model_of(model),
        max_usd=max_usd,
        assignments=assignments_of(others),
    )
    watcher = watcher or Watcher(on_event, allow_paid=allow_paid)

    async def ablate() -> AblationView:
        plan = await plan_ablation(str(agent), parts, chosen, watcher)
        if plan.missing and not plan.is_unbounded:
            logging.getLogger(LOGGER).info("%s", plan.describe())
        if plan.is_unbounded and not confirm(plan.describe()):
            raise UserError(
                f"is missing: {plan.missing} evaluations cost at most {plan.most_usd:.2f} USD; nothing was spent",
                argument="max_usd",
            )
        session = await prepare(plan.request, watcher)
        with session.run:
            write_durably(plan.folder / TURNS, json.dumps(plan.known_turns, indent=2).encode() + b"\n")
            return judge_ablation(plan, session, session.view(await session.perform(watcher)))

    with use_engine(engines):
        return run_session(ablate, watcher)


async def plan_ablation(
    agent: str, only: Sequence[str], chosen: EvaluationChoice, watcher: Watcher
) -> AblationPlan:
    """Find the parts of an agent, start it without each, and compute what the evaluation would cost.

    Args:
        agent: a folder or a shipped agent.
        only: patterns of the parts to leave out, such as ``CLAUDE.md#*``; empty: all parts.
        chosen: the tasks and conditions.
        watcher: is asked about a model that costs money, and hears of each start.

    Raises:
        UserError: there is no such agent, part or task, or the agent cannot start.
        Infrastructure: a sandbox failed.
    """
    complete = read_contestant(agent)
    request = make_request(None, [complete], chosen, watcher)
    request = replace(request, prefix=f"ablate-{complete.key[:8]}", named_model=True)
    without = choose_parts(agent, complete.source(), only)
    run_parts = assemble.parts_of(request.settings)
    folder = request.folder(run_parts.benchmark.name)
    tasks = select_tasks(run_parts.benchmark, chosen.split, chosen.tasks)
    sources = {COMPLETE: complete.source(), **without}
    trees = {part: tree_id(source) for part, source in sources.items()}
    turns, known = dict[str, int | None](), _read_turns(folder)
    for part, tree in trees.items():
        if tree not in known:
            try:
                with watcher.step(f"starting {agent}" + (f" without {part}" if part else "")):
                    rehearsal = await rehearse(agent, sources[part], run_parts.engine, request.settings)
                known[tree] = rehearsal.turn_tokens
            except UserError:
                if part == COMPLETE:
                    raise
                known[tree] = None
        turns[part] = known[tree]
    optional = [part for part in without if turns[part] is not None]
    if not optional:
        raise UserError(f"{agent}: it does not start without any one of its parts: nothing to compare")
    variants = [
        Contestant(f"without {part}", trees[part], partial(without.__getitem__, part), vetted=True)
        for part in optional
    ]
    request = replace(request, contestants=[replace(complete, vetted=True), *variants])
    solver = solver_price(request.settings)
    done, limit = _read_progress(folder, request, tasks)
    return AblationPlan(
        request=request,
        parts=optional,
        turns=turns,
        known_turns=known,
        folder=folder,
        tasks=len(tasks),
        missing=len(request.contestants) * len(tasks) * chosen.attempts - done,
        price=solver[1] if solver else None,
        usd_limit=chosen.max_usd or limit,
    )


def _read_progress(
    folder: Path, request: EvaluationRequest, tasks: Sequence[Task]
) -> tuple[int, float | None]:
    """Return the number of evaluations that earlier sessions performed, and the last limit in USD."""
    if not (folder / "run.json").exists():
        return 0, None
    with Run.open(folder) as run:
        plan = make_plan(run, request, tasks)
        return len(plan.wanted) - len(EvaluationProgress.read(run).missing(plan.wanted)), run.tree.budget.usd


def _read_turns(folder: Path) -> dict[str, int | None]:
    file = folder / TURNS
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def judge_ablation(plan: AblationPlan, session: EvaluationSession, view: EvaluationView) -> AblationView:
    """Return the effects of the parts, by the results so far."""
    complete, *results = session.results()
    base = plan.turns[COMPLETE] or 0
    tokens = {part: base - (turn or 0) for part, turn in plan.turns.items()}
    effects = judge_parts(complete, dict(zip(plan.parts, results, strict=True)), tokens)
    judged = {effect.part: effect for effect in effects}
    rows = [judged.get(part) or PartEffect(part, 0, Effect.NEEDED) for part in plan.turns if part != COMPLETE]
    return AblationView(
        **dict(view),
        parts=tuple(rows),
        tasks_to_show=tasks_to_show(len(judged)),
    )


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
            raise UserError(f"{pattern}: fits no part of {agent}; there are {', '.join(without)}")
    return {
        part: accept_settings(rest)
        for part, rest in without.items()
        if not only or any(fnmatchcase(part, pattern) for pattern in only)
    }
