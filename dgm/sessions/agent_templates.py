"""Templates of agents (``dgm agent init``): each is a working agent, to be changed into one's own."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.lock import error_of_write
from dgm.archive.snapshots import from_folder, write_folder
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.paths import asset, seed_folder
from dgm.sessions.imported_agent import ImportedAgent, import_agent

LIMIT_BYTES = 4_000_000
DEFAULT = "solid"


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
CHECK = "check.py"


@dataclass(frozen=True, slots=True)
class NewAgent:
    """An agent that was made from a template."""

    folder: Path
    template: AgentTemplate
    files: int
    imported: ImportedAgent | None = None


def find_template(name: str) -> AgentTemplate:
    """Return the template of that name.

    Raises:
        UserError: there is none.
    """
    for template in TEMPLATES:
        if template.name == name:
            return template
    known = [template.name for template in TEMPLATES]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise UserError(f"no template {name!r} ({hint}there are: {', '.join(known)})")


def create_agent(
    target: Path, name: str = DEFAULT, repository: Path | None = None, evolve: Sequence[str] = ()
) -> NewAgent:
    """Write a template's files into a new or empty folder.

    Args:
        target: the folder.
        name: of the template.
        repository: takes over the setup that this folder holds for the template's program; None: there is none.
        evolve: ``hooks``, ``permissions``, ``mcp``: what of that setup evolution may edit, too.

    Raises:
        UserError: there is no such template, the folder is not empty or cannot be written, or the setup cannot be
            taken over.
    """
    template = find_template(name)
    if evolve and not repository:
        raise UserError("--evolve: only what is imported has these kinds; give --import, too")
    if target.is_dir() and any(target.iterdir()):
        raise UserError(
            f"{target}: not empty; name a new folder, or check the agent in it: dgm agent check {target}"
        )
    if target.exists() and not target.is_dir():
        raise UserError(f"{target}: not a folder; name a new one")
    if not target.absolute().parent.is_dir():
        raise UserError(f"{target}: there is no folder {target.absolute().parent}; make it first")
    files = dict(from_folder(template.folder, limit_bytes=LIMIT_BYTES))
    if template.program:
        files[CHECK] = Entry((template.folder.parent / CHECK).read_bytes())
    imported = import_agent(files, name, repository, evolve) if repository else None
    try:
        write_folder(files, target)
    except OSError as error:
        raise error_of_write(target, error) from error
    return NewAgent(target, template, len(files), imported)
