"""The figures: what can be drawn is drawn, as XML, with what matters in it."""

from random import Random
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from dgm.render.html.figures import _place_rows, draw_front, draw_operators, draw_tree, write_figures
from dgm.render.html.page import render_page
from dgm.render.html.svg import Axes, Drawing, band_path, element, number_text, round_ticks, stairs_path
from dgm.render.report_text import objective_sentences
from dgm.render.safe import neutralise
from dgm.views.objective import MeasuredAgent, MetricView, ObjectiveView
from dgm.views.report import GainView, ReportView, view_tree
from tests.support.runs.paid import PaidRun
from tests.unit.report.conftest import Page

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.starts_processes
def test_all_figures_of_a_run_are_files(hostile, tmp_path) -> None:
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    written = write_figures(hostile, folder)
    progress = {f"progress-{name}" for name in ("evaluations", "spend", "time")}
    assert {path.stem for path in written} - {"operators", "drift"} == {
        "holdout",
        "tree",
        "matrix",
        *progress,
    }
    for path in written:
        root = ElementTree.fromstring(path.read_bytes())
        assert root.tag == f"{SVG}svg"
        assert root.find(f"{SVG}title") is not None
        assert "var(" not in path.read_text()
        assert not root.findall(f".//{SVG}script")
    assert (folder / "notes.txt").read_text() == "mine"
    assert write_figures(hostile, folder) == written


@pytest.mark.starts_processes
def test_a_run_without_verdicts_has_a_tree_and_a_matrix_only(tmp_path) -> None:
    made = PaidRun(tmp_path / "new")
    written = write_figures(ReportView.load(made.run), tmp_path / "figures")
    made.run.close()
    assert {path.stem for path in written} == {"tree", "matrix"}


@pytest.mark.starts_processes
def test_every_agent_is_in_the_tree(hostile) -> None:
    root = ElementTree.fromstring(draw_tree(hostile.tree.agents, hostile.lineage.agents).file())
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    for agent in hostile.tree.agents:
        assert sum(title.startswith(f"agent {agent.agent}: ") for title in titles) == 1 + agent.best
    assert sum("the best agent" in title for title in titles) == 1
    assert len(root.findall(f"{SVG}path[@class='line']")) == (len(hostile.lineage.agents) > 1)


@pytest.mark.starts_processes
def test_a_larger_clade_has_a_larger_mark(paid) -> None:
    view = ReportView.load(paid.run)
    root = ElementTree.fromstring(draw_tree(view.tree.agents, view.lineage.agents).file())
    radius = {}
    for mark in root.iter(f"{SVG}circle"):
        title = mark.find(f"{SVG}title")
        if title is not None and (title.text or "").startswith("agent "):
            radius[int((title.text or "").split()[1].rstrip(":"))] = float(mark.get("r", "0"))
    assert radius[0] > radius[1] > 0


@pytest.mark.starts_processes
@pytest.mark.parametrize("seed", range(2))
def test_agents_of_a_tree_do_not_overlap(seed: int, tmp_path) -> None:
    made, rng = PaidRun(tmp_path / "run"), Random(seed)
    for agent in range(1, 40):
        made.child(*{rng.randrange(agent), rng.randrange(agent)}, calls=0)
    tree = made.run.tree
    agents = {agent.agent: agent for agent in view_tree(tree, 39).agents}
    made.run.close()
    rows = _place_rows(agents)
    assert len({(agents[agent].depth, row) for agent, row in rows.items()}) == 40
    for agent, row in rows.items():
        children = [child for child in agents[agent].children if agents[child].parents[0] == agent]
        if children:
            assert row == (rows[children[0]] + rows[children[-1]]) / 2


@pytest.mark.starts_processes
def test_of_a_large_tree_the_best_line_and_the_largest_clades_are_drawn(tmp_path) -> None:
    made, rng = PaidRun(tmp_path / "run"), Random(1)
    for agent in range(1, 60):
        made.child(rng.randrange(agent), calls=0)
    tree = made.run.tree
    view = view_tree(tree, 59, most=20)
    made.run.close()
    drawn = {agent.agent for agent in view.agents}
    assert {0, 59} <= drawn
    assert len(drawn) <= 20
    assert view.left_out == 60 - len(drawn)
    assert all(agent.parents[0] in drawn for agent in view.agents if agent.parents)


