"""The findings of an inspection: what of it would stop a search, with what to advice where something is bad."""

import re
from collections.abc import Iterator, Sequence

from dgm.config import LimitSettings
from dgm.domain import Snapshot
from dgm.messages import WireProtocol
from dgm.meta.contract import OWN_EDITOR, Contract
from dgm.protocols import Completed, DryCalls, Work
from dgm.render import fmt
from dgm.views.own_agent import Finding
from dgm.worker.inspection import Inspection
from dgm.worker.own_start import find_start_seconds

FOREIGN = ("vendor", "node_modules", "site-packages", "third_party", ".venv", "venv")
"""Folders of code that is not the agent's own."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
_MISSING = re.compile(r"No module named '([A-Za-z0-9_]+)")
_OLDEST_PYTHON = re.compile(r"only supports >=(3\.\d+)")
_NO_COMMAND = re.compile(r"([\w.+-]+): (?:command )?not found")
_WIRES = (WireProtocol.MESSAGES, WireProtocol.RESPONSES, WireProtocol.CHAT)
_SHOWN = 4
"""Names shown of a longer list."""


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
    most = f"at most {limits.agent_files} files, {fmt.size(limits.agent_bytes)}"
    message = f"{fmt.count(len(source), 'file')}, {fmt.size(size)} ({most})"
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
    shown = ", ".join(sorted(names)[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
