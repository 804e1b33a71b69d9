"""Steps of a line, their diffs as they are shown, and the matrix of tasks."""

import pytest

from dgm.analysis.lineage import Lineage
from dgm.archive.run import Run
from dgm.domain import AgentId, Verdict
from dgm.report import patches
from dgm.report.matrix import build_matrix
from dgm.report.steps import read_lineage
from tests.support.runs.hostile import TASKS
from tests.unit.report.test_layout import grown
from tests.unit.report.test_markup import Texts

PATCH = b"""diff --git a/agent/run.py b/agent/run.py
index 1111111..2222222 100644
--- a/agent/run.py
+++ b/agent/run.py
@@ -1,3 +1,4 @@ def step():
 one
-two <b>
+two </b>
+--- three
 four
\\ No newline at end of file
diff --git a/logo.png b/logo.png
new file mode 100644
index 0000000..3333333
GIT binary patch
literal 12345
zcmV-some+base85

literal 0
HcmV?d00001

"""


def test_a_diff_has_its_lines_and_counts() -> None:
    found = patches.render_diff(PATCH, 10_000, "dgm diff")
    assert (found.files, found.added, found.removed) == (2, 2, 1)
    read = Texts(found.html)
    assert read.tags.count("ins") == 2
    assert "+two </b>\n+--- three\n" in read.text
    assert "agent/run.py\n@@ -1,3" in read.text
    assert "binary, 12,345 bytes" in read.text
    assert "base85" not in read.text


@pytest.mark.slow
def test_a_long_diff_loses_its_middle_and_says_how_to_see_it() -> None:
    head = PATCH.partition(b" one")[0]
    long = head + b"".join(b"+line %d <&>\n" % n for n in range(100_000))
    found = patches.render_diff(long, 20_000, "dgm diff run 7")
    assert found.added == 100_000
    assert len(found.html.encode()) < 21_000
    text = Texts(found.html).text
    assert "+line 0 <&>" in text
    assert "+line 99999 <&>" in text
    assert "lines left out; dgm diff run 7 prints them all" in text
    shown = sum(row.startswith("+line") for row in text.split("\n"))
    left_out = int(text.partition("… ")[2].partition(" lines")[0].replace(",", ""))
    assert shown + left_out == 100_000 + 2 - 2


def test_one_endless_line_is_cut() -> None:
    found = patches.render_diff(
        PATCH.partition(b" one")[0] + b"+" + b"x" * 1_000_000 + b"\n", 20_000, "dgm diff"
    )
    assert len(found.html) < 2_000
    assert "(1,000,001 characters)" in found.html


@pytest.mark.starts_processes
def test_a_diff_that_is_no_text_is_shown(hostile_folder) -> None:
    with Run.open(hostile_folder) as run:
        steps = read_lineage(run, AgentId(len(run.tree.agents) - 1)).steps
        for step in steps[1:]:
            found = patches.render_diff(step.patch, 20_000, "dgm diff")
            assert found.files > 3
            assert set(Texts(found.html).tags) <= {"pre", "code", "ins", "del", "b", "strong"}


@pytest.mark.starts_processes
def test_a_step_is_compared_on_the_tasks_that_both_tried(hostile_folder) -> None:
    with Run.open(hostile_folder) as run:
        one = next(step for step in read_lineage(run, AgentId(1)).steps if step.agent.id == 1)
    # Agent 0 resolves tasks 1 and 3 of five, agent 1 resolves 0, 2 and 4.
    assert one.against is not None
    assert (one.against.gained, one.against.lost) == ((TASKS[0], TASKS[2], TASKS[4]), (TASKS[1], TASKS[3]))
    assert round(one.gain or 0, 6) == 0.2


@pytest.mark.starts_processes
def test_a_long_line_keeps_its_seed_and_its_end(hostile_folder) -> None:
    with Run.open(hostile_folder) as run:
        last = AgentId(len(run.tree.agents) - 1)
        members = [agent.id for agent in Lineage(run.tree, last).agents]
        found = read_lineage(run, last, most=3)
    assert list(found.agents) == members
    assert [step.agent.id for step in found.steps] == [members[0], *members[-2:]]
    assert found.left_out == len(members) - 3


@pytest.mark.starts_processes
def test_the_matrix_counts_everyone_and_sorts_by_the_first_that_resolves(hostile_folder) -> None:
    with Run.open(hostile_folder) as run:
        found = build_matrix(run.tree, [AgentId(0), AgentId(1), AgentId(2)])
        for row in found.rows:
            verdicts = [run.tree.verdict(agent.id, row.task) for agent in run.tree.agents]
            assert row.resolved == verdicts.count(Verdict.RESOLVED)
            assert row.tried == row.resolved + verdicts.count(Verdict.UNRESOLVED)
    firsts = [next((n for n, v in enumerate(row.verdicts) if v is Verdict.RESOLVED), 9) for row in found.rows]
    assert firsts == sorted(firsts)
    assert {row.task for row in found.rows} == set(TASKS)
    assert found.rows[-1].task == TASKS[5]


def test_a_large_matrix_says_what_it_leaves_out() -> None:
    tree = grown(60, 1, crossovers=False)
    tree.tasks = tuple(f"t{n}" for n in range(300))
    found = build_matrix(tree, [AgentId(n) for n in range(40)], tasks=200, agents=24)
    assert (len(found.rows), found.tasks_left_out) == (200, 100)
    assert (found.agents[0], found.agents[1], found.agents[-1], found.agents_left_out) == (0, 17, 39, 16)
