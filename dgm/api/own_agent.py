"""Agents of the user's own: made from templates, and checked before a search (``dgm agent init``, ``check``)."""

import difflib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.api.agent_findings import good, judge_files, judge_inspection, stop, warn
from dgm.api.agent_import import import_agent
from dgm.api.arguments import SettingValues, check_amount, model_of, use_settings
from dgm.api.running import run_session
from dgm.archive.lock import error_of_write
from dgm.archive.snapshots import from_folder, write_folder
from dgm.config import Settings
from dgm.domain import Entry, Snapshot, Usage
from dgm.errors import AgentFault, Hint, UserError
from dgm.meta.contract import FILE, Contract, read_contract
from dgm.meta.seeds import SEED_BYTES
from dgm.models.scripted import Script
from dgm.paths import asset, seed_folder
from dgm.sandboxes.choose import choose
from dgm.search.model_checks import prices_of
from dgm.steps import OnStep, Step, ignore
from dgm.views.own_agent import AgentCheckView, Finding, NewAgentView
from dgm.worker.inspection import inspect_agent
from dgm.worker.solving import SolveContext, SolveResult, UsageJournal, solve

LIMIT_BYTES = 4_000_000
DEFAULT = "solid"
CHECK = "check.py"
MAX_USD = 1.0
TRIAL_S = 300.0
"""Wall time of a real conversation."""
REPOSITORY: Snapshot = {
    "README.md": Entry(b"The state of the project is in status.txt.\n"),
    "status.txt": Entry(b"waiting\n"),
}
"""The repository of the conversations."""
PROBLEM = "The file status.txt holds the word 'waiting'. It has to hold the word 'ready' instead. Change it, then end."
"""The task of a real conversation."""
ANSWER = b"ready"
STEPS = {
    "packages": "installing packages",
    "start": "starting the agent",
    "solve": "a dry conversation",
    "repeat": "the same conversation again",
    "improve": "a dry edit of itself",
}


@dataclass(frozen=True, slots=True)
class AgentTemplate:
    """One template."""

    name: str
    description: str
    edit: tuple[str, ...]
    """The files that a user changes first."""
    program: bool = False
    """True for a program whose settings the user has already; its check is the file that such templates share."""

    @property
    def folder(self) -> Path:
        """The folder with its files."""
        return seed_folder(self.name) if self.name == DEFAULT else asset("archive", "templates", self.name)


TEMPLATES: Sequence[AgentTemplate] = (
    AgentTemplate(
        DEFAULT, "the shipped agent for real models, without packages", ("agent/prompts.py", "agent/loop.py")
    ),
    AgentTemplate("shell", "any program of the command line, edited by solid", ("run.sh", "prompt.md")),
    AgentTemplate("anthropic", "a loop on the package anthropic", ("prompts/system.md", "agent.py")),
    AgentTemplate("openai-agents", "the package openai-agents", ("prompts/system.md", "agent.py")),
    AgentTemplate("langchain", "LangChain's create_agent", ("prompts/system.md", "agent.py")),
    AgentTemplate("smolagents", "the package smolagents", ("prompts/system.md", "agent.py")),
    AgentTemplate("mini-swe-agent", "mini-swe-agent as a package", ("config.yaml", "prompts/task.md")),
    AgentTemplate("node", "JavaScript without packages", ("prompts/system.md", "agent.mjs")),
    AgentTemplate("claude-code", "Claude Code", ("CLAUDE.md",), program=True),
    AgentTemplate("codex", "Codex CLI", ("AGENTS.md",), program=True),
    AgentTemplate("opencode", "OpenCode", ("AGENTS.md",), program=True),
    AgentTemplate("copilot", "GitHub Copilot CLI", ("AGENTS.md",), program=True),
    AgentTemplate("qwen-code", "Qwen Code", ("QWEN.md",), program=True),
    AgentTemplate("cline", "Cline CLI", (".clinerules/how-to-work.md",), program=True),
    AgentTemplate("aider", "aider", ("CONVENTIONS.md",), program=True),
)


