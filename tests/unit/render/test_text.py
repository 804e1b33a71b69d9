"""Screens on the terminal: one snapshot each, columns at any width, and no hostile text."""

import time
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from dgm.archive.events import RunStarted
from dgm.archive.run import Run
from dgm.domain import SEED, ActionId, AgentId, Budget, Evaluate, TaskId
from dgm.render.text import (
    node_lines,
    render_agent,
    render_agent_task,
    render_event,
    render_lineage,
    render_patch,
    render_run,
    render_run_list,
    render_tree,
    tree_prefixes,
)
from dgm.views.agents import AgentRow, AgentView, LineageView, TreeView
from dgm.views.events import read_events
from dgm.views.progress import NodeView
from dgm.views.run import RunView
from dgm.views.run_list import RunListView
from dgm.views.tasks import AgentTaskView
from tests.support.runs.packable import begin, child, evaluate
from tests.support.runs.paid import TASKS, PaidRun, small
from tests.support.runs.trees import Log

pytestmark = pytest.mark.starts_processes

HOSTILE = "a\x1b[2J\x07 [red]b\u202e"


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def plain(renderable: RenderableType, width: int = 100) -> list[str]:
    console = Console(width=width, color_system=None, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(renderable)
    return [line.rstrip() for line in capture.get().splitlines()]


def tree_of(log: Log) -> TreeView:
    rows = tuple(AgentRow.of(log.tree, agent, SEED) for agent in log.tree.agents)
    return TreeView(run="run", folder="/run", state="stopped", best=0, agents=rows, promotions=None)


def test_the_screen_of_a_running_search(tmp_path: Path) -> None:
    made = small(tmp_path / "paid")
    made.refused(ActionId(1))
    view = RunView.load(made.run, made.run.tree.last_at + 3600.0)
    made.run.close()
    fixed = {
        "now_unix_s": 1e9,
        "began_unix_s": 1e9 - 7200,
        "seconds": 3600.0,
        "rates": view.rates.model_copy(  # type: ignore[union-attr]
            update={
                "window_s": 3600.0,
                "evaluations_per_hour": 2.0,
                "tokens_per_second": 6.0,
                "usd_per_hour": 0.2,
            }
        ),
        "budget": {"usd": view.budget["usd"].model_copy(update={"left_s": 5400.0})},
        "last_event": view.last_event.model_copy(update={"at_unix_s": 1e9 - 3600, "age_s": 3600.0}),  # type: ignore[union-attr]
        "under_way": tuple(
            action.model_copy(update={"since_unix_s": 1e9 - 3600, "age_s": 3600.0})
            for action in view.under_way
        ),
    }
    assert plain(render_run(view.model_copy(update=fixed))) == [
        "run          paid (running, 1 h, 1 running)",
        "search       starter with openai/cheap (solve, diagnose), anthropic/dear (improve), policy lineage,",
        "             in bubblewrap, seed 0",
        "agents       3; stillborn: 1 check",
        "evaluations  2: 1 resolved, 1 unresolved, 1 invalid",
        "spend        20 model calls, 22,000 tokens, 0.20 of 0.50 USD (25% of the input was cached)",
        "               improve anthropic/dear: 13 model calls, 14,300 tokens, 0.13 USD",
        "               solve openai/cheap: 7 model calls, 7,700 tokens, 0.07 USD",
        "best         ★ agent 0: 1/1 100% [21–100%], lower bound 0.10  shorter",
        "             recommended by the policy; lower bound: 99 % sure that its rate is higher",
        "refused      1 request of agents: model_not_found 1",
        "running         7 child of 2 by self-edit: 1 h, 2 model calls",
        "rates        2.0 evaluations/h, 6 tokens/s, 0.20 USD/h (last 1 h)",
        "forecast     money 0.20 of 0.50 USD: 1 h 30 min left, until 03:16:40  ends the run first",
        "began        2001-09-08 23:46",
        "last event   00:46:40, 1 h ago",
    ]


def test_an_ended_run_shows_no_rates_and_a_goal_shows_its_progress(tmp_path: Path) -> None:
    made = PaidRun(tmp_path / "run")
    made.run.append(RunStarted(Budget(evaluations=50, score=0.3, patience=10), TASKS))
    made.evaluated(0, 0, calls=1)
    lines = plain(render_run(RunView.load(made.run)))
    assert "until score  the best agent's lower bound is 0.100 of 0.3 (agent 0)" in lines
    assert "patience     1 of 10 evaluations without a better agent" in lines
    made.run.close()
    with Run.open(tmp_path / "run") as run:
        lines = plain(render_run(RunView.load(run, run.tree.last_at + 6 * 86_400)))
    assert lines[0] == "run          run (interrupted, 0 s)"
    assert not any(line.startswith(("rates", "forecast")) for line in lines)
    assert lines[-1].endswith("6 d ago")


def test_the_screen_of_an_agent(tmp_path: Path) -> None:
    made = small(tmp_path / "paid")
    view = AgentView.load(made.run, made.run.tree.agents[1])
    made.run.close()
    assert plain(render_agent(view.model_copy(update={"commit": "c0ffee"}))) == [
        "agent        1",
        "commit       c0ffee",
        "parents      0",
        "children     2",
        "operator     self-edit",
        "rationale    shorter",
        "own          0/1 0% [0–79%], lower bound 0.01, 1 task abandoned",
        "clade        0/1 0% [0–79%]",
        "vs parent    -100 [-100, +51] on 1 task (few tasks), in percentage points",
        "probes       never probed",
        "spend:",
        "  making it           2 model calls, 2,200 tokens, 0.02 USD",
        "  evaluating it       4 model calls, 4,400 tokens, 0.04 USD",
        "  its clade in all    13 model calls, 14,300 tokens, 0.13 USD",
        "  action 5 (evaluating) without a result (yet): 1 model call, 1,100 tokens, 0.01 USD",
        "evaluations:",
        "  ✗ unresolved     0.0 s      3,300 tokens     0.03 USD  ledger-a: as graded",
    ]


def test_the_screen_of_a_tree_of_agents() -> None:
    log = Log()
    for parents in ((), (0,), (0,), (1,), (3,), (4,), (4, 2), (2,)):
        log.born(*parents)
    log.graded(0, [True, False])
    log.graded(1, [True, True])
    log.graded(4, [True] * 6)
    assert [line.plain.rstrip() for line in render_tree(tree_of(log))] == [
        "0 ★        ████░░░░  1/2 50%  9–91%     clade 9/10 90%  gain +25.0 points in 1  self-edit  edit 0",
        "├─ 1       ████████  2/2 100% 34–100%   clade 8/8 100%  gain –                  self-edit  edit 1",
        "│  3       ░░░░░░░░  –                  clade 6/6 100%  gain –                  self-edit  edit 3",
        "│  4       ████████  6/6 100% 61–100%   clade 6/6 100%  gain –                  self-edit  edit 4",
        "│  ├─ 5    ░░░░░░░░  –                  clade –         gain –                  self-edit  edit 5",
        "│  └─ 6    ░░░░░░░░  –                  clade –         gain –                  self-edit of 4 and 2  edit 6",
        "└─ 2       ░░░░░░░░  –                  clade –         gain –                  self-edit  edit 2",
        "   7       ░░░░░░░░  –                  clade –         gain –                  self-edit  edit 7",
        "★ best  agent 0: 1/2 50% [9–91%], lower bound 0.06  edit 0",
        "  recommended by the policy; lower bound: 99 % sure that its rate is higher",
    ]
    assert [line.plain for line in render_tree(tree_of(Log()).model_copy(update={"best": None}))] == [
        "no agent yet"
    ]


@pytest.mark.parametrize("siblings", [0, 1])
def test_a_deep_tree_keeps_its_columns_and_no_row_is_left_of_its_parent(siblings: int) -> None:
    log = Log()
    parent = log.born()
    for _ in range(70):
        first = log.born(parent)
        for _ in range(siblings):
            log.born(parent)
        parent = first
    view = tree_of(log)
    lines = [line.plain for line in render_tree(view, 80)][:-2]
    assert len({line.index("░") for line in lines}) == 1
    assert max(map(len, lines)) <= 80
    depth = {agent: len(prefix) for agent, prefix in tree_prefixes(view.agents, 6)}
    assert all(depth[row.agent] >= depth[row.parents[0]] for row in view.agents if row.parents)
    assert max(depth.values()) == (18 if siblings else 3)


def test_the_list_of_runs(tmp_path: Path) -> None:
    with begin(tmp_path / "cut") as run:
        evaluate(run, "it")
        child(run)
        last = run.tree.last_at
    (tmp_path / "given.dgm").write_bytes(b"")
    lines = plain(render_run_list(RunListView.load(tmp_path), last + 7200))
    assert lines == [
        "RUN        STATE        LAST  AGENTS  BEST                 SPENT      LIMIT",
        "cut        interrupted  2 h        2  0: 1/1 100%, ≥ 0.10  15 tokens  1 of 5 evaluations",
        "given.dgm  packed",
    ]
    empty = RunListView(folders=("/a", "/b"), runs=())
    assert plain(render_run_list(empty, 0.0)) == ["no runs in /a or /b; start one with: dgm run"]


def test_nodes_with_a_problem_come_first() -> None:
    good = NodeView(name="10.0.0.1", slots=32, busy=31, opened=400, failures=0, images=3, problem="")
    bad = NodeView(
        name="10.0.0.2", slots=32, busy=0, opened=12, failures=2, images=0, problem="no\x1b[2J answer"
    )
    assert [line.plain for line in node_lines([good, bad])] == [
        "31 of 64 slots busy on 2 nodes",
        "  10.0.0.2: 0 of 32 busy, 12 opened, 2 failures; not used: no\\x1b[2J answer",
        "  10.0.0.1: 31 of 32 busy, 400 opened",
    ]
    assert list(node_lines([])) == []


@pytest.mark.starts_processes
def test_no_text_of_others_reaches_the_terminal_raw(tmp_path: Path) -> None:
    with begin(tmp_path / "run", {"policy": {"name": "hgm"}}) as run:
        evaluate(run, HOSTILE)
        child(run)
        action = run.tree.next_action
        run.tree._pending[action] = Evaluate(SEED, TaskId(HOSTILE))
        agents = run.tree.agents
        shown = [
            *render_tree(TreeView.load(run)),
            *render_lineage(LineageView.load(run, AgentId(1)), patches=True),
            *render_agent_task(AgentTaskView.load(run, agents[0], "a")),
            *map(render_event, read_events(run)),
            *render_patch(f"diff --git a/{HOSTILE} b/{HOSTILE}\n@@ -1 +1 @@\n-{HOSTILE}\n+{HOSTILE}\n"),
        ]
        text = "\n".join(
            [*(line.plain for line in shown), *plain(render_agent(AgentView.load(run, agents[0])))]
        )
    assert not set(text) & set("\x1b\x07\u202e")
    assert "[red]b" in text
