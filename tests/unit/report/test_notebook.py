"""Runs, trees, agents, tables, reports and comparisons as a notebook displays them."""

import base64
import re
from xml.etree import ElementTree

import pytest

from dgm.api.records import Records
from dgm.api.report import report
from dgm.api.results import Results
from dgm.render.html.notebook import AGENTS, ROWS, tree_html
from dgm.render.safe import neutralise
from dgm.views.agents import TreeView
from tests.support.runs.paid import small
from tests.unit.report.conftest import Page

TAGS = {"pre", "span", "img", "div", "table", "thead", "tbody", "tr", "th", "td", "p"}
SVG = re.compile(r'src="data:image/svg\+xml;base64,([^"]*)"')

pytestmark = pytest.mark.starts_processes


def page_of(thing) -> Page:
    return Page(thing._repr_html_().encode())


def pictures_of(html: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(base64.b64decode(picture)) for picture in SVG.findall(html)]


@pytest.mark.parametrize(
    "what",
    [
        lambda run: run,
        lambda run: run.tree,
        lambda run: run.agents[0],
        lambda run: run.agent_table,
        lambda run: run.evaluations,
        report,
    ],
    ids=["run", "tree", "agent", "agents", "evaluations", "report"],
)
def test_hostile_texts_are_text(hostile_folder, what) -> None:
    with Results.open(hostile_folder) as run:
        html = what(run)._repr_html_()
    page = Page(html.encode())
    assert set(page.tags) <= TAGS
    assert {name for name, _ in page.attributes} <= {"style", "alt", "src"}
    assert page.text == neutralise(page.text)
    for picture in pictures_of(html):
        assert not [node for node in picture.iter() if node.tag.endswith(("script", "image", "a"))]


def test_a_tree_is_a_picture_with_each_agent(paid) -> None:
    (picture,) = pictures_of(Results(paid.run).tree._repr_html_())
    titles = [title.text or "" for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert {title.split(":")[0] for title in titles} >= {"agent 0", "agent 1", "agent 2"}


def test_a_large_tree_is_cut_to_the_largest_clades_and_the_best_line(paid) -> None:
    view = TreeView.load(paid.run)
    seed, child = view.agents[:2]
    children = [child.model_copy(update={"agent": n, "children": ()}) for n in range(1, AGENTS + 21)]
    seed = seed.model_copy(update={"children": tuple(row.agent for row in children)})
    html = tree_html(view.model_copy(update={"agents": (seed, *children), "best": AGENTS + 10}))
    (picture,) = pictures_of(html)
    text = ElementTree.tostring(picture, encoding="unicode")
    assert len(re.findall(r"agent \d+: self-edit", text)) == AGENTS - 1
    assert f"agent {AGENTS + 10}: self-edit" in text
    assert "21 agents" in Page(html.encode()).text


def test_a_tree_without_an_agent_is_a_text(paid) -> None:
    view = TreeView.load(paid.run).model_copy(update={"agents": (), "best": None})
    assert set(Page(tree_html(view).encode()).tags) == {"pre"}


def test_a_table_has_its_first_rows_and_their_number() -> None:
    page = page_of(Records(["a", "b"], [(n, n / 3) for n in range(ROWS + 5)]))
    assert page.tags.count("tr") == ROWS + 1
    assert f"{ROWS + 5} rows" in page.text
    assert "0.3333" in page.text


def test_a_comparison_has_its_curves(paid, tmp_path) -> None:
    other = small(tmp_path / "other")
    other.run.close()
    assert len(pictures_of(report(paid.run, other.run.folder)._repr_html_())) == 1
