"""``solve``: the work of an agent of a run on a repository of the user's, and what becomes of its change."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import Field

from dgm.analysis.agents import find_agent
from dgm.api.agents import RunAgent
from dgm.api.arguments import (
    SettingValues,
    apply_assignments,
    assignments_of,
    check_amount,
    model_of,
    split_engine,
)
from dgm.api.running import run_session
from dgm.api.watcher import Watcher
from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.benchmarks.logs import plain_log
from dgm.config import Settings
from dgm.domain import Agent, Usage
from dgm.errors import AgentFault, DgmError, UserError
from dgm.launch import name_models
from dgm.models.scripted import Script
from dgm.paths import state_folder
from dgm.render import fmt
from dgm.render.safe import neutralise
from dgm.sandboxes.choose import choose
from dgm.sandboxes.engine_address import use_engine
from dgm.search.start import require_consent, settings_of
from dgm.simulation import check_performed
from dgm.views.values import UsageView, View
from dgm.worker import solving
from dgm.worker.agent_check import rehearse
from dgm.worker.leaving import format_left_out
from dgm.worker.session import UsageJournal
from dgm.worker.solving import user_files, write_back

TIME_LIMIT_S = 600.0
"""Time for the agent, unless ``limits.solve_s`` is set."""
PROGRESS_S = 10.0
"""Interval between two lines of progress."""
OUTPUT_BYTES = 4000
OUTPUT_LINES = 20
"""Limits of the agent's output that is shown."""
FAILED = 1
OnProgress = Callable[[str], None]


def print_progress(line: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(f"{neutralise(line)}\n")
    sys.stderr.flush()


class Solution(View):
    """The change that an agent made to a copy of a repository."""

    agent: int
    """Its id in the run."""
    repository: str
    patch: str
    """Unified diff; empty if the agent changed nothing. Bytes that are not UTF-8 are replaced."""
    why_empty: str
    """Why there is no change; empty if there is one."""
    changed: tuple[str, ...]
    """Files that the change creates, changes or removes."""
    applied: bool
    """True if the change was applied to the repository."""
    patch_file: str | None
    """Where a change is kept that was not applied, byte for byte."""
    left_out: dict[str, int]
    """New files that are too large to be a part of the change → bytes."""
    absent: tuple[str, ...]
    """Parts of the repository that the agent did not see, a sentence each."""
    agent_exit_code: int
    """Exit status of the agent's program."""
    timed_out: bool
    output: str
    """The end of what the agent's program wrote, not neutralised."""
    calls: int
    """Answered model calls."""
    spend: UsageView
    patch_bytes: bytes = Field(exclude=True, repr=False)
    """The patch byte for byte; not in the JSON document."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 without a change."""
        return 0 if self.patch else FAILED

    def apply(self) -> None:
        """Apply the change to the repository; do nothing without one.

        Raises:
            UserError: files changed meanwhile, or cannot be written; the message says where the change is kept.
        """
        if self.patch:
            try:
                write_back(Path(self.repository), self.patch_bytes, self.changed)
            except UserError as error:
                raise UserError(f"{error}; it is kept in {self.patch_file or self.save()}") from error

    def save(self) -> Path:
        """Write the change to a new file in the user's folder of patches, and return the file.

        Raises:
            UserError: it cannot be written.
        """
        return _save_patch(Path(self.repository), self.patch_bytes)


def solve(
    agent: RunAgent | str,
    repository: str | Path,
    problem: str,
    *,
    model: str | Script | None = None,
    max_usd: float | None = None,
    apply: bool = False,
    settings: SettingValues | None = None,
    allow_paid: bool = False,
    watcher: Watcher | None = None,
    on_progress: OnProgress | None = print_progress,
) -> Solution:
    """Let an agent work on a copy of a repository, and return its change.

    The repository is only changed if the change is applied. A change that is not applied is kept in a file.

    Args:
        agent: RUN:AGENT, such as demo:best.
        repository: A folder; in a git repository, the agent sees what its owner would commit.
        problem: What to do, in words.
        model: Model that the agent uses [default: the run's].
        max_usd: Spending limit.
        apply: Apply the change without asking.
        settings: A setting such as limits.solve_s=1200 or sandbox=docker.
        allow_paid: Whether the model ``auto`` may stand for one that costs money.
        watcher: Is informed and asked on the way.
        on_progress: Is called with each line of progress; by default they are printed on stderr. None: silent.

    Raises:
        UserError: what is wrong, before anything is spent.
        DgmError: the agent's result is no change.
        Infrastructure: the sandbox or the model failed.
    """
    check_amount("max_usd", max_usd)
    folder = Path(repository)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    settings, engines = split_engine(settings)
    watcher = watcher or Watcher(allow_paid=allow_paid)
    report = on_progress or (lambda _: None)

    async def work(run: Run, member: Agent) -> Solution:
        check_performed(run)
        chosen = _build_settings(run, model_of(model), max_usd, assignments_of(settings), watcher)
        return await _perform(run, member, folder, problem, chosen, report)

    with use_engine(engines):
        if isinstance(agent, RunAgent):
            handle = agent
            solution = run_session(lambda: work(handle.run, handle.agent), watcher)
        else:
            name, _, which = agent.rpartition(":")
            if not name:
                raise UserError(f"{agent}: expected RUN:AGENT, for example {agent}:best")
            with Run.open(find_run(name)) as run:
                member = find_agent(run, which)
                solution = run_session(lambda: work(run, member), watcher)
    return _finish(solution, apply=apply)


def _finish(solution: Solution, *, apply: bool) -> Solution:
    """Apply the change, or keep it in a file."""
    if not solution.patch:
        return solution
    if apply:
        solution.apply()
        return solution.model_copy(update={"applied": True})
    return solution.model_copy(update={"patch_file": str(solution.save())})


def _build_settings(
    run: Run, model: str | None, max_usd: float | None, assignments: Sequence[str], watcher: Watcher
) -> Settings:
    """Return the settings of a run with another model, limits and the like.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names addresses of its own.
        UserError: a setting does not fit, or a model that costs money may not be used.
    """
    base = settings_of(run).model_dump(mode="json")
    if model:
        base["model"] = model
        base["models"] |= {"solve": None}
    base["sandbox"] = "auto"
    # The time that the run gave its tasks says nothing about this one.
    base["limits"] |= {"solve_s": None}
    if max_usd is not None:
        base["limits"] |= {"usd": max_usd}
    settings = apply_assignments(base, assignments, ("models", "providers", "limits", "sandbox"), "solving")
    require_consent(run, settings)
    return name_models(settings, watcher) if model else settings


async def _perform(
    run: Run, agent: Agent, folder: Path, problem: str, settings: Settings, report: OnProgress
) -> Solution:
    name = f"{run.name}:{agent.id}"
    source = run.repository.source(agent.commit)
    files = user_files(folder)
    for sentence in files.absent:
        report(sentence)
    limit_s = settings.limits.solve_limit_s(TIME_LIMIT_S)
    report(f"starting agent {name} in a sandbox")
    engine = choose(settings.sandbox, settings)
    await rehearse(name, source, engine, settings)
    report(f"agent {name} works on a copy of {folder} (at most {limit_s:.0f} s)")
    spent = UsageJournal()
    request = solving.SolveRequest(folder, files.files, problem, limit_s)
    progress = asyncio.create_task(_report_usage(spent, report))
    try:
        result = await solving.solve(source, request, engine, settings, spent)
    except AgentFault as fault:
        _report_output(fault.output, report)
        raise DgmError(
            f"the agent's work cannot be used ({fault.stage}): {fault}; {fmt.usage(UsageView.of(spent.usage))}"
        ) from fault
    except BaseException:
        if spent.usage.calls:
            report(fmt.usage(UsageView.of(spent.usage)))
        raise
    finally:
        progress.cancel()
        with suppress(asyncio.CancelledError):
            await progress
    work = result.work
    if work.completed.bad_end or not work.patch:
        _report_output(work.completed.output, report)
    if work.completed.bad_end:
        report(f"the agent {work.completed.bad_end}")
    if work.left_out:
        report(format_left_out(work.left_out).replace("\n", " "))
    solution = Solution(
        agent=agent.id,
        repository=str(folder),
        patch=work.patch.decode("utf-8", "replace"),
        patch_bytes=work.patch,
        why_empty="" if work.patch else _explain_empty(result, spent.usage),
        changed=result.changed,
        applied=False,
        patch_file=None,
        left_out=dict(work.left_out),
        absent=files.absent,
        agent_exit_code=work.completed.exit_code,
        timed_out=work.completed.timed_out,
        output=work.completed.output[-OUTPUT_BYTES:].decode("utf-8", "replace"),
        calls=work.calls,
        spend=UsageView.of(result.usage),
    )
    if solution.why_empty:
        report(f"no change: {solution.why_empty}")
    return solution


async def _report_usage(spent: UsageJournal, report: OnProgress) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_S)
        report(f"{time.monotonic() - began:.0f} s: {fmt.usage(UsageView.of(spent.usage))}")


