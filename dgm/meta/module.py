"""The operator ``module``: the parent changes the files of one named part of itself, and no other file.

Source of the idea of searching module by module: arXiv:2410.06153. The names of files decide to which part they belong,
or ``[agent.parts]`` in the agent's ``agent.toml``. A part without a file lies in the loop's files.
"""

import re
from collections.abc import Mapping, Sequence

from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.meta.contract import PARTS, Contract, Part, matches, read_contract
from dgm.meta.operators import OperatorContext
from dgm.meta.self_edit import edit_source, problem_values, rationale
from dgm.meta.task_words import TaskWords, find_statement
from dgm.protocols import Brief, Needs, Proposal, Workbench

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


class Module:
    """An operator with one parent, one part and one child."""

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
        return Proposal(child, rationale(conversation), work.completed.output, stated)


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
