"""The report as one HTML file that loads nothing: no network, no font, no script but its own.

A content security policy makes the browser keep to it: it runs only the one script and the one style whose hashes it
names. A run that has ended gives the same bytes each time, so the page has no creation date.
"""

import base64
import hashlib
from importlib.resources import files

from dgm.report import ending
from dgm.report.answer import build_answer
from dgm.report.facts import RunReport, is_going_on
from dgm.report.groups import build_groups
from dgm.report.growth import build_operators, build_progress, build_tree
from dgm.report.markup import Html, h, join_html
from dgm.report.section import PageSection
from dgm.show.safe import one_line
from dgm.show.words import count_text

LIMIT = 2_000_000
"""Upper limit in bytes for a page of 1,000 agents."""


def render_page(report: RunReport) -> bytes:
    """Return the whole file, in UTF-8."""
    style, script = _read_asset("page.css"), _read_asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_csp_hash(style)}'; script-src '{_csp_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = [
        build_answer(report),
        build_progress(report),
        build_tree(report),
        build_operators(report),
        ending.build_lineage(report),
        ending.build_tasks(report),
        *_list_groups(report),
        ending.build_spend(report),
        ending.build_failures(report),
        ending.build_reproduction(report),
    ]
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
        _header_part(report),
        h(
            "nav",
            {"aria-label": "Contents"},
            *(h("a", {"href": f"#{part.id}"}, part.title) for part in parts),
        ),
        *(part.html() for part in parts),
        _footer_part(report),
    )
    tip = h("div", {"id": "tip", "role": "tooltip", "hidden": ""})
    document = h("html", {"lang": "en"}, head, h("body", {}, main, tip, h("script", {}, script)))
    return join_html(Html("<!DOCTYPE html>\n"), document, "\n").encode()


def _list_groups(report: RunReport) -> list[PageSection]:
    found = build_groups(report.groups, report.best)
    return [found] if found else []


def _read_asset(name: str) -> Html:
    return Html(files("dgm.report").joinpath(name).read_text(encoding="utf-8"))


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _header_part(report: RunReport) -> Html:
    run = report.run
    dates = report.began if report.began == report.ended else f"{report.began} to {_end_text(report)}"
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
            f"{one_line(_state_text(run['state']), 160)}",
        ),
        *_note_parts(report),
    )


def _end_text(report: RunReport) -> str:
    same_day = report.began.split()[0] == report.ended.split()[0]
    return report.ended.split()[1] if same_day else report.ended


def _state_text(state: str) -> str:
    known = {
        "running": "it is still going on",
        "paused": "it waits for its models' provider",
        "interrupted": "its process died before it ended",
        "goal": "it ended at its goal",
    }
    return known.get(state, f"it ended: {state}")


def _note_parts(report: RunReport) -> list[Html]:
    notes = [f"Note: {report.note}."]
    if is_going_on(report):
        graded = report.run["evaluations"]["graded"]
        done = count_text(graded, "evaluation")
        notes.append(f"The run is still going on: this is how it stood after {done}.")
    elif report.run["state"] == "interrupted":
        under_way = report.run["running"]
        verb = "was" if under_way == 1 else "were"
        what = f"; {count_text(under_way, 'action')} {verb} under way" if under_way else ""
        notes.append(f"The run was cut off{what}. dgm resume goes on with it.")
    notes += [one_line(damage, 300) for damage in report.damage]
    return [h("aside", {"class": "note"}, *(h("p", {}, text) for text in notes))]


def _footer_part(report: RunReport) -> Html:
    made = report.reproduction.versions.get("dgm", "")
    return h(
        "footer",
        {},
        f"Made by dgm report from the run's own log; nothing on this page is fetched from anywhere. The run was begun "
        f"with dgm {one_line(made, 60)}. Times are in UTC.",
    )