def find_template(name: str) -> AgentTemplate:
    """Return the template of that name.

    Raises:
        UserError: there is none.
    """
    templates = {template.name: template for template in TEMPLATES}
    if name in templates:
        return templates[name]
    near = difflib.get_close_matches(name, templates, 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise UserError(f"no template {name!r} ({hint}there are: {', '.join(templates)})")


def agent_init(
    folder: str | Path,
    *,
    template: str = DEFAULT,
    repository: str | Path | None = None,
    evolve: Sequence[str] = (),
) -> NewAgentView:
    """Write a working agent into a new folder, to be changed into your own.

    Templates: solid, shell, claude-code, codex, opencode, copilot, qwen-code, cline, aider, anthropic, openai-agents,
    langchain, smolagents, mini-swe-agent, node.

    Args:
        folder: A new or empty folder.
        template: One of the templates.
        repository: Take over its setup of the template's program: instructions, skills, settings.
        evolve: With --repository: let evolution edit these, too: hooks, permissions, mcp.

    Raises:
        UserError: there is no such template, the folder is not empty or cannot be written, or the setup cannot be
            taken over.
    """
    target, chosen = Path(folder), find_template(template)
    if evolve and not repository:
        raise UserError(
            "only a setup that is taken over has these kinds; name its repository", argument="evolve"
        )
    if target.is_dir() and any(target.iterdir()):
        hint = Hint("to check the agent in it", "agent check", (str(folder),))
        raise UserError(f"{target}: not empty; name a new folder", hint=hint)
    if target.exists() and not target.is_dir():
        raise UserError(f"{target}: not a folder; name a new one")
    if not target.absolute().parent.is_dir():
        raise UserError(f"{target}: there is no folder {target.absolute().parent}; make it first")
    files = dict(from_folder(chosen.folder, limit_bytes=LIMIT_BYTES))
    if chosen.program:
        files[CHECK] = Entry((chosen.folder.parent / CHECK).read_bytes())
    imported = import_agent(files, template, Path(repository), evolve) if repository else None
    try:
        write_folder(files, target)
    except OSError as error:
        raise error_of_write(target, error) from error
    return NewAgentView(
        folder=target,
        template=chosen.name,
        description=chosen.description,
        files=len(files),
        edit=chosen.edit,
        repository=Path(repository) if repository else None,
        imported=imported,
    )


def agent_check(
    folder: str | Path,
    *,
    model: str | Script | None = None,
    max_usd: float | None = None,
    settings: SettingValues | None = None,
    on_step: OnStep = ignore,
) -> AgentCheckView:
    """Check what would stop a search with an agent: manifest, sizes, packages, start, and dry conversations.

    A scripted model answers at no cost. Exits with 1 if something would stop a search.

    Args:
        folder: The agent.
        model: Also let it do one small task with this model; it may cost money.
        max_usd: Money for that task, default 1.
        settings: A setting, such as limits.check_s=30; model=NAME only tells the agent that name.
        on_step: is called with each part that takes time.

    Raises:
        UserError: the folder is none, a setting is wrong, or the model cannot be used.
        Infrastructure: the sandboxes or the model failed, which says nothing about the agent.
    """
    check_amount("max_usd", max_usd)
    if max_usd is not None and not model:
        raise UserError("nothing is paid without a model; name one", argument="max_usd")
    place = Path(folder)
    if not place.is_dir():
        raise UserError(
            f"{folder}: not a folder", hint=Hint("to make an agent there", "agent init", (str(folder),))
        )
    with use_settings(settings, {"model": model_of(model)}) as resolved:
        if model:
            prices_of(resolved)
            limits = resolved.limits.model_copy(update={"usd": max_usd or MAX_USD})
            resolved = resolved.model_copy(update={"limits": limits})
        spent = UsageJournal()
        findings = run_session(lambda: _check(place, resolved, bool(model), spent, on_step))
    fit = all(finding.level != "stop" for finding in findings)
    return AgentCheckView(folder=place, fit=fit, findings=tuple(findings), usd=spent.usage.usd)


async def _check(
    folder: Path, settings: Settings, converse: bool, spent: UsageJournal, on_step: OnStep
) -> Sequence[Finding]:
    try:
        source = from_folder(folder, limit_bytes=SEED_BYTES) if (folder / FILE).is_file() else {}
        contract = read_contract(source)
    except AgentFault as fault:
        return [_judge_unreadable(folder, fault)]
    findings = [_judge_manifest(contract), *judge_files(source, contract, settings.limits)]
    if any(finding.level == "stop" for finding in findings):
        return findings
    engine = choose(settings.sandbox, settings)
    inspection = await inspect_agent(
        source, REPOSITORY, engine, settings, lambda part: on_step(Step(STEPS[part]))
    )
    findings += judge_inspection(contract, inspection)
    if converse and all(finding.level != "stop" for finding in findings):
        on_step(Step("a small task with the model"))
        findings.append(await _converse(source, settings, engine.name, spent))
    return findings


def _judge_unreadable(folder: Path, fault: AgentFault) -> Finding:
    if fault.stage != "contract":
        advice = "take out what is not the agent's own: packages are named in requires, data is left outside"
        return stop("sizes", str(fault), advice)
    missing = not (folder / FILE).is_file()
    return stop("manifest", str(fault), f"copy {FILE} of a new agent" if missing else f"correct {FILE}")


def _judge_manifest(contract: Contract) -> Finding:
    return good("manifest", f"{' '.join(contract.command)} JOB; check: {' '.join(contract.check)}")


async def _converse(source: Snapshot, settings: Settings, sandbox: str, spent: UsageJournal) -> Finding:
    context = SolveContext(settings, sandbox, TRIAL_S)
    with tempfile.TemporaryDirectory(prefix="dgm-check-") as outside:
        try:
            result = await solve(source, Path(outside), REPOSITORY, PROBLEM, context, spent)
        except AgentFault as fault:
            return stop("model", f"{fault.stage}: {fault}", "look at what the agent leaves")
    return _judge_conversation(result, spent.usage)


def _judge_conversation(result: SolveResult, usage: Usage) -> Finding:
    work = result.work
    state = work.workspace.get("status.txt")
    cost = f"{usage.calls} calls, {usage.input_tokens + usage.output_tokens:,} tokens, {usage.usd:.4f} USD"
    if state is not None and ANSWER in state.data:
        return good("model", f"a small task is solved: {cost}")
    lines = work.completed.output.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1][:200] if lines else "no output"
    message = f"a small task is not solved: {cost}; exits {work.completed.exit_code}: {last}"
    return warn("model", message, "try a stronger model, or change what the agent tells it")
