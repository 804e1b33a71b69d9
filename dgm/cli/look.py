"""``dgm status`` and ``dgm show``: read runs, also while they are written."""

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rich.text import Text

from dgm.analysis.agents import find_agent
from dgm.archive.finding import archive_folders, find_run
from dgm.archive.run import Run
from dgm.cli.app import print_json
from dgm.cli.output import print_json_line, print_lines, print_view, show_patch, terminal, terminal_width
from dgm.domain import ActionId
from dgm.errors import UserError
from dgm.render import text
from dgm.views.agents import AgentView, DiffView, LineageView, TreeView, WaitingChildView, read_waiting_patch
from dgm.views.events import EventView, read_events
from dgm.views.run import RunReader, RunView
from dgm.views.run_list import RunListView

EVERY_S = 2.0
FIRST_EVENTS = 10
"""Number of existing events that ``--follow`` prints first."""


def status(run: str | None = None, /, *, watch: bool = False, json: bool = False) -> None:
    """Print how far a search is, what it has spent and when it will end; without RUN, list all runs.

    Args:
        run: A run, or a folder with runs. Default: all in $DGM_ARCHIVE and ./archive.
        watch: Update every two seconds until the run ends.
        json: Print JSON.
    """
    if run is None or _holds_runs(Path(run)):
        if watch:
            raise UserError("needs the name of a run", argument="watch")
        view = RunListView.load(None if run is None else Path(run))
        print_json(view) if json else print_view(text.render_run_list(view, time.time()))
        return
    with Run.open(find_run(run)) as source:
        reader = RunReader(source)
        if not watch:
            _print_status(reader.view(), json=json)
        elif json or not terminal().is_terminal:
            with suppress(KeyboardInterrupt):  # Ctrl-C is the normal way to leave
                _repeat(reader, json=json)
        else:
            with suppress(KeyboardInterrupt):
                _redraw(reader)
            _print_status(reader.view(), json=False)


def show(
    run: str,
    agent: str | None = None,
    other: str | None = None,
    /,
    *,
    diff: bool = False,
    lineage: bool = False,
    task: str | None = None,
    events: bool = False,
    follow: bool = False,
    json: bool = False,
) -> None:
    """Print the tree of agents of a run, or one agent: origin, evaluations, cost.

    Args:
        run: A run: its name, folder or .dgm file.
        agent: An id, "best", "seed", a commit or a waiting child. The options default to the best agent.
        other: With --diff, the agent to compare with (default: the parent).
        diff: Print what the agent changes against OTHER.
        lineage: Print the steps from the seed to the agent; with --diff also their changes.
        task: Print the agent's attempts at this task: patch, tests and transcript.
        events: Print the log of the run, oldest event first.
        follow: With --events, print the last ten events, then new ones until the run ends.
        json: Print JSON.
    """
    _check_choice(agent, other, diff=diff, lineage=lineage, task=task, events=events, follow=follow)
    with Run.open(find_run(run)) as source:
        if events or follow:
            with suppress(KeyboardInterrupt):  # Ctrl-C is the normal way to leave
                _print_events(source, follow=follow, json=json)
            return
        if agent is None and not (diff or lineage or task is not None):
            _print_tree(TreeView.load(source), json=json)
            return
        number = int(agent) if agent and agent.isdecimal() else -1
        if (
            number in source.tree.waiting
            and number >= len(source.tree.agents)
            and not lineage
            and task is None
        ):
            _show_waiting(source, ActionId(number), diff=diff, json=json)
            return
        chosen = find_agent(source, "best" if agent is None else agent)
        if task is not None:
            from dgm.views.tasks import AgentTaskView  # loads the protocols of models

            attempts = AgentTaskView.load(source, chosen, task)
            print_json(attempts) if json else print_lines(text.render_agent_task(attempts), page=True)
        elif lineage:
            steps = LineageView.load(source, chosen.id)
            print_json(steps) if json else print_lines(text.render_lineage(steps, patches=diff))
        elif diff:
            changes = DiffView.load(source, chosen, None if other is None else find_agent(source, other))
            print_json(changes) if json else show_patch(changes.patch)
        else:
            view = AgentView.load(source, chosen)
            print_json(view) if json else print_view(text.render_agent(view))


def _show_waiting(run: Run, child: ActionId, *, diff: bool, json: bool) -> None:
    """Print a child that waits for approval and its change; ``diff`` prints the change alone."""
    view = WaitingChildView.load(run, child, run.tree.waiting[child])
    if json:
        print_json(view)
        return
    if not diff:
        sys.stdout.writelines(f"{line}\n" for line in text.waiting_child_lines(view, time.time()))
    show_patch(read_waiting_patch(run, child))


def _holds_runs(folder: Path) -> bool:
    """Return whether the name is a folder and no run's; an agent's folder here may have the name of a run."""
    runs = (folder, *(archive / folder for archive in archive_folders()))
    return folder.is_dir() and not any((run / "run.json").exists() for run in runs)


def _check_choice(
    agent: str | None,
    other: str | None,
    *,
    diff: bool,
    lineage: bool,
    task: str | None,
    events: bool,
    follow: bool,
) -> None:
    chosen = [
        name for name, on in (("lineage", lineage), ("task", task is not None), ("events", events)) if on
    ]
    if len(chosen) > 1 or (diff and chosen not in ([], ["lineage"])):
        raise UserError("cannot be combined with another choice of what to print", argument=chosen[-1])
    if follow and (diff or chosen not in ([], ["events"])):
        raise UserError("only follows events", argument="follow")
    if agent is not None and (events or follow):
        raise UserError("prints the log of the whole run; leave out the agent", argument="events")
    if other is not None and not diff:
        raise UserError(f"a second agent ('{other}') is only used with a diff", argument="diff")
    if other is not None and lineage:
        raise UserError("compares each step with its parent; leave out the second agent", argument="lineage")


def _print_status(view: RunView, *, json: bool) -> None:
    print_json(view) if json else print_view(text.render_run(view))


def _repeat(reader: RunReader, *, json: bool) -> None:
    """Print the status again and again until the run ends."""
    while True:
        living = reader.living
        view = reader.view()
        if json:
            print_json_line(view)
        else:
            print_view(text.render_run(view))
            sys.stdout.write("\n")
        sys.stdout.flush()
        if not living:
            return
        time.sleep(EVERY_S)
        reader.follow()


def _redraw(reader: RunReader) -> None:
    """Show the status in place until the run ends."""
    from rich.live import Live

    with Live(text.render_run(reader.view()), console=terminal(), screen=True, auto_refresh=False) as live:
        while reader.living:
            time.sleep(EVERY_S)
            reader.follow()
            live.update(text.render_run(reader.view()), refresh=True)


def _print_tree(view: TreeView, *, json: bool) -> None:
    print_json(view) if json else print_lines(text.render_tree(view, terminal_width()))


def _print_events(run: Run, *, follow: bool, json: bool) -> None:
    views = read_events(run, tail=FIRST_EVENTS if follow else None, follow=follow)
    if not json:
        print_lines(_event_lines(views), flush=follow)
        return
    for view in views:
        print_json_line(view)
        if follow:
            sys.stdout.flush()


def _event_lines(views: Iterator[EventView]) -> Iterator[Text]:
    width = terminal_width()
    for view in views:
        line = text.render_event(view)
        if width is not None:
            line.truncate(width, overflow="ellipsis")
        yield line
