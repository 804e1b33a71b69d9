"""``dgm approve``: a person says yes or no to children that wait; the search reads the answers and goes on meanwhile.

Only answers are written, never the run's log, so that this works beside a running search and without one.
"""

import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import click

from dgm.archive.approvals import ApprovalAnswer, put_answer
from dgm.archive.finding import find_run
from dgm.archive.history import writer
from dgm.archive.run import Run
from dgm.cli.arguments import as_json, run_argument
from dgm.cli.output import emit_json, show_patch
from dgm.domain import ActionId
from dgm.errors import UserError
from dgm.sessions.approval import WIDTH, answer_children, check_gate, describe_decided, waiting_records
from dgm.show.approve_rows import child_lines, child_record, diff_against_parent, parse_action_id
from dgm.show.safe import one_line


@click.command()
@run_argument
@click.option(
    "--list", "only_list", is_flag=True, help="Print who waits, and ask nothing; --json alone does the same."
)
@click.option("--yes", "yes", metavar="CHILD", multiple=True, help="Let this child live; may be repeated.")
@click.option("--no", "no", metavar="CHILD", multiple=True, help="Reject this child; may be repeated.")
@click.option("--reason", help="Why; goes with --yes and --no.")
@as_json
def approve(
    run_name: str,
    only_list: bool,
    yes: tuple[str, ...],
    no: tuple[str, ...],
    reason: str | None,
    as_json: bool,
) -> None:
    """Say yes or no to the children of RUN that wait for you (gates.approve); without options, one after the other.

    The search goes on elsewhere while they wait, and takes an answer within a second; where nothing runs, when the run
    is resumed. An answer may also be written by hand, as yes or no and a reason, into the file approvals/CHILD of the
    run's folder. approvals/CHILD.diff beside it holds the child's diff as its agent made it: for programs to read, not
    for a terminal, which may act upon what is in it; this command shows it safely.
    """
    wanted = {**dict.fromkeys(yes, True), **dict.fromkeys(no, False)}
    both = {*map(parse_action_id, yes)} & {*map(parse_action_id, no)} - {None}
    if both:
        raise UserError(f"--yes and --no {both.pop()}: say one of them")
    if wanted and only_list:
        raise UserError("--list: asks and answers nothing; leave it out, or --yes and --no")
    if reason is not None and not wanted:
        raise UserError("--reason: goes with --yes CHILD or --no CHILD")
    with Run.open(find_run(run_name, write=True)) as run:
        check_gate(run)
        if wanted:
            _record_answers(run, wanted, reason or "", as_json=as_json)
        elif only_list or as_json:
            _print_children(run, as_json=as_json)
        else:
            _ask_each_child(run)


def _print_children(run: Run, *, as_json: bool) -> None:
    records = waiting_records(run)
    if as_json:
        emit_json({"run": run.name, "children": records})
        return
    lines = [line for record in records for line in child_lines(record, time.time())]
    sys.stdout.write("\n".join(lines or [f"{run.name}: no child waits"]) + "\n")


def _record_answers(run: Run, wanted: Mapping[str, bool], reason: str, *, as_json: bool) -> None:
    given = answer_children(run, wanted, reason)
    if as_json:
        emit_json(
            {
                "run": run.name,
                "answered": [
                    {
                        "child": one.child,
                        "answer": "yes" if one.yes else "no",
                        "reason": one.reason,
                        "instead_of": one.instead_of or None,
                    }
                    for one in given
                ],
                "read": "soon" if writer(run.folder) else "when the run is resumed",
            }
        )
        return
    for one in given:
        instead = f", instead of: {one_line(one.instead_of, WIDTH)}" if one.instead_of else ""
        sys.stdout.write(f"child {one.child}: {'yes' if one.yes else 'no'}{instead}\n")
    _say_when_read(run)


@dataclass(slots=True)
class _PromptAnswer:
    """A person's answer about one child."""

    key: str
    reason: str = ""


def _ask_each_child(run: Run) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("nobody can be asked here; use --list, --yes CHILD or --no CHILD --reason TEXT")
    seen: set[ActionId] = set()
    asked = answered = 0
    while (action := _next_child(run, seen)) is not None:
        seen.add(action)
        one = run.tree.waiting[action]
        record = child_record(run, action, one)
        if record["answer"]:
            continue
        asked += 1
        sys.stdout.write("\n".join(child_lines(record, time.time())) + "\n")
        show_patch(diff_against_parent(run, one))
        said = _prompt_answer()
        if said.key == "q":
            break
        if said.key == "s":
            continue
        run.follow()
        if action not in run.tree.waiting:
            sys.stdout.write(f"too late: child {action} {one_line(describe_decided(run, action), WIDTH)}\n")
            continue
        put_answer(run.folder, action, ApprovalAnswer(said.key == "y", said.reason))
        answered += 1
    if answered:
        _say_when_read(run)
    elif asked:
        sys.stdout.write(f"{run.name}: nothing was answered\n")
    else:
        sys.stdout.write(f"{run.name}: no child waits{' without an answer' if seen else ''}\n")


def _next_child(run: Run, seen: Collection[ActionId]) -> ActionId | None:
    """Return the next child that waits now: while a person reads, others may be decided or begin to wait."""
    run.follow()
    return next((action for action in run.tree.waiting if action not in seen), None)


def _prompt_answer() -> _PromptAnswer:
    choice = click.Choice(["y", "n", "s", "q"])
    key = click.prompt("yes, no, skip or quit", type=choice, default="s", show_choices=True)
    if key != "n":
        return _PromptAnswer(key)
    return _PromptAnswer(key, click.prompt("why not (may be empty)", default="", show_default=False))


def _say_when_read(run: Run) -> None:
    when = "within a second" if writer(run.folder) else f"when the run goes on: dgm resume {run.name}"
    sys.stdout.write(f"the answer is read {when}\n")
