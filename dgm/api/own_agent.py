"""Agents of the user's own: made from templates, and checked before a search (``dgm agent init``, ``check``)."""

import ast
import difflib
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.api.agent_import import import_agent
from dgm.api.arguments import SettingValues, check_amount, model_of, use_settings
from dgm.api.running import run_session
from dgm.archive.lock import error_of_write
from dgm.archive.snapshots import from_folder, write_folder
from dgm.config import LimitSettings, Settings
from dgm.domain import Entry, Snapshot, Usage
from dgm.errors import AgentFault, Hint, UserError
from dgm.messages import WireProtocol
from dgm.meta.contract import FILE, OWN_EDITOR, Contract, read_contract
from dgm.meta.seeds import SEED_BYTES
from dgm.models.scripted import Script
from dgm.paths import asset, seed_folder, seed_names
from dgm.protocols import Completed, DryCalls, SandboxEngine, Work
from dgm.render import fmt
from dgm.sandboxes.choose import choose
from dgm.search.start import prices_of
from dgm.steps import OnStep, Step, ignore
from dgm.views.own_agent import AgentCheckView, Finding, NewAgentView
from dgm.worker.agent_check import Inspection, find_start_seconds, inspect_agent
from dgm.worker.session import UsageJournal
from dgm.worker.solving import SolveRequest, SolveResult, solve

FOREIGN = ("vendor", "node_modules", "site-packages", "third_party", ".venv", "venv")
"""Folders of code that is not the agent's own."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
_MISSING = re.compile(r"No module named '([A-Za-z0-9_]+)")
_OLDEST_PYTHON = re.compile(r"only supports >=(3\.\d+)")
_NO_COMMAND = re.compile(r"([\w.+-]+): (?:command )?not found")
_WIRES = (WireProtocol.MESSAGES, WireProtocol.RESPONSES, WireProtocol.CHAT)
_SHOWN = 4
"""Names shown of a longer list."""
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
        is_seed = self.name in seed_names()
        return seed_folder(self.name) if is_seed else asset("archive", "templates", self.name)


def _seed_template(name: str) -> AgentTemplate:
    """Return a shipped agent as a template; its package's docstring describes it."""
    package = seed_folder(name) / "agent"
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or name
    files = ("prompts.py", f"{name}.py", "loop.py")
    edit = tuple(f"agent/{file}" for file in files if (package / file).is_file())
    return AgentTemplate(name, text.rstrip("."), edit)


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
    *(_seed_template(name) for name in seed_names() if name != DEFAULT),
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
    """Write a working agent into a new folder, for you to change.

    Templates: solid, shell, claude-code, codex, opencode, copilot, qwen-code, cline, aider, anthropic, openai-agents,
    langchain, smolagents, mini-swe-agent, node; and designs of the literature: codeact, debate, live, plain, reviser,
    team, treesearch, workflow.

    Args:
        folder: A new or empty folder.
        template: One of the templates.
        repository: Import this repository's setup of the template's program: instructions, skills, settings.
        evolve: With --repository: also evolve these: hooks, permissions, mcp.

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
    """Check an agent for anything that would stop a search: manifest, sizes, packages, start, dry runs.

    A scripted model answers at no cost. Exits with 1 if something would stop a search.

    Args:
        folder: The agent.
        model: Also let it do one small task with this model; it may cost money.
        max_usd: Spending limit for that task (default: 1).
        settings: A setting, such as limits.check_s=30; model=NAME only tells the agent that name.
        on_step: is called with each part that takes time.

    Raises:
        UserError: the folder is none, a setting is wrong, or the model cannot be used.
        Infrastructure: the sandboxes or the model failed, which says nothing about the agent.
    """
    check_amount("max_usd", max_usd)
    if max_usd is not None and not model:
        raise UserError("nothing is paid without a model; name one", argument="max_usd")
    path = Path(folder)
    if not path.is_dir():
        raise UserError(
            f"{folder}: not a folder", hint=Hint("to make an agent there", "agent init", (str(folder),))
        )
    with use_settings(settings, {"model": model_of(model)}) as resolved:
        if model:
            prices_of(resolved)
            limits = resolved.limits.model_copy(update={"usd": max_usd or MAX_USD})
            resolved = resolved.model_copy(update={"limits": limits})
        spent = UsageJournal()
        findings = run_session(lambda: _check(path, resolved, bool(model), spent, on_step))
    fit = all(finding.level != "stop" for finding in findings)
    return AgentCheckView(folder=path, fit=fit, findings=tuple(findings), usd=spent.usage.usd)


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
        findings.append(await _converse(source, settings, engine, spent))
    return findings


def _judge_unreadable(folder: Path, fault: AgentFault) -> Finding:
    if fault.stage != "contract":
        advice = "take out what is not the agent's own: packages are named in requires, data is left outside"
        return stop("sizes", str(fault), advice)
    missing = not (folder / FILE).is_file()
    return stop("manifest", str(fault), f"copy {FILE} of a new agent" if missing else f"correct {FILE}")


def _judge_manifest(contract: Contract) -> Finding:
    return good("manifest", f"{' '.join(contract.command)} JOB; check: {' '.join(contract.check)}")


async def _converse(
    source: Snapshot, settings: Settings, engine: SandboxEngine, spent: UsageJournal
) -> Finding:
    with tempfile.TemporaryDirectory(prefix="dgm-check-") as outside:
        try:
            request = SolveRequest(Path(outside), REPOSITORY, PROBLEM, TRIAL_S)
            result = await solve(source, request, engine, settings, spent)
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


# Findings: what of an inspection would stop a search, with what to write where something is bad


def good(part: str, message: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(level="ok", part=part, message=message)


def warn(part: str, message: str, advice: str) -> Finding:
    """Return a finding that costs money or quality, but stops nothing."""
    return Finding(level="warn", part=part, message=message, advice=advice)


def stop(part: str, message: str, advice: str) -> Finding:
    """Return a finding that would stop a search."""
    return Finding(level="stop", part=part, message=message, advice=advice)


def judge_files(source: Snapshot, contract: Contract, limits: LimitSettings) -> Iterator[Finding]:
    """Yield the findings about an agent's own files."""
    size = sum(len(entry.data) for entry in source.values())
    bound = f"at most {limits.agent_files} files, {fmt.size(limits.agent_bytes)}"
    message = f"{fmt.count(len(source), 'file')}, {fmt.size(size)} ({bound})"
    if len(source) > limits.agent_files or size > limits.agent_bytes:
        setting = f"limits.agent_files={len(source) * 2} and limits.agent_bytes={size * 2}"
        yield stop("sizes", message, f"take out what is not the agent's own, or set {setting}")
    else:
        yield good("sizes", message)
    yield _judge_editable(source, contract)