def _explain_empty(result: solving.SolveResult, usage: Usage) -> str:
    """Return why the agent left no change, in a clause."""
    work = result.work
    if work.own_failure:
        return f"the agent got no answers of its model by its own fault: {work.own_failure}"
    if work.completed.bad_end:
        return f"the agent {work.completed.bad_end} before it changed a file"
    if work.refused:
        return f"the agent's requests were refused ({', '.join(work.refused)})"
    if work.left_out:
        return "all its new files are too large for a patch"
    if not usage.calls:
        return "the agent ended without asking its model"
    calls = "1 model call" if usage.calls == 1 else f"{usage.calls} model calls"
    return f"the agent ended by itself after {calls} and changed no file that would be committed"


def _report_output(output: bytes, report: OnProgress) -> None:
    text = plain_log(output[-4 * OUTPUT_BYTES :]).decode("utf-8", "replace").strip()[-OUTPUT_BYTES:]
    lines = text.split("\n")[-OUTPUT_LINES:]
    if any(lines):
        report("the end of the agent's output:")
        for line in lines:
            report(f"  {line}")


def _save_patch(repository: Path, patch: bytes) -> Path:
    """Write a patch to a new file outside of the repository, and return the file.

    Raises:
        UserError: it cannot be written.
    """
    try:
        folder = state_folder("patches")
        name = f"{repository.resolve().name or 'root'}-{time.strftime('%Y%m%d-%H%M%S')}-"
        handle, path = tempfile.mkstemp(prefix=name, suffix=".patch", dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(patch)
    except OSError as error:
        raise UserError(f"the change cannot be kept: {error}") from error
    return Path(path)
