"""A run, or an agent of it, in forms that other programs read.

The ending of the target decides what is written, or a word for what an ending leaves open. An address such as
``harbor:FOLDER`` names another program's format (``FORMATS``), and ``mlflow:`` a sink (``dgm.sinks``).
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dgm.analysis.agents import find_agent
from dgm.archive.finding import SUFFIX, find_run, locate_run
from dgm.archive.packed import find_addresses, unpack
from dgm.archive.run import Run
from dgm.benchmarks.opening import is_local
from dgm.domain import Agent
from dgm.errors import UserError
from dgm.exports.git import write_patch, write_source
from dgm.exports.graph import write_graph
from dgm.exports.pack import pack
from dgm.exports.predictions import write_predictions
from dgm.exports.provenance import new_documents
from dgm.exports.scrub import LocalIdentity
from dgm.exports.suite_dataset import write_suite
from dgm.exports.tables import EVALUATIONS, SPEND, write_table
from dgm.exports.trajectories import write_trajectories
from dgm.sinks.companion import deliver_once
from dgm.sinks.sink import hide_address, is_sink, list_schemes, resolve_address
from dgm.views.probes import AgentProbesView


class Content(StrEnum):
    """The parts of a run that can be exported."""

    RUN = "run"
    SOURCE = "source"
    PATCH = "patch"
    GENEALOGY = "genealogy"
    EVALUATIONS = "evaluations"
    SPEND = "spend"
    PREDICTIONS = "predictions"
    TRAJECTORIES = "trajectories"
    ATIF = "atif"
    HUGGING_FACE = "hf"
    INSPECT = "inspect"
    HARBOR = "harbor"
    POINTS = "points"
    """Curves, parameters, spans and the best agent, for a sink."""


_TABLES = (Content.EVALUATIONS, Content.SPEND)
ENDINGS: Mapping[str, tuple[Content, ...]] = {
    SUFFIX: (Content.RUN,),
    ".csv": _TABLES,
    ".parquet": _TABLES,
    ".graphml": (Content.GENEALOGY,),
    ".jsonl": (Content.PREDICTIONS,),
    ".json": (Content.PREDICTIONS,),
    ".patch": (Content.PATCH,),
    "/": (Content.SOURCE, Content.TRAJECTORIES, Content.RUN),
}
"""Ending → what can be written so, the default first; ``/`` is a folder."""
_OF_AGENT = (Content.SOURCE, Content.PATCH, Content.PREDICTIONS)
"""Contents of one agent, the best by default."""
Counts = Mapping[str, int]
Writer = Callable[[Run, Agent | None, Path, LocalIdentity], Counts]


@dataclass(frozen=True, slots=True)
class FolderFormat:
    """A new folder for another program, which ``SCHEME:FOLDER`` names."""

    content: Content
    writer: str
    """``module:attribute`` of a ``Writer``; its agent is None for the whole run."""
    of_agent: bool = False
    """True if it holds one agent, by default the best. Like its source, it is refused after failed probes."""


FORMATS: Mapping[str, FolderFormat] = {
    "atif": FolderFormat(Content.ATIF, "dgm.exports.trajectories:write_atif"),
    "harbor": FolderFormat(Content.HARBOR, "dgm.exports.harbor:write_agent", of_agent=True),
    "hf": FolderFormat(Content.HUGGING_FACE, "dgm.exports.huggingface:write_dataset"),
    "inspect": FolderFormat(Content.INSPECT, "dgm.exports.inspect_logs:write_logs"),
}
"""Scheme of an address → its format."""
_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9-]+):(?P<rest>.*)")


class Exported(BaseModel):
    """Files that were written."""

    model_config = ConfigDict(frozen=True)
    run: str
    """Name of the run, or of the suite."""
    agent: int | None = None
    """The exported agent; None for the whole run."""
    what: Content
    target: str
    """Path of the new file or folder."""
    counts: dict[str, int]
    """Number of written things by their name: rows, files, agents …"""
    replaced: dict[str, int] = {}
    """Number of keys and personal names that were taken out, by placeholder; of a packed run."""
    model_name_or_path: str | None = None
    """The name that predictions carry."""
    probes: str | None = None
    """State of the agent's probes, of its source or patch; None of anything else."""
    documents: tuple[str, ...] = ()
    """Paths of the provenance and the bill of packages, which lie beside an agent's source or patch."""
    addresses: tuple[str, ...] = ()
    """Addresses of models and variables of keys in the settings of an unpacked run: a resumed run would use them."""


