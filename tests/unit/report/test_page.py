"""The page as a file: what may stand in it, how large it gets, and what it says of runs that are hardly there."""

import base64
import hashlib
import html
import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from dgm.archive.events import RunStopped
from dgm.archive.run import Run
from dgm.domain import AgentId
from dgm.render.html.page import excerpt_diff, render_page
from dgm.views.best_line import TaskGroup, TaskGroups
from dgm.views.report import ReportView
from tests.support.runs.hostile import hostile as hostile_run
from tests.support.runs.large import large_run
from tests.support.runs.paid import PaidRun
from tests.unit.report.conftest import Page

pytestmark = pytest.mark.starts_processes

OURS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "script",
        "body",
        "main",
        "header",
        "nav",
        "section",
        "article",
    ),
    *(
        "aside",
        "footer",
        "h1",
        "h2",
        "h3",
        "p",
        "a",
        "b",
        "bdi",
        "strong",
        "small",
        "span",
        "div",
        "ul",
        "li",
    ),
    *("dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "details"),
    *("summary", "pre", "code", "ins", "del", "button", "svg", "line", "path", "circle", "rect", "text"),
}


@pytest.fixture(scope="module")
def hostile_page(hostile) -> str:
    return render_page(hostile).decode()


@pytest.mark.starts_processes
def test_a_hostile_run_adds_no_element_and_no_attribute(hostile_page: str) -> None:
    read = Page(hostile_page.encode())
    assert set(read.tags) <= OURS
    assert (read.tags.count("script"), read.tags.count("style"), read.tags.count("title")) == (1, 1, 1)
    names = {name for name, _ in read.attributes}
    assert not [name for name in names if name.startswith("on")]
    assert "style" not in names
    assert "src" not in names
    links = [value or "" for name, value in read.attributes if name == "href"]
    assert links
    assert all(link.startswith("#") for link in links)


def test_nothing_invisible_is_left_of_what_others_wrote(hostile_page: str) -> None:
    strange = re.findall(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", hostile_page
    )
    assert strange == []
    assert "\\x1b[31mred" in hostile_page
    assert "日本語" in hostile_page


