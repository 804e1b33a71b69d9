"""``dgm export``: an agent's source as a folder of its own, or its patches as SWE-bench's predictions."""

import sys
from contextlib import ExitStack
from pathlib import Path

import click

from dgm.archive.run import Run
from dgm.cli.arguments import agent_argument, as_json, find_agent, open_run, run_argument
from dgm.cli.output import emit_json
from dgm.domain import Agent, TaskId
from dgm.errors import UserError
from dgm.search.exam import candidate
from dgm.search.predictions import Exported
from dgm.search.predictions import export as export_predictions
from dgm.search.summary import models_of

SWEBENCH = "swebench:"
IN_MIXED = "swebench-"
"""Begins the ids of SWE-bench's tasks in a mixed benchmark, up to the slash."""


@click.command()
@run_argument
@agent_argument
@click.argument("target", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--predictions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write AGENT's patches to this new .jsonl or .json file, in SWE-bench's format.",
)
@click.option(
    "--evaluation",
    metavar="FOLDER",
    help="With --predictions: those of this evaluation (its name in RUN, or its path), not of the search.",
)
@as_json
def export(
    run_name: str,
    agent_name: str,
    target: Path | None,
    predictions: Path | None,
    evaluation: str | None,
    as_json: bool,
) -> None:
    """Copy AGENT's source to the new folder DIR; it can be a --seed-agent, or run by itself."""
    if (target is None) == (predictions is None):
        raise UserError("say what to export: a new folder DIR for the source, or --predictions FILE")
    if evaluation and predictions is None:
        raise UserError("--evaluation says which patches are exported; give --predictions FILE too")
    with open_run(run_name) as run:
        agent = find_agent(run, agent_name)
        if predictions:
            _predictions(run, agent, predictions, evaluation, as_json=as_json)
        elif target:
            _source(run, agent, target, as_json=as_json)


def _source(run: Run, agent: Agent, target: Path, *, as_json: bool) -> None:
    source = run.checkout(agent.id, target)
    if as_json:
        emit_json({"agent": agent.id, "commit": agent.commit, "folder": str(target), "files": len(source)})
        return
    sys.stdout.write(f"agent {agent.id} ({len(source)} files) is in {target}\n")


def _predictions(run: Run, agent: Agent, file: Path, evaluation: str | None, *, as_json: bool) -> None:
    with ExitStack() as opened:
        where = opened.enter_context(_evaluation(run, evaluation)) if evaluation else run
        there = candidate(where, agent) if evaluation else agent.id
        if there is None:
            raise UserError(f"{where.folder}: agent {agent.id} was not evaluated there")
        model = f"dgm/{run.name}/{agent.id}+{models_of(where)['solve']}"
        mixed = _is_mixed(where.config["settings"]["benchmark"])
        done = export_predictions(where, there, model, file, _in_mixed if mixed else lambda task: task)
    if as_json:
        emit_json(
            {
                "agent": agent.id,
                "model_name_or_path": model,
                "file": str(file),
                "predictions": done.written,
                "left_out": {"other_benchmarks": done.elsewhere, "not_text": done.not_text},
            }
        )
        return
    sys.stdout.write("\n".join(_lines(done, model, file)) + "\n")


def _evaluation(run: Run, name: str) -> Run:
    for folder in (run.folder / name, Path(name)):
        if (folder / "run.json").is_file():
            return Run.open(folder)
    known = sorted(path.parent.name for path in run.folder.glob("*/run.json"))
    raise UserError(
        f"--evaluation {name}: no such evaluation (in {run.folder}: {', '.join(known) or 'none'})"
    )


def _is_mixed(benchmark: str) -> bool:
    parts = benchmark.split("+")
    return len(parts) > 1 and any(part.startswith(SWEBENCH) for part in parts)


def _in_mixed(task: TaskId) -> str | None:
    part, _, inner = task.partition("/")
    return inner if part.startswith(IN_MIXED) else None


def _lines(done: Exported, model: str, file: Path) -> list[str]:
    lines = [f"{done.written} predictions by {model} are in {file}"]
    if done.elsewhere:
        lines.append(f"{done.elsewhere} left out: tasks of other benchmarks than SWE-bench")
    if done.not_text:
        lines.append(f"{done.not_text} left out: patches that are not UTF-8, which the format cannot hold")
    return lines
