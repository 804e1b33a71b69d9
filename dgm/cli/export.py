"""``dgm export``: write a run, or an agent of it, in forms that other programs read."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from dgm.analysis.agent_names import find_agent
from dgm.archive.identity import identity_of
from dgm.archive.run import Run
from dgm.cli.arguments import as_json, open_run, run_argument
from dgm.cli.export_targets import (
    export_home,
    export_patch,
    export_request,
    export_standalone,
    export_trajectories,
    export_whole_run,
)
from dgm.cli.output import emit_json
from dgm.domain import Agent
from dgm.errors import UserError
from dgm.evaluation.predictions import ExportCounts
from dgm.export.predictions import write_predictions
from dgm.show.safe import one_line

FC = TypeVar("FC", bound=Callable[..., Any])


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
@_path_option("--patch", "FILE", "Write what AGENT (default: best) changed against the seed, as a patch.")
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
    tree: Path | None,
    evaluations: Path | None,
    spend: Path | None,
    repository: Path | None,
    patch: Path | None,
    pr_text: Path | None,
    standalone: Path | None,
    trajectories: Path | None,
    predictions: Path | None,
    evaluation: str | None,
    as_json: bool,
) -> None:
    """Write AGENT to the new folder DIR, a git repository of its lineage; or write one of what the options name.

    DIR can be a --seed-agent. Nothing that exists is written over. AGENT is an id, 'best', 'seed' or the start of a
    commit.
    """
    whole = {"tree": tree, "evaluations": evaluations, "spend": spend, "repository": repository}
    of_agent = {
        "DIR": target,
        "patch": patch,
        "pr-text": pr_text,
        "standalone": standalone,
        "trajectories": trajectories,
        "predictions": predictions,
    }
    asked = {what: path for what, path in {**whole, **of_agent}.items() if path is not None}
    if len(asked) != 1:
        raise UserError(_usage_message(list(asked)))
    ((what, path),) = asked.items()
    if what in whole and agent_name is not None:
        raise UserError(f"--{what} is of the whole run; leave out {agent_name!r}")
    if what == "predictions" and agent_name is None:
        raise UserError("--predictions: say whose, for example: dgm export RUN best --predictions FILE")
    if evaluation and what != "predictions":
        raise UserError("--evaluation says which patches are exported; give --predictions FILE too")
    with open_run(run_name) as run:
        if what in whole:
            export_whole_run(run, what, path, as_json=as_json)
            return
        if what == "trajectories":
            whose = find_agent(run, agent_name) if agent_name else None
            export_trajectories(run, whose, path, as_json=as_json)
            return
        agent = find_agent(run, agent_name or "best")
        match what:
            case "predictions":
                _export_predictions(run, agent, path, evaluation, as_json=as_json)
            case "standalone":
                export_standalone(run, agent, path, as_json=as_json)
            case "patch":
                export_patch(run, agent, path, as_json=as_json)
            case "pr-text":
                export_request(run, agent, path, as_json=as_json)
            case _:
                export_home(run, agent, path, as_json=as_json)


def _usage_message(asked: Sequence[str]) -> str:
    if asked:
        said = " and ".join(what if what == "DIR" else f"--{what}" for what in asked)
        return f"{said}: one at a time"
    return (
        "say what to export: AGENT and a new folder DIR for its source, or one of --tree, --evaluations, --spend, "
        "--repository, --patch, --pr-text, --standalone, --trajectories and --predictions"
    )


def _export_predictions(run: Run, agent: Agent, file: Path, evaluation: str | None, *, as_json: bool) -> None:
    written = write_predictions(run, agent, file, evaluation)
    done, model = written.counts, written.model
    if as_json:
        emit_json(
            {
                **identity_of(run).record(),
                "agent": agent.id,
                "model_name_or_path": model,
                "file": str(file),
                "predictions": done.written,
                "left_out": {"other_benchmarks": done.elsewhere, "not_text": done.not_text},
            }
        )
        return
    sys.stdout.write("\n".join(_result_lines(done, model, file)) + "\n")


def _result_lines(done: ExportCounts, model: str, file: Path) -> list[str]:
    lines = [f"{done.written} predictions by {one_line(model, 200)} are in {file}"]
    if done.elsewhere:
        lines.append(f"{done.elsewhere} left out: tasks of other benchmarks than SWE-bench")
    if done.not_text:
        lines.append(f"{done.not_text} left out: patches that are not UTF-8, which the format cannot hold")
    return lines
