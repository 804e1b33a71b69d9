"""Nothing of a run becomes markup, whatever it holds."""

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dgm.report
from dgm.report.drawing import SvgDrawing
from dgm.report.markup import Html, escape_text, h, join_html, number_text
from dgm.show.safe import neutralise

pytestmark = pytest.mark.slow


class Texts(HTMLParser):
    """Tags, attributes and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.slow
@given(st.text())
def test_any_text_is_read_back_as_it_is_shown(text: str) -> None:
    read = Texts(h("p", {"title": text}, text))
    shown = neutralise(text).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    assert read.tags == ["p"]
    assert read.text == shown
    assert read.attributes == [("title", shown)]


@given(st.text(), st.text())
def test_a_picture_of_any_text_is_xml(text: str, tip: str) -> None:
    drawing = SvgDrawing(text, 10, 10)
    drawing.text(1, 1, text)
    drawing.add("circle", {"r": 1, "class": text}, tip=tip)
    ElementTree.fromstring(drawing.file())
    ElementTree.fromstring(drawing.html().encode())


def test_what_is_markup_already_is_left_alone() -> None:
    assert join_html(h("b", {}, "<"), "<") == "<b>&lt;</b>&lt;"
    assert h("p", {"hidden": "", "class": None}, Html("<i></i>")) == '<p hidden=""><i></i></p>'
    assert escape_text("\x1b[31m'\"") == "\\x1b[31m&#x27;&quot;"


@pytest.mark.parametrize(
    ("value", "said"), [(1.0, "1"), (0.5, "0.5"), (-0.001, "0"), (1e9, "1000000000"), (2 / 3, "0.67")]
)
def test_numbers_have_no_exponents_and_no_needless_zeros(value: float, said: str) -> None:
    assert number_text(value) == said


def test_no_other_module_writes_markup() -> None:
    folder = Path(dgm.report.__file__).parent
    for module in folder.glob("*.py"):
        if module.name == "markup.py":
            continue
        code = re.sub(r'""".*?"""', "", module.read_text(), flags=re.DOTALL)
        allowed = code.replace('Html("<!DOCTYPE html>\\n")', "") if module.name == "page.py" else code
        assert not re.search(r"""["'][^"'\n]*</?[a-z!]""", allowed), module.name
        assert allowed.count("Html(") == {"page.py": 1, "drawing.py": 1}.get(module.name, 0), module.name
