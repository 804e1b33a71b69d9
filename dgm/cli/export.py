"""``dgm export``: write a run, or an agent of it, in forms that other programs read."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from dgm.analysis.agent_names import find_agent
from dgm.analysis.lineage import Lineage
from dgm.archive.identity import identity_of
from dgm.archive.run import Run
from dgm.cli.arguments import as_json, open_run, run_argument
from dgm.cli.output import emit_json
from dgm.domain import Agent
from dgm.errors import UserError
from dgm.export.graphs import write_tree
from dgm.export.predictions import write_predictions
from dgm.export.pull_request import write_pr_text
from dgm.export.repositories import write_home, write_patch, write_repository
from dgm.export.standalone import default_model_of, write_standalone
from dgm.export.table_files import write_table
from dgm.export.tables import EVALUATIONS, SPEND
from dgm.export.trajectories import INDEX, write_trajectories
from dgm.publish.scrubbing import LocalIdentity
from dgm.show.safe import one_line
from dgm.show.words import count_text

FC = TypeVar("FC", bound=Callable[..., Any])
Report = tuple[Mapping[str, Any], str]
"""The report for programs, and the one for people."""


def _path_option(name: str, metavar: str, words: str) -> Callable[[FC], FC]:
    return click.option(name, type=click.Path(path_type=Path), metavar=metavar, help=words)


@click.command()
@run_argument
@click.argument("agent_name", metavar="[AGENT]", required=False)
@click.argument("target", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@_path_option("--tree", "FILE", "Write the tree of agents: .graphml, .gexf or .dot.")
@_path_option("--evaluations", "FILE", "Write a row for each evaluation: .csv or .parquet.")
@_path_option("--spend", "FILE", "Write a row for each model call: .csv or .parquet.")
@_path_option("--repository", "DIR", "Make a git repository with a branch for each agent.")
@_path_option(
    "--patch",
    "FILE",
    "Write what AGENT's lineage (default: best's) changed, a commit for each step, for git am.",
)
@_path_option("--pr-text", "FILE", "Write the text of a pull request for that patch.")
@_path_option("--standalone", "DIR", "Make a folder from which AGENT (default: best) runs by itself.")
@_path_option("--trajectories", "DIR", "Write what AGENT (default: every agent) said and did on each task.")
@_path_option("--predictions", "FILE", "Write AGENT's patches in SWE-bench's format: .jsonl or .json.")
@click.option(
    "--evaluation",
    metavar="FOLDER",
    help="With --predictions: those of this evaluation (its name in RUN, or its path), not of the search.",
)
@as_json
def export(
    run_name: str,
    agent_name: str | None,
    target: Path | None,
    evaluation: str | None,
    as_json: bool,
    **paths: Path | None,
) -> None:
    """Write AGENT to the new folder DIR, a git repository of its lineage; or write one of what the options name.

    DIR can be a --seed-agent. Nothing that exists is written over. AGENT is an id, 'best', 'seed' or the start of a
    commit.
    """
    asked = {name: path for name, path in {"DIR": target, **paths}.items() if path is not None}
    if len(asked) != 1:
        raise UserError(_usage_message([name.replace("_", "-") for name in asked]))
    ((what, path),) = asked.items()
    if what in _RUN_WRITERS and agent_name is not None:
        raise UserError(f"--{what} is of the whole run; leave out {agent_name!r}")
    if what == "predictions" and agent_name is None:
        raise UserError("--predictions: say whose, for example: dgm export RUN best --predictions FILE")
    if evaluation and what != "predictions":
        raise UserError("--evaluation says which patches are exported; give --predictions FILE too")
    with open_run(run_name) as run:
        about: dict[str, Any] = {}
        if what in _RUN_WRITERS:
            record, line = _RUN_WRITERS[what](run, path)
        elif what == "trajectories" and agent_name is None:
            record, line = _export_trajectories(run, None, path)
        else:
            agent = find_agent(run, agent_name or "best")
            about["agent"] = agent.id
            if what == "predictions":
                record, line = _export_predictions(run, agent, path, evaluation)
            else:
                record, line = _AGENT_WRITERS[what](run, agent, path)
        if as_json:
            emit_json({**identity_of(run).record(), **about, **record})
        else:
            sys.stdout.write(line + "\n")


def _usage_message(asked: Sequence[str]) -> str:
    if asked:
        options = " and ".join(what if what == "DIR" else f"--{what}" for what in asked)
        return f"{options}: one at a time"
    return (
        "say what to export: AGENT and a new folder DIR for its source, or one of --tree, --evaluations, --spend, "
        "--repository, --patch, --pr-text, --standalone, --trajectories and --predictions"
    )


def _export_tree(run: Run, target: Path) -> Report:
    count = write_tree(run, target)
    return {"file": str(target), "agents": count}, f"a tree of {count_text(count, 'agent')} is in {target}"


def _export_evaluations(run: Run, target: Path) -> Report:
    count = write_table(run, EVALUATIONS, target)
    return {"file": str(target), "rows": count}, f"{count_text(count, 'evaluation')} written to {target}"


def _export_spend(run: Run, target: Path) -> Report:
    count = write_table(run, SPEND, target)
    return {"file": str(target), "rows": count}, f"{count_text(count, 'model call')} written to {target}"


def _export_repository(run: Run, target: Path) -> Report:
    best, count = write_repository(run, target), len(run.tree.agents)
    return (
        {"folder": str(target), "branches": count, "checked_out": f"agents/{best}"},
        f"{count_text(count, 'branch', 'branches')} written to {target}; agents/{best}, the best one, is checked out",
    )


def _export_home(run: Run, agent: Agent, target: Path) -> Report:
    files, steps = write_home(run, agent, target), len(Lineage(run.tree, agent.id).agents)
    branches = count_text(steps, "branch", "branches")
    return (
        {"commit": agent.commit, "folder": str(target), "files": files, "steps": steps},
        f"agent {agent.id} ({count_text(files, 'file')}) is in {target}, with {branches} of its lineage",
    )


def _export_patch(run: Run, agent: Agent, target: Path) -> Report:
    count = write_patch(run, agent, target)
    return (
        {"commit": agent.commit, "file": str(target), "commits": count, "bytes": target.stat().st_size},
        f"{count_text(count, 'commit')} to agent {agent.id} written to {target}; in the original: git am {target}",
    )


def _export_pr_text(run: Run, agent: Agent, target: Path) -> Report:
    steps = write_pr_text(run, agent, target)
    return (
        {"commit": agent.commit, "file": str(target), "steps": steps},
        f"the text for {count_text(steps, 'step')} to agent {agent.id} is in {target}",
    )


def _export_standalone(run: Run, agent: Agent, target: Path) -> Report:
    count = write_standalone(run, agent, target)
    model = "" if default_model_of(run) else " --model NAME"
    how = f'python3 {target / "run.py"} --repo PATH{model} "what is to be done"'
    return (
        {"commit": agent.commit, "folder": str(target), "files": count},
        f"agent {agent.id} ({count_text(count, 'file')}) is in {target}; start it with {how}",
    )


def _export_trajectories(run: Run, agent: Agent | None, target: Path) -> Report:
    done = write_trajectories(run, agent, target, LocalIdentity.here())
    written = count_text(done.own + done.recorded, "trajectory", "trajectories")
    sources = f"{done.own} written by the agents, {done.recorded} made of the recorded model calls"
    missing = f"; {count_text(done.missing, 'evaluation')} without any" if done.missing else ""
    return (
        {"folder": str(target), "own": done.own, "recorded": done.recorded, "missing": done.missing},
        f"{written} written to {target} ({sources}{missing}); {target / INDEX} lists them",
    )


def _export_predictions(run: Run, agent: Agent, file: Path, evaluation: str | None) -> Report:
    written = write_predictions(run, agent, file, evaluation)
    counts, model = written.counts, written.model
    lines = [f"{counts.written} predictions by {one_line(model, 200)} are in {file}"]
    if counts.elsewhere:
        lines.append(f"{counts.elsewhere} left out: tasks of other benchmarks than SWE-bench")
    if counts.not_text:
        lines.append(f"{counts.not_text} left out: patches that are not UTF-8, which the format cannot hold")
    record = {
        "model_name_or_path": model,
        "file": str(file),
        "predictions": counts.written,
        "left_out": {"other_benchmarks": counts.elsewhere, "not_text": counts.not_text},
    }
    return record, "\n".join(lines)


_RUN_WRITERS: Mapping[str, Callable[[Run, Path], Report]] = {
    "tree": _export_tree,
    "evaluations": _export_evaluations,
    "spend": _export_spend,
    "repository": _export_repository,
}
_AGENT_WRITERS: Mapping[str, Callable[[Run, Agent, Path], Report]] = {
    "DIR": _export_home,
    "patch": _export_patch,
    "pr_text": _export_pr_text,
    "standalone": _export_standalone,
    "trajectories": _export_trajectories,
}
