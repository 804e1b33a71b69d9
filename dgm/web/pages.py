"""The pages and data of a run: where each one is, and the function that loads it in the run's thread.

A page's ``load`` returns the values of its template; one of data returns JSON. Both are kept by address and query, so
viewers share what was computed once.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dgm.web.shared import RunSource

Values = Mapping[str, str]
"""What stands in the address and the query of a request; both are a stranger's text."""


class Page(NamedTuple):
    """A page of a run."""

    path: str
    """Below the run's address, in the form of starlette: ``agents/{agent:int}``."""
    template: str
    load: Callable[[RunSource, Values], Mapping[str, Any]]
    tab: str = ""
    """Its name in the navigation; empty if it is not there."""
    query: tuple[str, ...] = ()
    """Names in its query; others are ignored."""


class Data(NamedTuple):
    """JSON for the script of a page."""

    path: str
    """Below the run's address: ``data/NAME.json``."""
    load: Callable[[RunSource, Values], bytes]
    query: tuple[str, ...] = ()


def load_overview(source: RunSource, _: Values) -> Mapping[str, Any]:
    """Load the state of the run."""
    return {"view": source.view()}


PAGES = (Page("", "overview.html", load_overview, "Overview"),)
DATA: tuple[Data, ...] = ()
