"""``dgm approve``: lists the children that wait for approval, asks about them on a terminal, and records answers.

``dgm note`` records what a person says of an agent.
"""

import sys
import time

from dgm.api.control import (
    REASON_CELLS,
    ApprovalView,
    NotedView,
    approve_child,
    describe_decided,
)
from dgm.api.control import approve as approve_run
from dgm.api.control import note as note_run
from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.cli.app import derive
from dgm.cli.output import show_patch
from dgm.domain import ActionId
from dgm.render.safe import one_line
from dgm.render.text import waiting_child_lines
from dgm.views.agents import WaitingChildView, read_waiting_patch


def _print_view(view: ApprovalView) -> None:
    if view.answered is not None:
        instead = f" instead of: {one_line(view.replaced, REASON_CELLS)}" if view.replaced else ""
        sys.stdout.write(f"child {view.answered}: answered{instead}\n")
        _print_when_read(view)
    elif view.children and sys.stdin.isatty() and sys.stdout.isatty():
        _ask_each_child(view)
    else:
        lines = [line for child in view.children for line in waiting_child_lines(child, time.time())]
        sys.stdout.write("\n".join(lines or [f"{view.run}: no child waits"]) + "\n")


def _print_note(view: NotedView) -> None:
    when = "" if view.recorded else "; the search records it when its next action ends"
    sys.stdout.write(f"agent {view.agent}: noted{when}\n")


approve = derive(approve_run, _print_view)
note = derive(note_run, _print_note)


def _ask_each_child(view: ApprovalView) -> None:
    with Run.open(find_run(view.folder, write=True)) as run:
        seen: set[ActionId] = set()
        answered = False
        # While the user reads, others may be decided or begin to wait.
        while (
            action := next((action for action in run.tree.waiting if action not in seen), None)
        ) is not None:
            seen.add(action)
            child = WaitingChildView.load(run, action, run.tree.waiting[action])
            if child.answer:
                continue
            sys.stdout.write("\n".join(waiting_child_lines(child, time.time())) + "\n")
            show_patch(read_waiting_patch(run, action))
            key = _ask("yes, no, skip or quit [y/n/s/q]", ("y", "n", "s", "q"))
            if key == "q":
                break
            reason = _ask("why not (may be empty)") if key == "n" else ""
            run.follow()
            if key == "s":
                continue
            if action not in run.tree.waiting:
                decided = one_line(describe_decided(run, action), REASON_CELLS)
                sys.stdout.write(f"too late: child {action} {decided}\n")
                continue
            view, answered = approve_child(run, action, "yes" if key == "y" else "no", reason), True
    if answered:
        _print_when_read(view)
    else:
        sys.stdout.write(f"{view.run}: nothing was answered\n")


def _ask(question: str, choices: tuple[str, ...] = ()) -> str:
    while True:
        sys.stdout.write(f"{question}: ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt
        answer = line.strip()
        if not choices or answer in choices:
            return answer


def _print_when_read(view: ApprovalView) -> None:
    when = "within a second" if view.running else f"when the run is resumed: dgm resume {view.run}"
    sys.stdout.write(f"the answer is read {when}\n")