def export(
    run: str | Path,
    agent: str | int | Path | None = None,
    target: str | Path | None = None,
    *,
    what: str | None = None,
    evaluation: str | None = None,
    force_agents: bool = False,
    allow_failed_probes: bool = False,
) -> Exported:
    """Write a run, or an agent of it, to TARGET, for other programs.

    The ending of TARGET decides: .dgm packs the run to share it; .csv and .parquet hold evaluations or spend; .graphml
    the genealogy; .jsonl an agent's predictions for SWE-bench; .patch its changes for git am. A folder gets an agent's
    source with its history, or the unpacked run of a .dgm. SCHEME:FOLDER writes what another program reads; mlflow:,
    wandb:, tensorboard: and otlp: get what they do not have yet. Nothing is overwritten.

    Args:
        run: Name, folder or .dgm file of the run; a suite's with hf:FOLDER.
        agent: Id, best, cheapest, seed or the start of a commit [default: best].
        target: New file, or new folder (with a / at its end).
        what: source, run, trajectories (folders), evaluations or spend (tables) [default: what TARGET is named].
        evaluation: Take the predictions of this evaluation: its name in RUN, or its path.
        force_agents: Pack agents even if their source has personal paths or what looks like a key.
        allow_failed_probes: Write the source or changes of an agent although it failed a probe.

    Raises:
        UserError: the target exists or cannot be written, or the run does not have the part.
        ArchiveCorrupt: something in the run, or the packed file, is damaged.
    """
    name = None if target is None else agent
    path = agent if target is None else target
    if path is None or isinstance(path, int):
        raise UserError("name the new file or folder, for example best/ or spend.csv")
    address = _ADDRESS.fullmatch(resolve_address(str(path), "target"))
    if address and address["scheme"] == Content.HUGGING_FACE and name is None and _is_suite(str(run)):
        target = Path(address["rest"] or str(run))
        counts = write_suite(str(run), target, LocalIdentity.here())
        return Exported(run=str(run), what=Content.HUGGING_FACE, target=str(target), counts=counts)
    file = locate_run(str(run))
    if address:
        if address["scheme"] not in FORMATS and is_sink(address["scheme"]):
            return _send_points(run, address[0], agent if target is not None else what)
        if what is not None:
            raise UserError(f"{path}: the address says what is written; leave this out", argument="what")
        other = find_format(address["scheme"])
        with Run.open(find_run(str(run))) as opened:
            wanted = None if name is None else str(name)
            target = Path(address["rest"] or other.content.value)
            return _export_content(
                opened, other.content, target, wanted, other, allow_failed_probes=allow_failed_probes
            )
    unpacks = file.is_file() and name is None
    content = choose_content(str(path), what, Content.RUN if unpacks else None)
    if unpacks and content is Content.RUN and Path(path).suffix != SUFFIX:
        return _unpack(file, Path(path))
    with Run.open(find_run(str(run))) as opened:
        wanted = None if name is None else str(name)
        return _export_content(
            opened, content, Path(path), wanted, None, evaluation, force_agents, allow_failed_probes
        )


def _is_suite(name: str) -> bool:
    """Return whether a name means a suite, and no run."""
    try:
        locate_run(name)
    except UserError:
        return is_local(name)
    return False


def _send_points(run: str | Path, address: str, part: object) -> Exported:
    if part is not None:
        raise UserError(f"{hide_address(address)} gets the whole run; leave out {part!r}")
    folder = find_run(str(run))
    counts = {"points": deliver_once(folder, address)}
    return Exported(run=folder.name, what=Content.POINTS, target=hide_address(address), counts=counts)


def find_format(scheme: str) -> FolderFormat:
    """Return the format that an address's scheme names.

    Raises:
        UserError: there is none.
    """
    if scheme not in FORMATS:
        known = ", ".join(f"{name}:" for name in sorted([*FORMATS, *list_schemes()]))
        raise UserError(f"unknown address '{scheme}:'; known: {known}; a file of that name is ./{scheme}:…")
    return FORMATS[scheme]


