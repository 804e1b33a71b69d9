"""The pictures: what can be drawn is drawn, as XML, with what matters in it."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from dgm.errors import UserError
from dgm.report.drawing import Axes, SvgDrawing, round_ticks, short_number, stairs_path
from dgm.report.figures import FIGURES, draw_operators, write_figures
from dgm.report.tree_picture import draw_tree_picture
from tests.support.runs.paid import PaidRun
from tests.unit.report.conftest import facts

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.starts_processes
def test_all_figures_of_a_run_are_files(hostile, tmp_path) -> None:
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    written = write_figures(hostile, folder)
    assert {path.stem for path in written} == set(FIGURES) - {"operators"} | (
        {"operators"} if any(line.gain for line in hostile.operators) else set()
    )
    for path in written:
        root = ElementTree.fromstring(path.read_bytes())
        assert root.tag == f"{SVG}svg"
        assert root.find(f"{SVG}title") is not None
        assert not root.findall(f".//{SVG}script")
    assert (folder / "notes.txt").read_text() == "mine"
    assert write_figures(hostile, folder) == written


def test_a_run_without_verdicts_has_a_tree_and_a_matrix_only(tmp_path) -> None:
    made = PaidRun(tmp_path / "new")
    written = write_figures(facts(made.run), tmp_path / "figures")
    made.run.close()
    assert {path.stem for path in written} == {"tree", "matrix"}


@pytest.mark.starts_processes
def test_every_agent_is_in_the_tree_with_what_it_is(hostile) -> None:
    root = ElementTree.fromstring(draw_tree_picture(hostile).file())
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    for member in hostile.members:
        assert sum(title.startswith(f"agent {member.agent.id}: ") for title in titles) == 1 + (
            member.agent.id == hostile.best
        )
    assert sum("the best agent" in title for title in titles) == 1
    assert len(root.findall(f"{SVG}path[@class='line']")) == (len(hostile.tree.line) > 1)


def test_a_larger_clade_has_a_larger_mark(paid) -> None:
    found = facts(paid.run)
    root = ElementTree.fromstring(draw_tree_picture(found).file())
    radius = {}
    for mark in root.iter(f"{SVG}circle"):
        title = mark.find(f"{SVG}title")
        if title is not None and (title.text or "").startswith("agent "):
            radius[int((title.text or "").split()[1].rstrip(":"))] = float(mark.get("r", "0"))
    assert radius[0] > radius[1] > 0


@pytest.mark.starts_processes
@pytest.mark.parametrize("which", ["paid", "hostile"])
def test_the_legend_is_whole(request, which: str) -> None:
    found = request.getfixturevalue(which)
    root = ElementTree.fromstring(draw_tree_picture(found if which == "hostile" else facts(found.run)).file())
    legend = [text for text in root.iter(f"{SVG}text") if text.get("class") == "soft"]
    assert any("its line thick" in (text.text or "") for text in legend)
    for text in legend:
        assert float(text.get("x", "")) + 6 * len(text.text or "") <= float(root.get("width", ""))
        assert float(text.get("y", "")) <= float(root.get("height", "")) - 4


@pytest.mark.starts_processes
def test_the_ticks_of_gains_are_round(hostile) -> None:
    lines = [replace(line, gains=[-0.1145, 0.2291]) for line in hostile.operators]
    drawing = draw_operators(replace(hostile, operators=lines))
    assert drawing is not None
    said = [shape.text for shape in drawing.shapes if shape.attributes.get("text-anchor") == "middle"]
    assert said[:-1] == ["−20", "−10", "0", "+10", "+20"]


@pytest.mark.parametrize(
    ("highest", "found"),
    [
        (300, [0, 100, 200, 300]),
        (9.7, [0, 2, 4, 6, 8]),
        (0.05, [0, 0.01, 0.02, 0.03, 0.04, 0.05]),
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, [0]),
        (float("nan"), [0]),
    ],
)
def test_ticks_are_round(highest: float, found: list[float]) -> None:
    assert round_ticks(highest) == pytest.approx(found)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (0.0125, "0.0125"), (250, "250"), (1500, "1.5k"), (2e6, "2M"), (3.21e9, "3.2G")],
)
def test_large_numbers_are_short(value: float, said: str) -> None:
    assert short_number(value) == said


def test_stairs_keep_a_height_until_the_next_point() -> None:
    assert stairs_path([(0, 1), (2, 3), (4, 0.5)]) == "M0 1H2V3H4V0.5"
    assert stairs_path([]) == ""


def test_axes_without_a_width_divide_by_nothing() -> None:
    assert Axes(10, 10, 100, 50, 0).x(0) == 10
    drawing = SvgDrawing("empty", 10, 10)
    Axes(10, 10, 100, 50, 0).draw(drawing, "nothing")
    ElementTree.fromstring(drawing.file())


@pytest.mark.starts_processes
def test_a_folder_that_cannot_be_is_one_line(hostile, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="a file, not a folder"):
        write_figures(hostile, tmp_path / "file")
    with pytest.raises(UserError, match="there is no folder"):
        write_figures(hostile, tmp_path / "none" / "figures")