def test_the_policy_names_the_one_style_and_the_one_script(hostile_page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', hostile_page)
    assert policy
    said = html.unescape(policy[1])
    assert said.startswith("default-src 'none'")
    for tag in ("style", "script"):
        text = hostile_page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in said


def test_the_same_run_gives_the_same_bytes(paid) -> None:
    assert render_page(ReportView.load(paid.run)) == render_page(ReportView.load(paid.run))


def test_abandoned_tasks_stand_beside_the_tallies_that_do_not_count_them(paid) -> None:
    view = ReportView.load(paid.run, AgentId(1))
    assert [agent.abandoned for agent in view.tree.agents] == [0, 1, 0]
    assert "; 1 task abandoned)" in Page(render_page(view)).text


def test_links_lead_to_sections_of_the_page(paid) -> None:
    text = render_page(ReportView.load(paid.run)).decode()
    targets = re.findall(r'href="#([a-z]+)"', text)
    assert len(targets) == 9
    assert all(f'<section id="{target}">' in text for target in targets)


def test_a_run_without_an_evaluation_is_reported(tmp_path) -> None:
    made = PaidRun(tmp_path / "new")
    made.run.append(RunStopped("interrupted by a person"))
    said = Page(render_page(ReportView.load(made.run))).text
    made.run.close()
    assert "No evaluation yet." in said
    assert "No agent is better" in said
    assert "The best agent has no verdict on a search task yet." in said
    assert "No model was called." in said
    assert "No expansion yet" in said
    assert "ended: interrupted by a person" in said


def test_a_run_that_was_cut_off_says_so(paid) -> None:
    # The test's own process holds the run's lock: as for a run that another process goes on with.
    assert "The run is still going on" in Page(render_page(ReportView.load(paid.run))).text
    folder = paid.run.folder
    paid.run.close()
    with Run.open(folder) as run:
        said = Page(render_page(ReportView.load(run))).text
    assert "The run was cut off with 1 action under way." in said


@pytest.mark.starts_processes
def test_lost_traces_are_named_once_and_diffs_stay(tmp_path) -> None:
    made = hostile_run(tmp_path)
    whole = render_page(ReportView.load(made.run)).decode()
    with closing(sqlite3.connect(made.run.folder / "run.db")) as log, log:
        log.execute("DELETE FROM blobs")
    text = render_page(ReportView.load(made.run)).decode()
    made.run.close()
    assert "missing: traces" not in whole
    assert Page(text.encode()).text.count("missing: traces of evaluations and expansions (0 of ") == 1
    assert text.count("<details") == whole.count("<details") > 0


def test_a_lost_repository_leaves_the_rest(paid) -> None:
    shutil.rmtree(paid.run.folder / "agents.git")
    text = Page(render_page(ReportView.load(paid.run, AgentId(2)))).text
    assert text.count("missing: 2 of 2 diffs") == 1
    assert text.count("The diff is missing") == 2
    assert str(paid.run.folder) not in text
    assert "Failures by kind" in text


def test_a_thousand_agents_with_long_texts_and_diffs_fit(tmp_path) -> None:
    with large_run(tmp_path / "large", 1000, 4000, calls=0, commits=False) as run:
        view = ReportView.load(run, AgentId(999))
    assert len(view.lineage.steps) > 20
    lines = "+<a href='x'>&\x1b[31m</a>\n" * 4_000
    patch = f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,4000 @@\n{lines}"
    steps = tuple(step.model_copy(update={"patch": patch, "damage": ""}) for step in view.lineage.steps)
    lineage = view.lineage.model_copy(update={"steps": steps})
    data = render_page(view.model_copy(update={"lineage": lineage}))
    assert len(patch) > 90_000
    assert len(data) < 2_000_000
    assert len(re.findall(rb'data-t="agent \d+: ', data)) == 1001


def test_results_by_origin_are_a_section_only_if_the_suite_has_provenance(paid) -> None:
    view = ReportView.load(paid.run)
    assert b"By kind and module" not in render_page(view)
    tally = view.seed_agent.own
    group = TaskGroup(name="<z>.py", tasks=2, seed_agent=tally, best=tally)
    page = render_page(view.model_copy(update={"groups": TaskGroups(kinds=(group,), modules=(group,))}))
    assert b"&lt;z&gt;.py" in page and b"<z>" not in page


PATCH = """diff --git a/agent/run.py b/agent/run.py
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
"""


def test_a_diff_has_its_lines_and_counts() -> None:
    diff = excerpt_diff(PATCH, 10_000, "dgm show")
    assert (diff.files, diff.added, diff.removed) == (1, 2, 1)
    assert [kind for kind, _ in diff.lines] == ["strong", "b", "", "del", "ins", "ins", "", "b"]
    assert ("ins", "+--- three") in diff.lines


def test_a_long_diff_loses_its_middle_and_says_how_to_see_it() -> None:
    head = PATCH.partition("@@")[0] + "@@ -0,0 +1,100000 @@\n"
    diff = excerpt_diff(head + "".join(f"+line {n} <&>\n" for n in range(100_000)), 20_000, "dgm show run 7")
    texts = [text for _, text in diff.lines]
    assert diff.added == 100_000
    assert sum(map(len, texts)) < 21_000
    assert "+line 0 <&>" in texts and "+line 99999 <&>" in texts
    (cut,) = [text for text in texts if "lines left out; dgm show run 7 prints them all" in text]
    shown = sum(text.startswith("+line") for text in texts)
    assert shown + int(cut.split()[1].replace(",", "")) == 100_000


def test_one_endless_line_is_cut() -> None:
    diff = excerpt_diff(PATCH.replace("+two", "+" + "x" * 1_000_000), 20_000, "dgm show")
    assert max(len(text) for _, text in diff.lines) < 2_000
