"""The page as a file: what may stand in it, how large it gets, and what it says of runs that are hardly there."""

import base64
import hashlib
import re
import shutil
from dataclasses import replace

import pytest

from dgm.analysis.best import best_of
from dgm.analysis.operator_accounts import operators_of
from dgm.archive.events import RunStopped
from dgm.archive.run import Run
from dgm.domain import AgentId
from dgm.report.facts import gather_report
from dgm.report.page import LIMIT, render_page
from tests.support.runs.hostile import hostile as hostile_run
from tests.support.runs.large import large_run
from tests.support.runs.paid import PaidRun
from tests.unit.report.conftest import facts
from tests.unit.report.test_markup import Texts

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
    read = Texts(hostile_page)
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
    said = policy[1].replace("&#x27;", "'")
    assert said.startswith("default-src 'none'")
    for tag in ("style", "script"):
        text = hostile_page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in said


def test_the_same_run_gives_the_same_bytes(paid) -> None:
    assert render_page(facts(paid.run)) == render_page(facts(paid.run))


def test_tasks_given_up_stand_beside_the_tallies_that_do_not_count_them(paid) -> None:
    found = facts(paid.run)
    assert [member.given_up for member in found.members] == [0, 1, 0]
    page = render_page(replace(found, best=AgentId(1))).decode()
    assert "; 1 task given up)" in page
    assert "1 task given up\n" in page


def test_links_lead_to_sections_of_the_page(paid) -> None:
    text = render_page(facts(paid.run)).decode()
    targets = re.findall(r'href="#([a-z]+)"', text)
    assert len(targets) == 9
    assert all(f'<section id="{target}">' in text for target in targets)


def test_a_run_without_an_evaluation_is_reported(tmp_path) -> None:
    made = PaidRun(tmp_path / "new")
    made.run.append(RunStopped("interrupted by a person"))
    said = Texts(render_page(facts(made.run)).decode()).text
    made.run.close()
    assert "No evaluation yet." in said
    assert "Nothing is shown yet" in said
    assert "The best agent has no verdict on a search task yet." in said
    assert "No model was called." in said
    assert "No expansion yet" in said
    assert "it ended: interrupted by a person" in said


def test_a_run_that_was_cut_off_says_so(paid) -> None:
    # The test's own process holds the run's lock: as for a run that another process goes on with.
    assert "The run is still going on" in Texts(render_page(facts(paid.run)).decode()).text
    folder = paid.run.folder
    paid.run.close()
    with Run.open(folder) as run:
        said = Texts(render_page(facts(run)).decode()).text
    assert "The run was cut off; 1 action was under way." in said


@pytest.mark.starts_processes
def test_lost_traces_are_named_once_and_diffs_stay(tmp_path) -> None:
    made = hostile_run(tmp_path)
    whole = render_page(facts(made.run)).decode()
    shutil.rmtree(made.run.folder / "traces")
    best = best_of(made.run)
    found = gather_report(made.run, best, None, operators_of(made.run, timed=False))
    text = render_page(found).decode()
    made.run.close()
    assert "not there: traces" not in whole
    said = Texts(text).text
    assert said.count("not there: traces of evaluations and of agents' making (0 of ") == 1
    assert text.count("<details") == whole.count("<details") > 0


@pytest.mark.starts_processes
def test_a_lost_repository_leaves_the_rest(paid) -> None:
    shutil.rmtree(paid.run.folder / "agents.git")
    found = gather_report(paid.run, AgentId(2), None, operators_of(paid.run))
    said = Texts(render_page(found).decode()).text
    assert said.count("not there: 2 of 2 diffs") == 1
    assert said.count("The diff is not there") == 2
    assert str(paid.run.folder) not in said
    assert "Failures by kind" in said


@pytest.mark.starts_processes
def test_a_thousand_agents_with_long_texts_and_diffs_fit(tmp_path) -> None:
    with large_run(tmp_path / "large", 1000, 4000, calls=0, commits=False) as run:
        found = gather_report(run, AgentId(999), None, operators_of(run))
    assert len(found.line.steps) > 20
    patch = b"diff --git a/x b/x\n@@ -1 +1 @@\n" + b"+<a href='x'>&\x1b[31m</a>\n" * 4_000
    steps = [replace(step, patch=patch, damage="") for step in found.line.steps]
    data = render_page(replace(found, line=replace(found.line, steps=steps)))
    assert len(patch) > 90_000
    assert len(data) < LIMIT
    assert len(re.findall(rb'data-t="agent \d+: ', data)) == 1001
