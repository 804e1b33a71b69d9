"""The work of an agent on a repository, from a program (``dgm solve``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, Unpack

from dgm.api.agents import RunAgent
from dgm.api.arguments import check_amount, model_of
from dgm.blocking import ProgramWatcher, block, in_python
from dgm.domain import Usage
from dgm.errors import UserError
from dgm.models.scripted import Script
from dgm.sandboxes.engine_address import use_engine
from dgm.sessions import repairing
from dgm.simulate import check_performed
from dgm.worker.solving import SolveContext, SolveResult, UsageJournal

TIMEOUT_S = 600.0


class SolveArguments(TypedDict, total=False):
    """Arguments of ``solve`` and ``solve_async``; each may be left out."""

    model: str | Script | None
    """The model that the agent is lent; the run's unless it is given."""
    max_usd: float | None
    """Limit on all its model calls in USD."""
    sandbox: str
    """``auto`` unless it is given, ``docker`` or ``bubblewrap``."""
    engine: str | Sequence[str] | None
    """Address of the Docker engine, such as ``ssh://user@host``, or several; else as the environment says."""
    timeout_s: float
    """Time for the agent in seconds; 600 unless it is given."""
    allow_paid: bool
    """If true, ``model="auto"`` may choose a model that costs money."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The changes that an agent made to a copy of a repository; only ``apply`` changes the repository itself."""

    repo: Path
    result: SolveResult = field(repr=False)
    absent: Sequence[str] = ()
    """Parts of the repository that the agent did not see, a sentence each."""

    @property
    def patch(self) -> str:
        """The change as a unified diff; empty if the agent changed nothing."""
        return self.result.work.patch.decode("utf-8", "replace")

    @property
    def changed(self) -> Sequence[str]:
        """Paths of the files that it creates, changes or removes."""
        return self.result.changed

    @property
    def left_out(self) -> Mapping[str, int]:
        """New files that are too large to be a part of the change → bytes."""
        return self.result.work.left_out

    @property
    def output(self) -> str:
        """The end of what the agent's program wrote: not neutralised."""
        return self.result.work.completed.output.decode("utf-8", "replace")

    @property
    def exit_code(self) -> int:
        """Exit status of the agent's program; 0 if it ended well."""
        return self.result.work.completed.exit_code

    @property
    def timed_out(self) -> bool:
        """True if the agent reached its time limit."""
        return self.result.work.completed.timed_out

    @property
    def spent(self) -> Usage:
        """All that its model calls took."""
        return self.result.usage

    def apply(self) -> None:
        """Apply the change to the repository; without one, do nothing.

        Raises:
            UserError: files changed meanwhile, or cannot be written; the message says where the change is kept.
        """
        if self.result.work.patch:
            repairing.apply_work(self.repo, self.result.work, self.result.changed)

    def save(self) -> Path:
        """Write the change to a new file in the user's folder of patches, and return the file.

        Raises:
            UserError: it cannot be written.
        """
        return repairing.save_patch(self.repo, self.result.work.patch)


def solve(agent: RunAgent, repo: str | Path, problem: str, **given: Unpack[SolveArguments]) -> Solution:
    """Let an agent work on a copy of a repository, and return its change; blocks, also where a loop runs.

    Nothing is recorded, and the repository stays as it is until ``Solution.apply``.

    Args:
        agent: of a run, such as ``dgm.open("demo").best``.
        repo: a folder; in a git repository, the agent sees what its owner would commit.
        problem: what is to be done, in words.
        given: see ``SolveArguments``.

    Raises:
        UserError: what is wrong, before anything is spent.
        DgmError: the agent's result is no change.
        Infrastructure: the sandbox or the model failed.
    """
    return block(lambda session: _solve(session, agent, Path(repo), problem, **given), None)


async def solve_async(
    agent: RunAgent, repo: str | Path, problem: str, **given: Unpack[SolveArguments]
) -> Solution:
    """Let an agent work on a copy of a repository. As ``solve``."""
    with in_python():
        return await _solve(ProgramWatcher(None), agent, Path(repo), problem, **given)


async def _solve(  # noqa: PLR0913  (all have their usual value)
    session: ProgramWatcher,
    agent: RunAgent,
    repo: Path,
    problem: str,
    *,
    model: str | Script | None = None,
    max_usd: float | None = None,
    sandbox: str = "auto",
    engine: str | Sequence[str] | None = None,
    timeout_s: float = TIMEOUT_S,
    allow_paid: bool = False,
) -> Solution:
    session.allow_paid = allow_paid
    check_amount("max_usd", max_usd)
    check_amount("timeout_s", timeout_s)
    if not repo.is_dir():
        raise UserError(f"{repo}: no such folder")
    check_performed(agent.run)
    settings = repairing.choose_settings(agent.run, model_of(model), max_usd, session)
    context = SolveContext(settings, sandbox, timeout_s)
    repair = repairing.prepare(f"{agent.run.name}:{agent.id}", agent.source, repo, problem, context)
    with use_engine(engine):
        return Solution(repo, await repair.perform(UsageJournal()), repair.given.absent)
