"""Where each program that a template wraps keeps a user's setup in a repository (``agent_setups.toml``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from dgm.config.toml_files import read_toml


class Kind(StrEnum):
    """The purpose of a file of a setup."""

    INSTRUCTIONS = "instructions"
    SKILLS = "skills"
    AGENTS = "sub-agents"
    COMMANDS = "commands"
    HOOKS = "hooks"
    PERMISSIONS = "permissions"
    MCP = "mcp"


ON_REQUEST = (Kind.HOOKS, Kind.PERMISSIONS, Kind.MCP)
"""Kinds that evolution edits only where the user asks for it."""


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """One row of the table, whose head explains the fields."""

    program: str
    packages: str
    paths: Mapping[Kind, tuple[str, ...]]
    servers: str = ""
    left_out: tuple[str, ...] = ()
    project: tuple[str, ...] = ()

    def has(self, name: str, *kinds: Kind) -> bool:
        """Return whether a file is one of these kinds, or of any if none is named, by its path."""
        paths = [path for kind in kinds or Kind for path in self.paths.get(kind, ())]
        return any(name == path or name.startswith(f"{path}/") for path in paths)


@cache
def load_setups() -> Mapping[str, AgentSetup]:
    """Return template → setup of its program."""
    table = read_toml(Path(__file__).with_suffix(".toml"))
    return {
        name: AgentSetup(
            **row | {"paths": {Kind(kind): tuple(paths) for kind, paths in row["paths"].items()}}
        )
        for name, row in table.items()
    }