def choose_content(target: str, what: str | None, default: Content | None = None) -> Content:
    """Return what is written to a target.

    Args:
        target: a path; one that ends in a slash, or has no ending, is a folder.
        what: the user's choice; None: the target's own name (``spend.csv``), else the default of its ending.
        default: that of a folder.

    Raises:
        UserError: the ending is unknown, or does not fit.
    """
    path = Path(target)
    ending = "/" if target.endswith(os.sep) or not path.suffix or path.is_dir() else path.suffix.lower()
    if ending not in ENDINGS:
        known = ", ".join(name for name in ENDINGS if name != "/")
        raise UserError(f"{target}: unknown ending {path.suffix!r}; known: {known}, or a / for a folder")
    contents = ENDINGS[ending]
    if what is None:
        fallback = default if default and ending == "/" else contents[0]
        return next((content for content in contents if content.value == path.stem), fallback)
    if what not in contents:
        kind = "a folder" if ending == "/" else f"a {ending} file"
        raise UserError(f"{target}: {kind} holds {' or '.join(contents)}, not {what!r}", argument="what")
    return Content(what)


def _export_content(
    run: Run,
    content: Content,
    target: Path,
    agent: str | None,
    other: FolderFormat | None,
    evaluation: str | None = None,
    force_agents: bool = False,
    allow_failed_probes: bool = False,
) -> Exported:
    if agent is not None and content not in (*_OF_AGENT, Content.TRAJECTORIES) and other is None:
        raise UserError(f"{target}: {content} is of the whole run; leave out {agent!r}")
    if evaluation is not None and content is not Content.PREDICTIONS:
        raise UserError(f"{target}: only predictions are of an evaluation", argument="evaluation")
    wanted = (
        find_agent(run, "best" if agent is None else agent)
        if agent is not None or content in _OF_AGENT or (other and other.of_agent)
        else None
    )
    replaced: dict[str, int] = {}
    documents: tuple[Path, ...] = ()
    model = probes = None
    counts: Counts
    match content, wanted:
        case Content.RUN, _:
            if target.suffix.lower() != SUFFIX:
                raise UserError(
                    f"{target}: {run.name} is not packed; copy its folder, or name a {SUFFIX} file"
                )
            manifest = pack(run.folder, target, LocalIdentity.here(), force_agents=force_agents)
            counts, replaced = {**manifest.counts, "bytes": target.stat().st_size}, manifest.replaced
        case Content.TRAJECTORIES, _:
            counts = write_trajectories(run, wanted, target, LocalIdentity.here())
        case Content.GENEALOGY, _:
            counts = {"agents": write_graph(run, target)}
        case ((Content.EVALUATIONS | Content.SPEND), _):
            table = SPEND if content is Content.SPEND else EVALUATIONS
            counts = {"rows": write_table(run, table, target)}
        case _, _ if other and not other.of_agent:
            counts = _load_writer(other)(run, wanted, target, LocalIdentity.here())
        case _, Agent() if other or content in (Content.SOURCE, Content.PATCH):
            probes = _require_probes(run, wanted, allow_failed_probes)
            with new_documents(run, wanted, target) as documents:
                counts = _write_agent(run, wanted, target, content, other)
        case _, Agent():
            model, counts = write_predictions(run, wanted, target, evaluation)
        case _:
            raise AssertionError("an agent is found or refused")
    return Exported(
        run=run.name,
        agent=wanted.id if wanted else None,
        what=content,
        target=str(target),
        counts=dict(counts),
        replaced=replaced,
        model_name_or_path=model,
        probes=probes,
        documents=tuple(map(str, documents)),
    )


def _require_probes(run: Run, agent: Agent, allow_failed: bool) -> str:
    view = AgentProbesView.load(run, agent)
    if view.failed and not allow_failed:
        raise UserError(
            f"agent {agent.id} of {run.name} failed the probes {', '.join(view.failed)}: its solutions work "
            "and are insecure; set this to export it nevertheless",
            argument="allow_failed_probes",
        )
    return view.state


def _write_agent(
    run: Run, agent: Agent, target: Path, content: Content, other: FolderFormat | None
) -> Counts:
    if other:
        return _load_writer(other)(run, agent, target, LocalIdentity.here())
    if content is Content.SOURCE:
        return write_source(run, agent, target)
    return {"commits": write_patch(run, agent, target)}


def _load_writer(other: FolderFormat) -> Writer:
    module, _, attribute = other.writer.partition(":")
    writer: Writer = getattr(import_module(module), attribute)
    return writer


def _unpack(file: Path, target: Path) -> Exported:
    manifest = unpack(file, target)
    with Run.open(target) as run:
        addresses = tuple(sorted(find_addresses(run.config)))
    return Exported(
        run=manifest.run.name,
        what=Content.RUN,
        target=str(target),
        counts=manifest.counts,
        replaced=manifest.replaced,
        addresses=addresses,
    )
