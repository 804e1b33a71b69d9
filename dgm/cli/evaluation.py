"""The folder of an evaluation and a session in it, shared by evaluations of agents and of prediction files."""

import asyncio
import difflib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from dgm import assemble
from dgm.analysis.budgets import Ending, Reason
from dgm.archive.events import Recorded, RunStarted
from dgm.archive.run import Run
from dgm.cli.complaint import FAILED, INTERRUPTED, LIMIT, USAGE
from dgm.cli.model_check import check_and_tell
from dgm.cli.progress import listen_for_signals, show_progress
from dgm.config import Settings
from dgm.domain import AgentId, Budget, Split, Task
from dgm.errors import UserError
from dgm.evaluation.evaluating import PLAN, EvaluationPlan, EvaluationProgress, count_expected
from dgm.protocols import Benchmark
from dgm.search.loop import Search
from dgm.search.model_checks import note_checks
from dgm.show.evaluate_rows import EvaluationReport
from dgm.show.safe import one_line
from dgm.show.words import count_text

DONE = Ending(Reason.NOTHING_LEFT, "all of it was done before")
Open = Callable[[Callable[[Recorded], None]], AbstractAsyncContextManager[Search]]
"""Function that opens a search and passes it a callback for its events."""


def select_tasks(benchmark: Benchmark, split: Split, names: Sequence[str]) -> Sequence[Task]:
    """Return the split's tasks, or only the named ones of them.

    Raises:
        UserError: there are none, or a named one is not among them.
    """
    tasks = benchmark.tasks(split)
    if not tasks:
        sizes = ", ".join(f"{len(benchmark.tasks(other))} {other.value}" for other in Split)
        raise UserError(
            f"benchmark {benchmark.name!r} has no {split.value} task ({sizes}); choose another --split"
        )
    for name in names:
        if name not in {task.id for task in tasks}:
            raise UserError(
                f"--task {name}: not in the {split.value} split of {benchmark.name!r}{_task_hint(benchmark, name)}"
            )
    return [task for task in tasks if not names or task.id in names]


def _task_hint(benchmark: Benchmark, name: str) -> str:
    splits = {str(task.id): split.value for split in Split for task in benchmark.tasks(split)}
    if name in splits:
        return f", but in the {splits[name]} split; give --split {splits[name]}"
    near = difflib.get_close_matches(name, splits, 1)
    return f" (did you mean {near[0]!r}?)" if near else f" (see dgm benchmark show {benchmark.name})"


def make_slug(text: str) -> str:
    """Return the text as a part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:60]


def open_evaluation(
    folder: Path, plan: Mapping[str, Any], settings: Settings, parts: assemble.RunParts, *, free: bool = False
) -> Run:
    """Open the evaluation in this folder for writing; create it if there is none.

    Args:
        folder: its place, whether it exists or not.
        plan: the facts that must be the same in all of its sessions.
        settings: frozen in a new one.
        parts: frozen in a new one.
        free: whether no model is called.

    Raises:
        UserError: the folder holds something else, or was begun with other settings.
        ArchiveBusy: another process is writing it.
    """
    if not (folder / "run.json").exists():
        checks = () if free else check_and_tell(settings)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder}: cannot be made: {error.strerror}") from error
        new = Run.create(folder, {**assemble.record_of(folder, settings, parts), PLAN: plan})
        if not free:
            note_checks(new, settings, checks)
        return new
    made = Run.open(folder, write=True)
    try:
        _check_plan(made, plan)
    except BaseException:
        made.close()
        raise
    return made


def _check_plan(made: Run, plan: Mapping[str, Any]) -> None:
    before = made.config.get(PLAN)
    if before is None:
        raise UserError(
            f"{made.folder}: holds something else than an evaluation; choose another folder with --into"
        )
    then, now = dict(_iter_leaves(before)), dict(_iter_leaves(plan))
    for key in {**then, **now}:
        if then.get(key) != now.get(key):
            what = {
                "version": "another version of the benchmark",
                "of": "agents of another run",
                "predictions": "other predictions",
                "requires": "agents that require other packages",
            }
            other = what.get(key, f"{key} {then.get(key)!r}, not {now.get(key)!r}")
            raise UserError(
                f"{made.folder}: was begun with {other}; record this in another folder with --into"
            )


def _iter_leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _iter_leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def perform_session(
    made: Run,
    wanted: EvaluationPlan,
    names: Sequence[str],
    usd: float | None,
    searching: Open,
    *,
    quiet: bool,
) -> Ending:
    """Perform one session on the missing evaluations.

    Args:
        made: the evaluation, with its agents entered.
        wanted: the evaluations to reach in all sessions.
        names: names of the agents in ``wanted``.
        usd: limit over all sessions; None: no limit.
        searching: opens the search.
        quiet: whether nothing is printed meanwhile.
    """
    budget = Budget(evaluations=count_expected(made, EvaluationProgress(made).missing(wanted)), usd=usd)
    made.append(RunStarted(budget, wanted.tasks, resumed=made.tree.evaluations > 0))
    called: dict[AgentId, str] = dict(zip(wanted.agents, names, strict=True))

    async def session() -> Ending:
        async with searching(shown.event) as search:
            shown.attach(search)
            listen_for_signals(search, shown)
            return await search.go()

    with show_progress(made, quiet=quiet, names=called) as shown:
        try:
            return asyncio.run(session())
        except asyncio.CancelledError:
            return Ending(Reason.STOPPED, "stopped at once; nothing recorded is lost")


def report_missing(over: Ending, found: EvaluationReport) -> int:
    """Return the exit code; print a line on stderr if something is missing."""
    missing = sum(result.missing for result in found.results)
    given_up = sum(len(result.given_up) for result in found.results)
    if given_up:
        sys.stderr.write(
            f"given up because the infrastructure failed again and again: {count_text(given_up, 'task')}, in no tally; "
            "--verbose says why\n"
        )
    if not missing:
        return FAILED if given_up else 0
    more = " with a larger --max-usd" if over.reason is Reason.LIMIT else ""
    # The message may quote a provider.
    over_said, missed = one_line(over.message, 1_000), count_text(missing, "evaluation")
    sys.stderr.write(f"{over_said}; still missing: {missed}; repeat the command{more} to go on\n")
    return {Reason.LIMIT: LIMIT, Reason.STOPPED: INTERRUPTED, Reason.REFUSED: USAGE}.get(over.reason, FAILED)
