"""Links of documents lead somewhere, and paths of files that they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)")
PATH = re.compile(r"`((?:dgm|tests/\w+|benchmarks|sandboxes|archive)/[\w/]+\.\w+)`")


def anchors_of(page):
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_of_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    for file, anchor in LINK.findall(text):
        target = page.parent / file if file else page
        assert target.exists(), file
        if anchor:
            assert anchor in anchors_of(target), f"{file}{anchor}"
    paths = (path for path in PATH.findall(text) if "NAME" not in path)
    assert [path for path in paths if not any((base / path).exists() for base in (ROOT, ROOT / "dgm"))] == []


def test_modules_of_the_architecture_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = set(re.findall(r"\b[a-z]+/[\w/]+\.(?:py|toml)\b", text))
    assert len(modules) > 50
    assert [path for path in sorted(modules) if not (ROOT / "dgm" / path).exists()] == []