@pytest.mark.starts_processes
def test_the_ticks_of_gains_are_round(hostile) -> None:
    gain = GainView(mean=0.05, interval=(-0.1145, 0.2291))
    lines = tuple(line.model_copy(update={"gain": gain}) for line in hostile.operators)
    drawing = draw_operators(lines)
    assert drawing is not None
    middle = [text for _, attributes, text, _ in drawing.shapes if attributes.get("text-anchor") == "middle"]
    assert middle[:-1] == ["-20", "-10", "0", "+10", "+20"]


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (300, [0, 100, 200, 300]),
        (9.7, [0, 2, 4, 6, 8]),
        (0.05, [0, 0.01, 0.02, 0.03, 0.04, 0.05]),
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, [0]),
        (float("nan"), [0]),
    ],
)
def test_ticks_are_round(highest: float, ticks: list[float]) -> None:
    assert round_ticks(highest) == pytest.approx(ticks)


def test_stairs_keep_a_height_until_the_next_point() -> None:
    assert stairs_path([(0, 1), (2, 3), (4, 0.5)]) == "M0 1H2V3H4V0.5"
    assert stairs_path([]) == ""


def test_a_band_lies_between_its_lines():
    low, high = [(0, 1), (2, 3), (4, 5)], [(0, 6), (2, 7), (4, 8)]
    assert band_path(low, high) == "M0 6H2V7H4V8V5H4V3H2V1H0Z"
    assert band_path([], []) == ""


def test_axes_without_a_width_divide_by_nothing() -> None:
    drawing = Drawing("empty", 10, 10)
    Axes(10, 10, 100, 50, 0).draw(drawing, "nothing")
    ElementTree.fromstring(drawing.file())


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (0.5, "0.5"), (-0.001, "0"), (1e9, "1000000000"), (2 / 3, "0.67")]
)
def test_numbers_have_no_exponents_and_no_needless_zeros(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.slow
@given(st.text(), st.text())
def test_no_text_becomes_markup(text: str, tip: str) -> None:
    page = Page(element("p", {"title": text}, text).encode())
    shown = neutralise(text).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    assert (page.tags, page.text, page.attributes) == (["p"], shown, [("title", shown)])
    drawing = Drawing(text, 10, 10)
    drawing.text(1, 1, text)
    drawing.add("circle", {"r": 1, "class": text}, tip=tip)
    ElementTree.fromstring(drawing.file(text))
    ElementTree.fromstring(drawing.markup().encode())


def test_markup_is_left_alone() -> None:
    assert element("p", {"class": None}, Markup("<i></i>"), "<") == "<p><i></i>&lt;</p>"


def with_objective(view: ReportView) -> ReportView:
    """The report with a front of two metrics, one of them of a hostile name."""
    points = {0: (0.2, 900.0, False), 1: (0.5, 1000.0, True), 2: (0.8, 4000.0, True)}
    agents = [
        MeasuredAgent(agent=agent, tasks=8, means={"rate": rate, "<b>": cost}, front=front)
        for agent, (rate, cost, front) in points.items()
    ]
    metrics = {name: MetricView(higher=name == "rate", unit="", meaning="") for name in ("rate", "<b>")}
    front = ObjectiveView(
        front=("rate", "<b>"), weights={}, metrics=metrics, agents=tuple(agents), leading=None
    )
    return view.model_copy(update={"objective": front})


@pytest.mark.starts_processes
def test_the_front_is_drawn_and_told(paid) -> None:
    view = ReportView.load(paid.run)
    assert draw_front(view) is None
    assert list(objective_sentences(view)) == []
    view = with_objective(view)
    drawing = draw_front(view)
    assert drawing
    root = ElementTree.fromstring(drawing.file())
    assert len(root.findall(f"{SVG}circle[@class='dot']")) == 2
    assert len(root.findall(f"{SVG}circle[@class='node none']")) == 1
    assert len(root.findall(f"{SVG}path[@class='lower']")) == 1
    told = list(objective_sentences(view))
    assert told[0] == "◇ on the front of rate, <b>: agents 1, 2"
    assert "agent 2: rate 0.8, <b> 4k (8 tasks)" in told
    assert b"&lt;b&gt; 4k" in render_page(view)
