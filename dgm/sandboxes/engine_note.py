"""The engine that a run's sandboxes were on, noted on this machine so that no later session changes it silently.

An address is this machine's matter: it decides no verdict and is not recorded in the run, which may travel.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from dgm.errors import UserError
from dgm.paths import state_folder
from dgm.protocols import SandboxEngine
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import (
    EngineAddress,
    find_cluster,
    find_named_engine,
    resolve_address,
)
from dgm.sandboxes.engine_group import EngineGroup
from dgm.sandboxes.ray_address import NAME as RAY
from dgm.sandboxes.ray_address import is_ray_address

_FOLDER = "engines"
_OF_THIS_MACHINE = "auto"


def note_engine(run: str, engine: SandboxEngine) -> None:
    """Note the address of a run's engine, or of all its engines, if a person named one by whatever means.

    Args:
        run: the run's id.
        engine: of its sandboxes.
    """
    if engine.name == RAY:
        cluster = find_cluster()
        if cluster == _OF_THIS_MACHINE:
            _note_of(run).unlink(missing_ok=True)
        elif cluster:
            _note_of(run).write_text(f"ray://{cluster}", encoding="utf-8")
        return
    if isinstance(engine, EngineGroup):
        addresses = engine.addresses
    elif isinstance(engine, DockerEngine):
        addresses = [engine.address]
    else:
        return
    if addresses[0].origin:
        _note_of(run).write_text(_text_of(addresses), encoding="utf-8")


def check_engine(run: str, name: str, sandbox: str) -> None:
    """Make sure that the environment leads to the engine that the run was on; a person may name another.

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
    if sandbox == RAY:
        raise UserError(
            f"{name}: its sandboxes were on the cluster {before}, and now would be on the one of this machine: "
            f"say --engine {before}, or --engine ray for this machine's"
        )
    now = resolve_address()
    if before != now.url:
        several = " " in before
        raise UserError(
            f"{name}: its sandboxes were on the {'engines' if several else 'engine'} {before}, and now would be on "
            f"{now}: say which with --engine{', once for each' if several else ''}"
        )


def _text_of(addresses: Sequence[EngineAddress]) -> str:
    return " ".join(address.url for address in addresses)


def _note_of(run: str) -> Path:
    # The id is the run's, which may be a stranger's: it is no name of a file.
    return state_folder(_FOLDER) / hashlib.sha256(run.encode("utf-8", "surrogateescape")).hexdigest()[:32]