def _judge_editable(source: Snapshot, contract: Contract) -> Finding:
    may = [path for path in source if contract.may_change(path)]
    lines = sum(source[path].data.count(b"\n") for path in may)
    message = f"{fmt.count(len(may), 'file')} and {fmt.count(lines, 'line')} may change: {_shorten(may)}"
    if not may:
        advice = 'agent.toml: editable = ["**"], or the paths of files that there are'
        return stop("editable", f"no file matches {', '.join(contract.editable)}", advice)
    foreign = sorted({part for path in may for part in path.split("/")[:-1] if part in FOREIGN})
    if foreign:
        patterns = ", ".join(f'"{name}/**"' for name in foreign)
        return warn("editable", message, f"agent.toml: protected = [{patterns}]")
    return good("editable", message)


def judge_inspection(contract: Contract, found: Inspection) -> Iterator[Finding]:
    """Yield the findings about an agent's packages, its start and its dry conversations."""
    packages = found.packages
    if packages.failure:
        yield stop("packages", packages.failure, _packages_remedy(packages.failure))
        return
    listed = (
        [f"{len(contract.requires)} asked for by agent.toml"] if contract.requires or not contract.npm else []
    )
    listed += ["those of package-lock.json"] if contract.npm else []
    size = f", {fmt.size(packages.size_bytes)} in {packages.seconds:.1f} s" if packages.size_bytes else ""
    yield good("packages", " and ".join(listed) + size)
    if found.start is not None:
        yield _judge_start(contract, found.start, found.limits)
        if packages.install_scripts and found.start.exit_code:
            advice = (
                "package.json: the package that holds the native program; or agent.toml: image = a Dockerfile"
            )
            message = f"install scripts are not run: {_shorten(packages.install_scripts)}"
            yield warn("scripts", message, advice)
    if found.solve is not None:
        yield _judge_solve(found.solve)
        if found.solve.dry_calls is not None:
            yield from _judge_calls(found.solve.dry_calls)
            if found.solve.calls:
                yield _judge_repetition(found)
        yield _judge_litter(found.solve)
    elif found.solve_fault:
        yield stop("solve", found.solve_fault, "the agent: leave the repository as it was")
    if found.improved:
        yield _judge_improve(contract, found)


