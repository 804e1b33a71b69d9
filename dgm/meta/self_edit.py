"""The operators ``self-edit`` and ``module``: the parent works on its own source, or on one named part of it alone.

It has evidence of its own failures. Source of the idea: arXiv:2505.22954 (the Darwin Gödel Machine); of searching
module by module: arXiv:2410.06153. An improve job runs the same program and the same loop
as a solve job, with the agent's folder as the workdir. An agent can therefore improve the way in which it improves.
"""

import re
from collections.abc import Mapping, Sequence

from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.messages import Message
from dgm.meta.contract import FILE, OWN_EDITOR, PARTS, Contract, Part, matches, read_contract
from dgm.meta.evidence import EVIDENCE_FOLDER, describe_evidence
from dgm.meta.operators import OperatorContext, choose_editor
from dgm.meta.task_words import (
    MAX_PREDICTIONS,
    TaskWords,
    find_last_words,
    find_lines,
    find_statement,
    promisable_tasks,
    read_predictions,
)
from dgm.protocols import Brief, Completed, Job, JobKind, Needs, Proposal, Work, Workbench

WORKDIR = "/work/agent"
LOOP = PARTS[0]
"""The part of files that belong to no other part."""
MEANINGS = {
    "loop": "how it asks the model and carries out what the model wants, again and again",
    "tools": "what the model can call, and how that is run",
    "context": "what the model is shown of what tools print, and how much",
    "prompts": "what the model is told before it begins",
    "memory": "what is kept of the conversation, and what is carried over",
    "completion": "when the work counts as finished, and what is checked then",
}
_STEMS: Mapping[str, Sequence[str]] = {
    "loop": ("main", "step", "turn", "act", "chat", "forward", "loop", "run", "solve", "work"),
    "tools": ("bash", "command", "edit", "exec", "patch", "shell", "tool"),
    "context": (
        "compact",
        "compress",
        "context",
        "cut",
        "limit",
        "output",
        "token",
        "trim",
        "trunc",
        "window",
    ),
    "prompts": ("instruct", "message", "persona", "prompt", "system", "template"),
    "memory": ("conversation", "evidence", "histor", "memor", "message", "note", "summar", "transcript"),
    "completion": ("complet", "done", "finish", "max", "stop", "submit", "valid", "verif"),
}
"""Map of part to prefixes of words in the paths of its files."""
_STATEMENT_CHARS = 400
_LISTED = 200
"""Maximum number of listed files."""


