"""The engine that a run's sandboxes were on, noted on this machine so that no later session changes it silently.

An address is this machine's matter: it decides no verdict and is not recorded in the run, which may travel.
"""

import hashlib
from pathlib import Path

from dgm.errors import UserError
from dgm.paths import state_folder
from dgm.protocols import SandboxEngine
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import find_cluster, find_named_engine, resolve_address
from dgm.sandboxes.engine_group import EngineGroup
from dgm.sandboxes.ray_address import NAME as RAY
from dgm.sandboxes.ray_address import is_ray_address


def note_engine(run: str, engine: SandboxEngine) -> None:
    """Note the address of a run's engine, or of all its engines, if a user named one by whatever means.

    Args:
        run: the run's id.
        engine: of its sandboxes.
    """
    text = ""
    if engine.name == RAY:
        cluster = find_cluster()
        if cluster == "auto":  # this machine's
            _note_of(run).unlink(missing_ok=True)
        elif cluster:
            text = f"ray://{cluster}"
    elif isinstance(engine, DockerEngine | EngineGroup):
        text = " ".join(address.url for address in engine.addresses if address.origin)
    if text:
        _note_of(run).write_text(text, encoding="utf-8")


def check_engine(run: str, name: str, sandbox: str) -> None:
    """Make sure that the environment leads to the engine that the run was on; a user may name another.

    Args:
        run: the run's id.
        name: of the run, for people.
        sandbox: the kind that is about to be opened.

    Raises:
        UserError: it leads to another one.
    """
    note = _note_of(run)
    if find_named_engine() or not note.is_file():
        return
    before = note.read_text(encoding="utf-8")
    if is_ray_address(before) != (sandbox == RAY):
        return
    now = "the cluster of this machine" if sandbox == RAY else str(resolve_address())
    if sandbox == RAY or before != resolve_address().url:
        raise UserError(
            f"{name}: its sandboxes were on {before}, and now would be on {now}: say which with --engine "
            "(for several engines, once for each)"
        )


def _note_of(run: str) -> Path:
    # The id is the run's, which may be a stranger's: it is no name of a file.
    return state_folder("engines") / hashlib.sha256(run.encode("utf-8", "surrogateescape")).hexdigest()[:32]