def _packages_remedy(failure: str) -> str:
    if failure.startswith("package-lock.json"):
        return "package-lock.json: packages of the registry; npm install writes it anew"
    if failure.startswith("agent.toml: image"):
        return 'agent.toml: image = the path of a Dockerfile that builds, or a recipe such as "python"'
    if "--python-version" in failure:
        oldest = _OLDEST_PYTHON.search(failure)
        python = f"FROM python:{oldest[1]}-slim" if oldest else "a Python that the package supports"
        return f"agent.toml: image = a Dockerfile with {python}; or a version of the package for the image's Python"
    return "agent.toml: requires = names and versions of packages that have wheels for the image's Python"


def _judge_start(contract: Contract, done: Completed, limits: LimitSettings) -> Finding:
    last = _last_line(done.output)
    command = " ".join(contract.check)
    if done.timed_out:
        message = f"{command}: more than {limits.check_s:g} s of processor time: {last}"
        return stop("start", message, f"the setting limits.check_s={limits.check_s * 3:g}")
    if done.exit_code:
        return stop("start", f"{command}: exits {done.exit_code}: {last}", _start_remedy(contract, done))
    message = f"{find_start_seconds(done):.1f} s of processor time (children may take {limits.check_s:g} s)"
    return good("start", message)


def _start_remedy(contract: Contract, done: Completed) -> str:
    message = done.output.decode("utf-8", "replace")
    missing = _MISSING.search(message)
    if missing:
        return f'agent.toml: requires = ["{missing[1]}"], or the name that the package index has for it'
    # A shell that is the agent's program names the command that it did not find.
    inner = _NO_COMMAND.search(message)
    program = inner[1] if inner else contract.check[0]
    if done.exit_code in (NOT_FOUND, NOT_EXECUTABLE) and "/" not in program:
        lacks = f"agent.toml: a command that the image has; it lacks {program}"
        return (
            f"{lacks}. Those of a Python package come with requires, others with image = a Dockerfile; "
            "or the setting sandbox=bubblewrap, where this machine has it"
        )
    return "agent.toml: check = a command that exits with 0 where the agent can start, without a model"


def _judge_solve(work: Work) -> Finding:
    done, asked = work.completed, f"{fmt.count(work.calls, 'model call')} in {work.completed.seconds:.1f} s"
    last = _last_line(done.output)
    unknown = work.dry_calls.refusals.get("model_not_found", "") if work.dry_calls else ""
    if unknown:
        judge = warn if work.calls else stop
        advice = "the agent: ask for model of the job file; or that alias"
        return judge("solve", f"{asked}; {unknown}", advice)
    if work.calls == 0:
        refused = f" ({', '.join(work.refused)})" if work.refused else ""
        message = f"a solve job never asks the model{refused}: exits {done.exit_code}: {last}"
        advice = "the agent: ask OPENAI_BASE_URL or ANTHROPIC_BASE_URL for the model that the job file names"
        if refused:
            advice = "the agent: ask for what is offered (see refused)"
        return stop("solve", message, advice)
    if done.timed_out:
        advice = "the agent: end when the model calls no tool, or after a number of steps"
        return warn("solve", f"{asked}, and it did not end by itself: {last}", advice)
    if done.exit_code:
        advice = "the agent: exit with 0; what it left is graded all the same"
        return warn("solve", f"{asked}, then it exits {done.exit_code}: {last}", advice)
    return good("solve", asked)


