"""The report as one HTML file that loads nothing: no network, no font, no script but its own.

A content security policy makes the browser keep to it: it runs only the one script and the one style whose hashes it
names. A run that has ended gives the same bytes each time, so the page has no creation date.
"""

import base64
import hashlib
from importlib.resources import files

from dgm.report import ending
from dgm.report.answer import answer
from dgm.report.facts import Report, is_going_on
from dgm.report.growth import operators, progress, tree
from dgm.report.markup import Html, h, joined
from dgm.show.safe import one_line
from dgm.show.words import counted

LIMIT = 2_000_000
"""Upper limit in bytes for a page of 1,000 agents."""


def page(report: Report) -> bytes:
    """Return the whole file, in UTF-8."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = [answer(report), progress(report), tree(report), operators(report), *ending.all_of(report)]
    head = h(
        "head",
        {},
        h("meta", {"charset": "utf-8"}),
        h("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        h("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        h("meta", {"name": "referrer", "content": "no-referrer"}),
        h("title", {}, f"dgm report: {one_line(report.run['run'], 100)}"),
        h("style", {}, style),
    )
    main = h(
        "main",
        {},
        _header(report),
        h(
            "nav",
            {"aria-label": "Contents"},
            *(h("a", {"href": f"#{part.id}"}, part.title) for part in parts),
        ),
        *(part.html() for part in parts),
        _footer(report),
    )
    tip = h("div", {"id": "tip", "role": "tooltip", "hidden": ""})
    document = h("html", {"lang": "en"}, head, h("body", {}, main, tip, h("script", {}, script)))
    return joined(Html("<!DOCTYPE html>\n"), document, "\n").encode()


def _asset(name: str) -> Html:
    return Html(files("dgm.report").joinpath(name).read_text(encoding="utf-8"))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _header(report: Report) -> Html:
    run = report.run
    dates = report.began if report.began == report.ended else f"{report.began} to {_end(report)}"
    return h(
        "header",
        {},
        h("p", {"class": "over"}, "A search for better coding agents"),
        h("h1", {}, h("bdi", {}, one_line(run["run"], 120))),
        h(
            "p",
            {"class": "sub"},
            h("bdi", {}, one_line(run["benchmark"], 160)),
            " with ",
            h("bdi", {}, one_line(run["model"], 200)),
            f", policy {one_line(run['policy'], 60)}, seed {run['seed']}; {dates} UTC; ",
            f"{one_line(_state(run['state']), 160)}",
        ),
        *_notes(report),
    )


def _end(report: Report) -> str:
    same_day = report.began.split()[0] == report.ended.split()[0]
    return report.ended.split()[1] if same_day else report.ended


def _state(state: str) -> str:
    known = {
        "running": "it is still going on",
        "paused": "it waits for its models' provider",
        "interrupted": "its process died before it ended",
        "goal": "it ended at its goal",
    }
    return known.get(state, f"it ended: {state}")


def _notes(report: Report) -> list[Html]:
    notes = [f"Note: {report.note}."]
    if is_going_on(report):
        graded = report.run["evaluations"]["graded"]
        done = counted(graded, "evaluation")
        notes.append(f"The run is still going on: this is how it stood after {done}.")
    elif report.run["state"] == "interrupted":
        under_way = report.run["running"]
        verb = "was" if under_way == 1 else "were"
        what = f"; {counted(under_way, 'action')} {verb} under way" if under_way else ""
        notes.append(f"The run was cut off{what}. dgm resume goes on with it.")
    notes += [one_line(damage, 300) for damage in report.damage]
    return [h("aside", {"class": "note"}, *(h("p", {}, text) for text in notes))]


def _footer(report: Report) -> Html:
    made = report.reproduction.versions.get("dgm", "")
    return h(
        "footer",
        {},
        f"Made by dgm report from the run's own log; nothing on this page is fetched from anywhere. The run was begun "
        f"with dgm {one_line(made, 60)}. Times are in UTC.",
    )
