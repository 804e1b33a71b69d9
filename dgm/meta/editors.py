"""The editor of agents that cannot edit themselves: a shipped agent that works on their source in their place.

``[agent] editor`` of the seed names it. Its source is frozen in ``run.json`` when a run begins, as the prompts are, so
that a later version of dgm resumes and replays the run with the same editor.
"""

from collections.abc import Mapping
from typing import Any

from dgm.archive.snapshots import from_folder
from dgm.domain import Entry, Snapshot
from dgm.errors import ArchiveCorrupt
from dgm.meta.contract import OWN_EDITOR, Contract, read_contract
from dgm.paths import seed_folder

KEY = "editor"
"""Key of a run's configuration below which the editor's files stand."""
_BYTES = 1_000_000


def choose_editor(contract: Contract, source: Snapshot, frozen: Snapshot | None) -> Snapshot:
    """Return the source of the agent that works on an agent's source.

    Args:
        contract: of the agent.
        source: of the agent.
        frozen: the editor with which the run began; None: the shipped one of now.
    """
    if contract.editor == OWN_EDITOR:
        return source
    return frozen if frozen is not None else read_editor(contract.editor)


def read_editor(name: str) -> Snapshot:
    """Return the source of a shipped agent."""
    return from_folder(seed_folder(name), limit_bytes=_BYTES)


def freeze_editor(seed: Snapshot) -> Mapping[str, Any]:
    """Return the entry of ``run.json`` for the editor that a seed names; empty if agents edit themselves."""
    editor = read_contract(seed).editor
    if editor == OWN_EDITOR:
        return {}
    return {KEY: {path: entry.data.decode("utf-8") for path, entry in read_editor(editor).items()}}


def load_editor(config: Mapping[str, Any], where: str) -> Snapshot | None:
    """Return the editor with which a run began; None if it froze none.

    Raises:
        ArchiveCorrupt: it is not what dgm writes.
    """
    files = config.get(KEY)
    if files is None:
        return None
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise ArchiveCorrupt(f"{where}: its {KEY} is not a table of texts; restore it from a copy")
    return {path: Entry(text.encode("utf-8")) for path, text in files.items()}