def _judge_calls(calls: DryCalls) -> Iterator[Finding]:
    """Yield what the calls of a dry run show of those in a search."""
    native = list(calls.untranslatable)
    reason = next((reason for reason in calls.untranslatable.values() if reason), "")
    if native:
        works = [name for name in _WIRES if not _cannot_translate(calls, name)]
        message = f"speaks {', '.join(native)}; works behind: {', '.join(works) or 'none'}"
        if reason:
            advice = (
                f"a model that is asked by {' or '.join(works)} (api in its provider's settings)"
                if works
                else ("the agent: one protocol for all of its calls")
            )
            yield warn("protocol", f"{message}. Others: {reason}", advice)
        else:
            yield good("protocol", message)
    if calls.other_models:
        names = _shorten(calls.other_models)
        aliases = ", ".join(f'"{name}" = "default"' for name in calls.other_models)
        advice = f"for a model of another vendor, in the settings: models.aliases = {{{aliases}}}"
        yield warn("alias", f"asks for {names}: the lent model answers", advice)
    for code, refusal in calls.refusals.items():
        if code != "model_not_found":
            advice = "the agent: leave it out, or ask for what is offered"
            yield warn("refused", f"{code}: {refusal}", advice)
    lists = {"": calls.left_out, "behind another protocol: ": calls.lost_in_translation}
    if message := "; ".join(title + ", ".join(names) for title, names in lists.items() if names):
        yield good("left out", message)
    if calls.turn_tokens:
        message = f"about {calls.turn_tokens:,} tokens a turn for prompts and tools, before any work"
        yield good("prompt", message)


def _judge_repetition(found: Inspection) -> Finding:
    """Say whether a repetition would get the paid replies again."""
    if not found.differs:
        message = "the same requests a second time, in a time zone where it is another day"
        return good("repeat", message)
    when = "on another day" if found.differs_by_day else "each time"
    message = f"asks something else {when}: a resumed search pays again, and replays differ: {found.differs}"
    advice = 'agent.toml: volatile = ["a regular expression for it"]; or the agent: leave it out'
    return warn("repeat", message, advice)


def _cannot_translate(calls: DryCalls, target: WireProtocol) -> bool:
    return any(reason for protocol, reason in calls.untranslatable.items() if protocol is not target)


def _judge_litter(work: Work) -> Finding:
    left = sorted(_changed_files(work.patch))
    if not left:
        return good("litter", "nothing is left in the repository")
    patterns = ", ".join(f'"/{path}"' for path in left[:_SHOWN])
    message = f"{_shorten(left)}: would be a part of every patch"
    return warn("litter", message, f"agent.toml: ignored = [{patterns}]")


def _changed_files(patch: bytes) -> set[str]:
    lines = patch.decode("utf-8", "replace").splitlines()
    return {line.rpartition(" b/")[2] for line in lines if line.startswith("diff --git ")}


def _judge_improve(contract: Contract, found: Inspection) -> Finding:
    who = "by itself" if contract.editor == OWN_EDITOR else f"by {contract.editor}"
    if not found.improve_fault:
        return good("improve", f"a child could start; it is edited {who}")
    if "processor time" in found.improve_fault:
        setting = f"limits.check_s={found.limits.check_s * 3:g}"
        advice = f"the setting {setting}, or the agent: end after fewer steps without a tool"
    elif contract.editor == OWN_EDITOR:
        advice = 'the agent: do an improve job as a solve job; or agent.toml: editor = "solid"'
    else:
        advice = "the agent: ask the model and end when it says DONE"
    return stop("improve", f"every child would die: {found.improve_fault}", advice)


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    if lines and lines[-1].startswith("Node.js v"):
        # Node.js names the error above the stack, and ends with its own version.
        lines = [line for line in lines if re.match(r"\w*Error\b", line)] or lines
    return lines[-1][:200] if lines else "no output"


def _shorten(names: Sequence[str]) -> str:
    return fmt.listing(sorted(names), _SHOWN)
