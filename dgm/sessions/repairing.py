"""The work of an agent of a run on a repository of the user's, and what becomes of its change."""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm import assemble
from dgm.api.watcher import Watcher
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import Snapshot, Usage
from dgm.errors import AgentFault, DgmError, UserError
from dgm.models.auto import settle_auto
from dgm.models.choose import AUTO
from dgm.paths import state_folder
from dgm.protocols import Work
from dgm.sandboxes.choose import choose
from dgm.search.run_settings import require_consent
from dgm.worker import solving
from dgm.worker.rehearsal import rehearse
from dgm.worker.user_repository import UserFiles, user_files, write_back


class UnusableWork(DgmError):
    """The agent left something that is no change; ``output`` is the end of what its program wrote."""

    def __init__(self, message: str, output: bytes) -> None:
        super().__init__(message)
        self.output = output


@dataclass(frozen=True, slots=True)
class Repair:
    """An agent that is ready to work on a repository."""

    name: str
    """Name of the agent, for messages."""
    source: Snapshot
    repo: Path
    given: UserFiles
    problem: str
    context: solving.SolveContext

    async def perform(self, spent: solving.UsageJournal) -> solving.SolveResult:
        """Let the agent work on a copy; the repository stays as it is.

        Args:
            spent: its usage is added here, whatever the result.

        Raises:
            UnusableWork: the agent's result is no change.
            Infrastructure: the sandbox or the model failed.
        """
        context = self.context
        await rehearse(self.name, self.source, choose(context.sandbox, context.settings), context.settings)
        try:
            return await solving.solve(self.source, self.repo, self.given.files, self.problem, context, spent)
        except AgentFault as fault:
            message = f"the agent's work cannot be used ({fault.stage}): {fault}; {cost_text(spent.usage)}"
            raise UnusableWork(message, fault.output) from fault


def choose_settings(run: Run, model: str | None, max_usd: float | None, watcher: Watcher) -> Settings:
    """Return the settings of a run with another model or a limit on the cost in USD.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names addresses of its own.
        UserError: a model that costs money may not be used.
    """
    settings = assemble.settings_of(run)
    if model:
        roles = settings.models.model_copy(update={"solve": None})
        settings = settings.model_copy(update={"model": model, "models": roles})
        if model == AUTO:
            settings, why = settle_auto(settings, watcher.may_use)
            watcher.model_chosen(why)
    require_consent(run, settings)
    if max_usd is not None:
        limits = settings.limits.model_copy(update={"usd": max_usd})
        settings = settings.model_copy(update={"limits": limits})
    return settings


def prepare(name: str, source: Snapshot, repo: Path, problem: str, context: solving.SolveContext) -> Repair:
    """Read the repository.

    Args:
        name: of the agent, for messages.
        source: the agent's own files.
        repo: a folder; in a git repository, what its owner would commit is read.
        problem: what is to be done, in words.
        context: settings, sandbox and time.

    Raises:
        UserError: it is too large to be copied, or git refuses to read it.
    """
    return Repair(name, source, repo, user_files(repo), problem, context)


def apply_work(repo: Path, work: Work, changed: Sequence[str]) -> None:
    """Apply the change to the repository, or keep it in a file.

    Args:
        repo: as it was given.
        work: of the agent.
        changed: the files that the change creates, changes or removes.

    Raises:
        UserError: it cannot be applied, because files changed meanwhile or cannot be written; it is kept in a file.
    """
    try:
        write_back(repo, work.patch, changed)
    except UserError as error:
        file = save_patch(repo, work.patch)
        raise UserError(f"{error}; it is kept in {file}") from error


def save_patch(repo: Path, patch: bytes) -> Path:
    """Write the patch to a new file outside of the repository, and return the file.

    Raises:
        UserError: it cannot be written.
    """
    try:
        folder = state_folder("patches")
        name = f"{repo.resolve().name or 'root'}-{time.strftime('%Y%m%d-%H%M%S')}-"
        handle, path = tempfile.mkstemp(prefix=name, suffix=".patch", dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(patch)
    except OSError as error:
        raise UserError(f"the change cannot be kept: {error}") from error
    return Path(path)


def cost_text(usage: Usage) -> str:
    """Return the agent's usage in a few words."""
    calls = "1 model call" if usage.calls == 1 else f"{usage.calls} model calls"
    return f"{calls}, {usage.tokens:,} tokens, {usage.usd:.4f} USD"
