"""The text of a pull request: what changed, the evidence, and every change of hooks, permissions and MCP servers."""

import re

import pytest

from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Born, Budget, Entry, Evaluate, TaskId, Verdict
from dgm.errors import UserError
from dgm.export.pull_request import name_benchmark, write_pr_text
from dgm.export.repositories import write_home, write_patch
from tests.support.runs.builder import RunBuilder, create_run, make_config

pytestmark = pytest.mark.starts_processes


def test_the_text_names_each_step_and_its_files(paid_folder, tmp_path):
    with Run.open(paid_folder) as run:
        agent = run.tree.agents[-1]
        assert write_pr_text(run, agent, tmp_path / "pr.md") == 2
    lines = (tmp_path / "pr.md").read_text().splitlines()
    assert lines[0] == "# Evolve the agent in 2 steps"
    assert lines[4:8] == [
        "- `shorter`",
        "  - agent 1 resolved 0 of 1 (95 % interval: 0–79%); it changes `agent.toml`",
        "- `shorter`",
        "  - agent 2 resolved 0 of 0; it changes `agent.toml`",
    ]
    assert lines[lines.index("## Hooks, permissions and MCP servers") + 2] == "None of them changed."


def test_what_no_holdout_task_has_shown_is_not_claimed(paid_folder, tmp_path):
    with Run.open(paid_folder) as run:
        write_pr_text(run, run.tree.agents[-1], tmp_path / "pr.md")
    text = (tmp_path / "pr.md").read_text()
    assert "- better? not known: no holdout task was tried (dgm report paid --holdout does it)" in text


@pytest.fixture(scope="module")
def examined_folder(tmp_path_factory):
    """The folder of a run whose agent 1 resolves seven more of eight holdout tasks than the seed."""
    folder = tmp_path_factory.mktemp("examined") / "run"
    config, tasks = make_config(Settings()), [TaskId(f"task-{number}") for number in range(8)]
    with create_run(folder, config, Budget(), [TaskId("ledger-a")]) as run:
        made = RunBuilder(run)
        made.bear({"CLAUDE.md": Entry(b"Test.\n"), ".claude/settings.json": Entry(b"{}\n")})
        settings = Entry(b'{"permissions": {"allow": ["Bash(make test)"]}}\n')
        made.bear({"CLAUDE.md": Entry(b"Test.\n"), ".claude/settings.json": settings}, [0])
        with create_run(folder / "holdout", config, Budget(), tasks) as exam:
            made = RunBuilder(exam)
            for agent in run.tree.agents:
                commit = exam.repository.commit(run.repository.source(agent.commit), ())
                exam.append(exam.birth(Born((), "candidate", commit, agent.commit), ActionId(0)))
                for number, task in enumerate(tasks):
                    action = made.begin(Evaluate(AgentId(agent.id), task))
                    verdict = Verdict.RESOLVED if agent.id or number == 3 else Verdict.UNRESOLVED
                    made.record_verdict(action, agent.id, task, verdict)
    return folder


def test_a_difference_on_holdout_tasks_is_given_with_its_interval(examined_folder, tmp_path):
    with Run.open(examined_folder) as run:
        write_pr_text(run, run.tree.agents[1], tmp_path / "pr.md")
    lines = (tmp_path / "pr.md").read_text().splitlines()
    assert "- better? yes: 8 of 8 holdout tasks, the seed 1 (McNemar p = 0.016)" in lines
    gains = [line for line in lines if line.startswith("- by how much?")]
    assert gains == ["- by how much? +88 points on the holdout tasks, +50 to +100 with 95 % confidence"]


def test_changes_of_hooks_have_their_own_section(examined_folder, tmp_path):
    with Run.open(examined_folder) as run:
        write_pr_text(run, run.tree.agents[1], tmp_path / "pr.md")
    lines = (tmp_path / "pr.md").read_text().splitlines()
    assert re.fullmatch("# `.+`", lines[0])
    section = lines[lines.index("## Hooks, permissions and MCP servers") + 2 :]
    assert section[: section.index("")] == [
        '- added permission in `.claude/settings.json`: `permissions.allow = "Bash(make test)"`',
    ]


def test_no_markup_of_an_agent_is_in_the_text(hostile_folder, tmp_path):
    with Run.open(hostile_folder) as run:
        write_pr_text(run, run.tree.agents[-1], tmp_path / "pr.md")
    text = (tmp_path / "pr.md").read_text()
    assert "\x1b" not in text
    assert "<" not in re.sub("`[^`\n]*`", "", text)


def test_the_seed_itself_has_nothing_to_propose(run, tmp_path):
    with pytest.raises(UserError, match="nothing to propose"):
        write_pr_text(run, run.tree.agents[0], tmp_path / "pr.md")


@pytest.mark.parametrize("write", [write_home, write_patch, write_pr_text])
def test_nothing_is_written_over(run, agent, tmp_path, write):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("")
    with pytest.raises(UserError, match="already exists"):
        write(run, agent, tmp_path / "there")


@pytest.mark.parametrize(
    ("benchmark", "name"),
    [
        ("/home/me/tasks", "tasks"),
        ("../tasks/", "tasks"),
        ("starter+~/more", "starter+more"),
        ("polyglot:/data/exercises", "polyglot:exercises"),
        ("swebench:org/name", "swebench:org/name"),
    ],
)
def test_the_folder_of_a_suite_is_named_without_its_path(benchmark, name):
    assert name_benchmark(benchmark) == name
