"""The check of an agent of the user's before a search: ``dgm agent check``."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dgm.archive.snapshots import from_folder
from dgm.config import Settings, resolve
from dgm.domain import Entry, Snapshot, Usage
from dgm.errors import AgentFault, UserError
from dgm.meta.contract import FILE, Contract, read_contract
from dgm.meta.seeds import SEED_BYTES
from dgm.sandboxes.choose import choose
from dgm.search.model_checks import prices_of
from dgm.sessions.agent_findings import Finding, Level, judge_files, judge_inspection
from dgm.worker.inspection import inspect_agent
from dgm.worker.solving import SolveContext, SolveResult, UsageJournal, solve

REPOSITORY: Snapshot = {
    "README.md": Entry(b"The state of the project is in status.txt.\n"),
    "status.txt": Entry(b"waiting\n"),
}
"""The repository of the conversations."""
PROBLEM = "The file status.txt holds the word 'waiting'. It has to hold the word 'ready' instead. Change it, then end."
"""The task of a real conversation (``--model``)."""
ANSWER = b"ready"
MAX_USD = 1.0
TRIAL_S = 300.0
"""Wall time of a real conversation."""


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """The findings about one agent."""

    folder: Path
    findings: Sequence[Finding]
    usage: Usage
    """Usage of the real conversation; empty without a model."""

    @property
    def fit(self) -> bool:
        """True if nothing would stop a search."""
        return all(finding.level is not Level.STOP for finding in self.findings)


@dataclass(frozen=True, slots=True)
class CheckChoice:
    """The settings of a check."""

    sandbox: str = "auto"
    model: str | None = None
    """Model for one real conversation; None: there is none, and nothing is paid."""
    max_usd: float = MAX_USD
    """Limit on the cost of that conversation."""
    assignments: Sequence[str] = ()
    """Settings as on the command line, such as ``limits.check_s=30``."""


def findings_record(done: AgentCheck) -> list[dict[str, Any]]:
    """Return the findings as JSON values."""
    return [{**asdict(finding), "level": finding.level.value} for finding in done.findings]


async def check_agent(
    folder: Path, choice: CheckChoice, begins: Callable[[str], None] = lambda _: None
) -> AgentCheck:
    """Check an agent's folder.

    Args:
        folder: of the agent.
        choice: sandbox, model and settings.
        begins: hears the name of each part that takes time.

    Raises:
        UserError: the folder is none, a setting is wrong, or the model cannot be used.
        Infrastructure: the sandboxes or the model failed, which says nothing about the agent.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: not a folder; make an agent there: dgm agent init {folder}")
    settings = _read_settings(choice)
    try:
        source = from_folder(folder, limit_bytes=SEED_BYTES) if (folder / FILE).is_file() else {}
        contract = read_contract(source)
    except AgentFault as fault:
        return AgentCheck(folder, [_judge_unreadable(folder, fault)], Usage())
    findings = [_judge_manifest(contract), *judge_files(source, contract, settings.limits)]
    if any(finding.level is Level.STOP for finding in findings):
        return AgentCheck(folder, findings, Usage())
    found = await inspect_agent(source, REPOSITORY, choose(choice.sandbox), settings, begins)
    findings += judge_inspection(contract, found)
    spent = UsageJournal()
    if choice.model and all(finding.level is not Level.STOP for finding in findings):
        begins("model")
        findings.append(await _converse(source, settings, choice, spent))
    return AgentCheck(folder, findings, spent.usage)


def _read_settings(choice: CheckChoice) -> Settings:
    settings = resolve(None, choice.assignments, {"model": choice.model} if choice.model else {})
    if not choice.model:
        return settings
    prices_of(settings)
    return settings.model_copy(update={"limits": settings.limits.model_copy(update={"usd": choice.max_usd})})


def _judge_unreadable(folder: Path, fault: AgentFault) -> Finding:
    if fault.stage == "contract":
        missing = not (folder / FILE).is_file()
        write = f"dgm agent init NEW, and copy its {FILE}" if missing else f"correct {FILE}"
        return Finding(Level.STOP, "manifest", str(fault), write)
    write = "take out what is not the agent's own: packages are named in requires, data is left outside"
    return Finding(Level.STOP, "sizes", str(fault), write)


def _judge_manifest(contract: Contract) -> Finding:
    return Finding(
        Level.GOOD, "manifest", f"{' '.join(contract.command)} JOB; check: {' '.join(contract.check)}"
    )


async def _converse(
    source: Snapshot, settings: Settings, choice: CheckChoice, spent: UsageJournal
) -> Finding:
    context = SolveContext(settings, choice.sandbox, TRIAL_S)
    with tempfile.TemporaryDirectory(prefix="dgm-check-") as outside:
        try:
            result = await solve(source, Path(outside), REPOSITORY, PROBLEM, context, spent)
        except AgentFault as fault:
            return Finding(Level.STOP, "model", f"{fault.stage}: {fault}", "look at what the agent leaves")
    return _judge_conversation(result, spent.usage)


def _judge_conversation(result: SolveResult, usage: Usage) -> Finding:
    work = result.work
    state = work.workspace.get("status.txt")
    cost = f"{usage.calls} calls, {usage.input_tokens + usage.output_tokens:,} tokens, {usage.usd:.4f} USD"
    if state is not None and ANSWER in state.data:
        return Finding(Level.GOOD, "model", f"a small task is solved: {cost}")
    lines = work.completed.output.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1][:200] if lines else "no output"
    said = f"a small task is not solved: {cost}; exits {work.completed.exit_code}: {last}"
    return Finding(Level.WARNING, "model", said, "try a stronger model, or mend what the agent tells it")
