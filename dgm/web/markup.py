"""From views to HTML: the templates' environment, in which every text is neutralised and escaped."""

import hashlib
import time
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined

from dgm.render import fmt
from dgm.render.html.page import STYLES
from dgm.render.html.svg import clean, interval_bar, read_template
from dgm.render.safe import one_line

TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
CUT_CHARS = 20_000
"""Maximum characters of a text of an agent, a model or a test that a page shows."""


def render(template: str, values: Mapping[str, Any]) -> bytes:
    """Return a page."""
    return environment().get_template(template).render(values).encode("utf-8", "replace")


@cache
def environment() -> Environment:
    """Return the environment of all templates."""
    templates = Environment(
        autoescape=True,
        finalize=clean,
        undefined=StrictUndefined,
        loader=FunctionLoader(_read),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals.update(fmt=fmt, bar=interval_bar, now=time.time)
    templates.filters.update(line=one_line, part=encode_part, cut=cut, number="{:,}".format)
    return templates


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Return name → content and type of each script and style; nothing else is served as a file."""
    folder = files("dgm.web").joinpath("static")
    names = {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name[path.name.rfind(".") :] in TYPES
    }
    names["report.css"] = "".join(map(read_template, STYLES)).encode()
    return {name: (data, TYPES[name[name.rfind(".") :]]) for name, data in names.items()}


def encode_part(name: str) -> str:
    """Return the name of a run or a task as one part of a path."""
    return quote(address_name(name), safe="")


def address_name(name: str) -> str:
    """Return what stands for a run or a task in an address: its name, or a checksum of one that is no plain text."""
    if name.isprintable():
        return name
    return f"~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def cut(text: str, limit: int = CUT_CHARS) -> str:
    """Return a text without its middle if it is long."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    return f"{text[:head]}\n… {len(text) - limit:,} characters left out …\n{text[-tail:]}"


def _read(name: str) -> str:
    return files("dgm.web").joinpath("templates", name).read_text(encoding="utf-8")
