"""The targets of ``dgm export`` other than an agent's source, and the report on each."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dgm.analysis.lineage import Lineage
from dgm.archive.identity import identity_of
from dgm.archive.run import Run
from dgm.cli.output import emit_json
from dgm.domain import Agent
from dgm.export.branches import write_repository
from dgm.export.graphs import write_tree
from dgm.export.home import write_home, write_patch, write_request
from dgm.export.standalone import default_model_of, write_standalone
from dgm.export.table_files import write_table
from dgm.export.tables import EVALUATIONS, SPEND
from dgm.export.trajectories import INDEX, write_trajectories
from dgm.publish.scrubbing import LocalIdentity
from dgm.show.words import count_text

Said = tuple[dict[str, Any], str]
"""The report for programs, and the one for people."""


def export_whole_run(run: Run, what: str, target: Path, *, as_json: bool) -> None:
    """Write the ``tree``, the ``evaluations``, the ``spend`` or the ``repository`` of a run to a new path.

    Raises:
        UserError: nothing can be written there, or not in that format.
        ArchiveCorrupt: something in the run is damaged.
    """
    record, line = _WRITERS[what](run, target)
    _print_result(({**identity_of(run).record(), **record}, line), as_json=as_json)


def export_standalone(run: Run, agent: Agent, target: Path, *, as_json: bool) -> None:
    """Write an agent as a new folder that runs by itself; raise as ``export_whole_run``."""
    count = write_standalone(run, agent, target)
    record = {
        **identity_of(run).record(),
        "agent": agent.id,
        "commit": agent.commit,
        "folder": str(target),
        "files": count,
    }
    named = "" if default_model_of(run) else " --model NAME"
    how = f'python3 {target / "run.py"} --repo PATH{named} "what is to be done"'
    _print_result(
        (record, f"agent {agent.id} ({count_text(count, 'file')}) is in {target}; start it with {how}"),
        as_json=as_json,
    )


def export_home(run: Run, agent: Agent, target: Path, *, as_json: bool) -> None:
    """Write an agent's files as a new git repository of its lineage; raise as ``export_whole_run``."""
    files, steps = write_home(run, agent, target), len(Lineage(run.tree, agent.id).agents)
    record = {
        "agent": agent.id,
        "commit": agent.commit,
        "folder": str(target),
        "files": files,
        "steps": steps,
    }
    branches = count_text(steps, "branch", "branches")
    line = f"agent {agent.id} ({count_text(files, 'file')}) is in {target}, with {branches} of its lineage"
    _print_result(({**identity_of(run).record(), **record}, line), as_json=as_json)


def export_patch(run: Run, agent: Agent, target: Path, *, as_json: bool) -> None:
    """Write what an agent changed against the seed to a new file; raise as ``export_whole_run``."""
    size = write_patch(run, agent, target)
    record = {"agent": agent.id, "commit": agent.commit, "file": str(target), "bytes": size}
    line = f"what agent {agent.id} changed is in {target}; apply it to the original: git apply {target}"
    _print_result(({**identity_of(run).record(), **record}, line), as_json=as_json)


def export_request(run: Run, agent: Agent, target: Path, *, as_json: bool) -> None:
    """Write the text of a pull request for an agent's change to a new file; raise as ``export_whole_run``."""
    steps = write_request(run, agent, target)
    record = {"agent": agent.id, "commit": agent.commit, "file": str(target), "steps": steps}
    line = f"the text for {count_text(steps, 'step')} to agent {agent.id} is in {target}"
    _print_result(({**identity_of(run).record(), **record}, line), as_json=as_json)


def export_trajectories(run: Run, agent: Agent | None, target: Path, *, as_json: bool) -> None:
    """Write the trajectories of a run, or of one agent, to a new folder; raise as ``export_whole_run``."""
    done = write_trajectories(run, agent, target, LocalIdentity.here())
    whose = {} if agent is None else {"agent": agent.id}
    counts = {"own": done.own, "recorded": done.recorded, "missing": done.missing}
    told = f"{done.own} written by the agents, {done.recorded} made of the recorded model calls"
    left = f"; {count_text(done.missing, 'evaluation')} without any" if done.missing else ""
    named = count_text(done.own + done.recorded, "trajectory", "trajectories")
    line = f"{named} written to {target} ({told}{left}); {target / INDEX} lists them"
    _print_result(
        ({**identity_of(run).record(), **whose, "folder": str(target), **counts}, line), as_json=as_json
    )


def _export_tree(run: Run, target: Path) -> Said:
    count = write_tree(run, target)
    return {"file": str(target), "agents": count}, f"a tree of {count_text(count, 'agent')} is in {target}"


def _export_evaluations(run: Run, target: Path) -> Said:
    count = write_table(run, EVALUATIONS, target)
    return {"file": str(target), "rows": count}, f"{count_text(count, 'evaluation')} written to {target}"


def _export_spend(run: Run, target: Path) -> Said:
    count = write_table(run, SPEND, target)
    return {"file": str(target), "rows": count}, f"{count_text(count, 'model call')} written to {target}"


def _export_repository(run: Run, target: Path) -> Said:
    best, count = write_repository(run, target), len(run.tree.agents)
    return (
        {"folder": str(target), "branches": count, "checked_out": f"agents/{best}"},
        f"{count_text(count, 'branch', 'branches')} written to {target}; agents/{best}, the best one, is checked out",
    )


_WRITERS: dict[str, Callable[[Run, Path], Said]] = {
    "tree": _export_tree,
    "evaluations": _export_evaluations,
    "spend": _export_spend,
    "repository": _export_repository,
}


def _print_result(said: Said, *, as_json: bool) -> None:
    record, line = said
    if as_json:
        emit_json(record)
    else:
        sys.stdout.write(line + "\n")