class SelfEdit:
    """An operator with one parent and one child."""

    name = "self-edit"

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Let the parent edit its own source once."""
        problem = self.making.prompts.fill("self-edit", problem_values(brief))
        work = await edit_source(self.making, brief, bench, problem)
        return propose_child(brief, work)


async def edit_source(
    making: OperatorContext,
    brief: Brief,
    bench: Workbench,
    problem: str,
    workspace: Snapshot | None = None,
) -> Work:
    """Let the first parent work on its own source, or on ``workspace``.

    Raises:
        AgentFault: stage ``unchanged``: it failed before it changed anything; or as ``bench.work``.
    """
    job = improve_job(making, brief, problem, workspace)
    work = await bench.work(job)
    ending = work.completed.bad_end
    if ending and work.workspace == job.workspace:
        reason = f"the agent {ending} and left its source as it was"
        raise AgentFault("unchanged", reason, work.completed.output)
    return work


def improve_job(
    making: OperatorContext, brief: Brief, problem: str, workspace: Snapshot | None = None
) -> Job:
    """Return the job in which the first parent works on its own source, or on ``workspace``, with evidence."""
    source = brief.parents[0].source
    contract = read_contract(source)
    if _is_bounded(contract):
        problem += making.prompts.fill("place", _place_values(contract))
    if brief.evidence and promisable_tasks(brief):
        verdicts = f"{EVIDENCE_FOLDER}/agents/{brief.parents[0].agent.id}/verdicts.md"
        problem += making.prompts.fill("predict", {"count": MAX_PREDICTIONS, "verdicts": verdicts})
    return Job(
        kind=JobKind.IMPROVE,
        problem=problem,
        source=choose_editor(contract, source, making.editor),
        workspace=source if workspace is None else workspace,
        image=making.image,
        workdir=WORKDIR,
        time_limit_s=making.time_limit_s,
        evidence=brief.evidence,
    )


def propose_child(brief: Brief, work: Work, stated: str = "") -> Proposal:
    """Return the child that an agent left, with the rationale and the predictions in its last words."""
    words = work.conversation
    predictions = read_predictions(find_lines(words, "Predicts"), promisable_tasks(brief))
    return Proposal(work.workspace, rationale(words), work.completed.output, stated, predictions)


def problem_values(brief: Brief, also: Sequence[str] = ()) -> dict[str, object]:
    """Return the values that the prompts of all improve jobs name; ``also``: lines of further evidence."""
    return {
        **brief.facts,
        "check": " ".join(read_contract(brief.parents[0].source).check),
        "child_number": brief.child_number,
        "evidence": describe_evidence(brief, also),
    }


def _is_bounded(contract: Contract) -> bool:
    """Return whether an editor must be told more than that ``agent.toml`` stays as it is."""
    return (contract.editable, contract.protected, contract.editor) != (("**",), (FILE,), OWN_EDITOR)


def _place_values(contract: Contract) -> dict[str, object]:
    return {
        "workdir": WORKDIR,
        "check": " ".join(contract.check),
        "editable": ", ".join(f"`{pattern}`" for pattern in contract.editable),
        "protected": ", ".join(f"`{pattern}`" for pattern in contract.protected),
        "foreign": ""
        if contract.editor == OWN_EDITOR
        else " It is another agent than you; yours is not in it.",
    }


def rationale(conversation: Sequence[Message]) -> str:
    """Return one line of at most 200 characters from the model's text.

    It is the text after the last ``Rationale:``, else the first line of the last message.
    """
    return (find_statement(conversation, "Rationale") or find_last_words(conversation))[:200]


def describe_failure(check: Completed, max_chars: int) -> str:
    """Return how a check failed, such as ``exits 1``, and the end of its output; empty if it passed."""
    if not check.exit_code and not check.timed_out:
        return ""
    output = check.output.decode("utf-8", "replace").strip()[-max_chars:] or "(no output)"
    return f"{'does not end in time' if check.timed_out else f'exits {check.exit_code}'}:\n\n{output}"


class Module:
    """An operator with one parent, one part and one child.

    The names of files decide to which part they belong, or ``[agent.parts]`` in the agent's ``agent.toml``. A part
    without a file lies in the loop's files.
    """

    name = "module"
    needs = Needs(aims=PARTS)

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Let the parent edit one part of its own source.

        Raises:
            AgentFault: stage ``part``: it has no such part; ``protected``: another part was changed; ``statement``: the
                model does not say why the change is general, or names a task; or as ``bench`` raises.
        """
        source = brief.parents[0].source
        part = brief.aim or PARTS[brief.child_number % len(PARTS)]
        files = files_of_part(source, part, read_contract(source))
        values = {
            **problem_values(brief),
            "part": part,
            "meaning": MEANINGS[part],
            "places": "\n".join(f"- `{path}`" for path in files[:_LISTED]),
        }
        work = await edit_source(self.making, brief, bench, self.making.prompts.fill("module", values))
        conversation, child = work.conversation, work.workspace
        stated = find_statement(conversation, "General")[:_STATEMENT_CHARS]
        if child != source:
            changed = sorted(path for path in source if source[path] != child.get(path) and path not in files)
            if changed:
                paths = ", ".join(changed[:5]) + (" ..." if len(changed) > 5 else "")
                raise AgentFault("protected", f"changed what does not belong to the part {part!r}: {paths}")
            _check_statement(stated, brief)
        return propose_child(brief, work, stated)


def files_of_part(source: Snapshot, part: str, contract: Contract) -> Sequence[str]:
    """Return the paths of a part that a child may change, sorted.

    Raises:
        AgentFault: stage ``part``: there is no such part, or no such file.
    """
    if part not in PARTS:
        raise AgentFault("part", f"there is no part {part!r} of a scaffold; there are {', '.join(PARTS)}")
    by_part: dict[str, list[str]] = {name: [] for name in PARTS}
    for path in sorted(filter(contract.may_change, source)):
        for name in _parts_of(path, contract.parts) or {LOOP}:
            by_part[name].append(path)
    files = by_part[part] or by_part[LOOP]
    if not files:
        raise AgentFault("part", f"nothing in the parent's source belongs to the part {part!r}")
    return files


def _parts_of(path: str, declared: Mapping[Part, Sequence[str]]) -> set[str]:
    if declared:
        # Former agents name definitions, ``path::name``; their files count.
        return {
            part
            for part, patterns in declared.items()
            if matches(path, [pattern.partition("::")[0] for pattern in patterns])
        }
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", path)]
    return {part for part, stems in _STEMS.items() if any(word.startswith(tuple(stems)) for word in words)}


def _check_statement(stated: str, brief: Brief) -> None:
    if not stated:
        raise AgentFault("statement", "not a word on why the change is general (no line with 'General:')")
    if task := TaskWords.of(brief).find_mention(stated):
        raise AgentFault("statement", f"the change is not general: its statement names {task!r}, of a task")
