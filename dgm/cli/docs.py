"""``dgm docs``: the pages of the documentation, which are installed with dgm."""

import difflib
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json, make_console
from dgm.errors import UserError
from dgm.paths import asset
from dgm.show.ascii import text_to_ascii
from dgm.show.terminal import draws_marks

FURTHER: Mapping[str, tuple[str, ...]] = {
    "agents": ("archive", "seeds", "README.md"),
    "archive": ("archive", "README.md"),
    "polyglot": ("benchmarks", "polyglot", "README.md"),
    "sandboxes": ("sandboxes", "README.md"),
    "suites": ("benchmarks", "README.md"),
    "swebench-subsets": ("benchmarks", "swebench", "README.md"),
}
"""Pages that lie beside their subject, outside of the documentation folder."""


@click.command()
@click.argument("page", metavar="[PAGE]", required=False)
@click.option("--path", "where", is_flag=True, help="Print where the page's file lies instead.")
@as_json
def docs(page: str | None, where: bool, as_json: bool) -> None:
    """Print a page of the documentation; without PAGE, list them. To read a long one: dgm docs models | less."""
    pages = find_pages()
    if page is None:
        _list_pages(pages, as_json)
        return
    file = pages.get(page.removeprefix("docs/").removesuffix(".md"))
    if file is None:
        near = difflib.get_close_matches(page, pages, 1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(pages)}"
        raise UserError(f"no page '{page}' ({hint})")
    text = file.read_text(encoding="utf-8")
    if as_json:
        emit_json({"page": page, "title": _page_title(text), "file": str(file), "text": text})
    elif where:
        sys.stdout.write(f"{file}\n")
    else:
        _print_page(text)


def find_pages() -> Mapping[str, Path]:
    """Return the file of every existing page by its name."""
    found = {file.stem: file for file in asset("docs").glob("*.md")}
    found |= {name: file for name, parts in FURTHER.items() if (file := asset(*parts)).is_file()}
    return dict(sorted(found.items()))


def _list_pages(pages: Mapping[str, Path], as_json: bool) -> None:
    rows = [(name, _page_title(file.read_text(encoding="utf-8")), file) for name, file in pages.items()]
    if as_json:
        emit_json(
            {"pages": [{"page": name, "title": title, "file": str(file)} for name, title, file in rows]}
        )
        return
    width = max((len(name) for name in pages), default=0)
    sys.stdout.writelines(f"{name:<{width}}  {title}\n" for name, title, _ in rows)


def _page_title(text: str) -> str:
    return next((row.removeprefix("# ").strip() for row in text.splitlines() if row.startswith("# ")), "")


def _print_page(text: str) -> None:
    """Print a page: typeset on a terminal, as plain source elsewhere."""
    if not draws_marks(sys.stdout):
        text = text_to_ascii(text)
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    from rich.markdown import Markdown

    make_console().print(Markdown(text))
