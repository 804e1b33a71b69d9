"""The operators of a run: what they are made from, the built-in ones by name, and the editor that a run freezes.

The editor is a shipped agent that works on the source of agents that cannot edit themselves: ``[agent] editor`` of the
seed. Its source stands in ``run.json``, as the prompts do, so that a later version of dgm goes on with the same one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from dgm.archive.snapshots import from_folder
from dgm.config import EvidenceSettings, OperatorSettings, Settings
from dgm.domain import Entry, Snapshot
from dgm.errors import ArchiveCorrupt
from dgm.meta.contract import OWN_EDITOR, Contract, read_contract
from dgm.meta.prompts import Prompts
from dgm.paths import seed_folder
from dgm.plugins import make_plugin
from dgm.protocols import Needing, Needs, Operator

BUILTIN = {
    "self-edit": "dgm.meta.self_edit:SelfEdit",
    "diagnose": "dgm.meta.issue:Diagnose",
    "compare": "dgm.meta.issue:Compare",
    "crossover": "dgm.meta.crossover:Crossover",
    "hyper": "dgm.meta.hyper:Hyper",
    "invent": "dgm.meta.invent:Invent",
    "module": "dgm.meta.self_edit:Module",
    "recombine": "dgm.meta.recombine:Recombine",
    "share": "dgm.meta.share:Share",
    "distil": "dgm.meta.distil:Distil",
}
"""Name → ``module:attribute``, as an entry point names it; called with an ``OperatorContext`` as a plug-in is."""
SHAPE: Mapping[str, int | None] = {"name": None, "make": 2}
"""Attributes of a plug-in's operator, and the number of arguments of its methods; None for plain attributes."""
EDITOR = "editor"
"""Key of a run's configuration below which the editor's files stand."""
_EDITOR_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """The inputs of a run's operators, built-in ones and plug-ins (``dgm.plugins`` says how to ask for them)."""

    image: str
    """Recipe of the sandboxes in which agents improve themselves."""
    time_limit_s: float
    """Wall time of one improve job in seconds, above 0."""
    prompts: Prompts
    """The prompts of the run; they are frozen when it begins."""
    settings: OperatorSettings = field(default_factory=OperatorSettings)
    """The section ``[operators]`` of the run's settings."""
    evidence: EvidenceSettings = field(default_factory=EvidenceSettings)
    """The section ``[evidence]``: what operators show of the parents' past."""
    editor: Snapshot | None = None
    """Source of the shipped agent that edits the run's agents, as it was when the run began; None: as it is now."""


def open_operators(
    settings: Settings,
    image: str,
    prompts: Prompts,
    also: Iterable[str] = (),
    editor: Snapshot | None = None,
) -> Mapping[str, Operator]:
    """Return the operators that the settings name, by name, for agents that run in ``image``.

    Args:
        settings: of the run.
        image: recipe of the sandboxes in which agents improve themselves.
        prompts: of the run.
        also: further operators to open, as replays need them.
        editor: source of the agent that edits the run's agents, as the run froze it; None: there is none.

    Raises:
        UserError: there is none of that name.
    """
    limit_s = settings.limits.improve_limit_s
    context = OperatorContext(image, limit_s, prompts, settings.operators, settings.evidence, editor)
    return {
        name: cast("Operator", make_plugin("operators", name, context, BUILTIN, SHAPE))
        for name in dict.fromkeys((*settings.operator_names, *also))
    }


def needs_of(operators: Mapping[str, Operator]) -> Mapping[str, Needs]:
    """Return each operator's needs from the archive, by name."""
    return {
        name: operator.needs if isinstance(operator, Needing) else Needs()
        for name, operator in operators.items()
    }


def choose_editor(contract: Contract, source: Snapshot, frozen: Snapshot | None) -> Snapshot:
    """Return the source of the agent that works on ``source``: itself, ``frozen``, or else the shipped one."""
    if contract.editor == OWN_EDITOR:
        return source
    return frozen if frozen is not None else read_editor(contract.editor)


def read_editor(name: str) -> Snapshot:
    """Return the source of a shipped agent."""
    return from_folder(seed_folder(name), limit_bytes=_EDITOR_BYTES)


def freeze_editor(seed: Snapshot) -> Mapping[str, Any]:
    """Return the entry of ``run.json`` for the editor that a seed names; empty if agents edit themselves."""
    editor = read_contract(seed).editor
    if editor == OWN_EDITOR:
        return {}
    return {EDITOR: {path: entry.data.decode("utf-8") for path, entry in read_editor(editor).items()}}


def load_editor(config: Mapping[str, Any], where: str) -> Snapshot | None:
    """Return the editor with which a run began; None if it froze none.

    Raises:
        ArchiveCorrupt: it is not what dgm writes.
    """
    files = config.get(EDITOR)
    if files is None:
        return None
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise ArchiveCorrupt(f"{where}: its {EDITOR} is not a table of texts; restore it from a copy")
    return {path: Entry(text.encode("utf-8")) for path, text in files.items()}
