"""Agents of the user's own: a new one, the findings of a check, and the effects of its parts."""

from pathlib import Path
from typing import Literal

from dgm.evaluation.ablation import PartEffect
from dgm.views.evaluation import EvaluationView
from dgm.views.values import View


class ImportedFile(View):
    """A file that was taken over."""

    path: str
    kind: str
    """``instructions``, ``skills``, ``sub-agents``, ``commands``, ``hooks``, ``permissions`` or ``mcp``."""


class ImportRemark(View):
    """A thing that was left out, or that does not work in a sandbox."""

    path: str
    reason: str


class ImportView(View):
    """A setup that was taken over into an agent."""

    taken: tuple[ImportedFile, ...]
    left_out: tuple[ImportRemark, ...]
    out_of_reach: tuple[ImportRemark, ...]
    """What cannot work in a sandbox."""
    evolves: tuple[str, ...]
    """Patterns of what evolution edits."""
    version: str
    """Version of the program that the agent runs."""
    version_remark: str
    """Where that version comes from, or what to do to have another."""


class NewAgentView(View):
    """An agent that was made from a template."""

    folder: Path
    template: str
    description: str
    files: int
    edit: tuple[str, ...]
    """Files that a user changes first."""
    repository: Path | None
    """The repository whose setup was taken over; None if there is none."""
    imported: ImportView | None


class Finding(View):
    """One finding about an agent."""

    level: Literal["ok", "warn", "stop"]
    """``stop``: a search would stop at it."""
    part: str
    """Part of the check, such as ``manifest``, ``packages`` or ``improve``."""
    message: str
    advice: str = ""
    """What to write, and where; empty where all is well."""


class AgentCheckView(View):
    """The findings about an agent before a search."""

    folder: Path
    fit: bool
    """Whether nothing would stop a search."""
    findings: tuple[Finding, ...]
    usd: float
    """Cost of the conversation with a real model; 0 without one."""

    @property
    def exit_code(self) -> int:
        """0 if the agent is fit."""
        return 0 if self.fit else 1


class AblationView(EvaluationView):
    """An evaluation of an agent with and without each of its parts."""

    parts: tuple[PartEffect, ...]
    tasks_to_show: int
    """Tasks with which a difference of 20 points in one direction is shown in 80 % of such ablations."""
