"""The tree page in a real Chromium: what keys, pointers, links and news do, for runs of all sizes and hostile names."""

import re
from itertools import pairwise
from random import Random

import pytest

from tests.support.browsing import SIZES, find_violations, serving
from tests.support.runs.bushy import bushy_run
from tests.support.runs.growing import Growing, growth
from tests.support.runs.hostile import hostile

pytestmark = [pytest.mark.connect, pytest.mark.starts_processes]
LAYOUT = """
async ([parents, folded]) => {
  const { TreeStore } = await import("/-/static/tree_store.js");
  const { Layout } = await import("/-/static/tree_layout.js");
  const { above, below } = await import("/-/static/tree_walk.js");
  const store = new TreeStore();
  const zeros = parents.map(() => 0);
  const agents = { parent: parents, resolved: zeros, n: zeros, cladeResolved: zeros, cladeN: zeros, low: zeros,
                   high: zeros, operator: zeros };
  store.apply({ seq: 1, agents, ids: null, crossovers: [], operators: ["x"], best: null, front: [], states: {} });
  const hidden = new Set(folded);
  const layout = new Layout(store, hidden);
  const list = column => Array.from(column.slice(0, parents.length));
  return { row: list(layout.row), depth: list(store.depth), hidden: list(layout.hidden), rows: layout.rows,
           members: list(layout.members), leaves: list(layout.leaves), columns: layout.columns,
           below: parents.map((_, id) => below(store, hidden, id)),
           above: parents.map((_, id) => above(store, hidden, id)) };
}
"""

ANCHOR = """
async ([parents, newborns, selected]) => {
  const { TreeView } = await import("/-/static/tree_view.js");
  const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const box = document.body.appendChild(document.createElement("div"));
  Object.assign(box.style, { width: "800px", height: "600px" });
  const view = new TreeView(box.appendChild(document.createElement("canvas")), () => {});
  const answer = (ids, parent) => {
    const zeros = parent.map(() => 0);
    const agents = { parent, resolved: zeros, n: zeros, cladeResolved: zeros, cladeN: zeros, low: zeros, high: zeros,
                     operator: zeros };
    return { seq: 1, agents, ids, crossovers: [], operators: ["x"], best: null, front: [], states: {} };
  };
  view.apply(answer(null, parents));
  await frame();
  const looked = selected ?? 0;
  const agent = looked < 0 ? 5 : looked;
  if (selected !== null) {
    view.zoomBy(3);
    view.panBy(400 - view.camera.x(view.store.depth[agent]), 300 - view.camera.y(view.layout.row[agent]));
    if (selected >= 0) view.select(selected, { reveal: false });
  }
  await frame();
  const measure = () => ({
    rows: view.layout.rows, scale: view.camera.row, x: view.camera.x(view.store.depth[agent]),
    y: view.camera.y(view.layout.row[agent]), last: view.camera.y(view.layout.rows - 1),
  });
  const before = measure();
  view.apply(answer(newborns.map((_, n) => parents.length + n), newborns));
  await frame();
  return [before, measure()];
}
"""
"""Shows a tree, perhaps near one agent, and adds newborns above it; returns where the agent was, and where it is."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server of three finished runs: ``bushy`` of 400 agents, ``small`` and a hostile one."""
    folder = tmp_path_factory.mktemp("runs")
    bushy_run(folder / "bushy", 400).close()
    steps = Growing(folder / "small")
    for parent in (0, 0, 1, 1, 3):
        steps.born(parent)
    steps.born(2, 3, operator="crossover")
    for agent in range(6):
        for task in range(4):
            steps.graded(agent, task, good=agent > task)
    steps.run.close()
    hostile(folder, name="hostile").run.close()
    with serving(folder) as url:
        yield url


def open_tree(visit, url, **more):
    page = visit(url, **more)
    page.wait_for_selector("#tree-items [aria-selected=true]", state="attached")
    return page


def selected(page):
    """The number of the selected agent, as a screen reader hears it."""
    name = page.get_attribute("#tree", "aria-activedescendant")
    text = page.text_content(f"#{name}")
    return int(re.match(r"Agent (\d+)", text)[1])


def press(page, *keys):
    page.focus("#tree")
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(150)


def link_of(page):
    """The values in the address, once they were written."""
    page.wait_for_timeout(600)
    return page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")


def view_of(page):
    """Column and row in the middle, and the two scales; None if everything is shown."""
    view = link_of(page).get("view")
    return view and [float(number) for number in view.split(",")]


def random_parents(count, rng):
    return [-1 if n == 0 or rng.random() < 0.02 else rng.randrange(max(0, n - 40), n) for n in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_no_two_agents_overlap_and_parents_stand_between_their_children(visit, site, seed):
    rng = Random(seed)
    parents = random_parents(600, rng)
    folded = rng.sample(range(600), 20) if seed % 2 else []
    page = visit(f"{site}/")
    layout = page.evaluate(LAYOUT, [parents, folded])
    seen = [n for n in range(600) if not layout["hidden"][n]]
    hidden = {
        n for n in range(600) if parents[n] >= 0 and (parents[n] in folded or layout["hidden"][parents[n]])
    }
    assert hidden == set(range(600)) - set(seen)
    places = sorted((layout["depth"][n], layout["row"][n]) for n in seen)
    for (depth, row), (next_depth, next_row) in pairwise(places):
        assert depth != next_depth or next_row - row >= 1
    children = {n: [m for m in seen if parents[m] == n] for n in seen}
    for n, below in children.items():
        if below:
            rows = [layout["row"][m] for m in below]
            assert rows == sorted(rows)
            assert layout["row"][n] == (rows[0] + rows[-1]) / 2
    leaves = [layout["row"][n] for n in seen if not children[n]]
    assert sorted(leaves) == list(range(layout["rows"]))
    assert layout["columns"] == 1 + max(layout["depth"][n] for n in seen)
    # Up and down lead through all visible agents of a generation in the order of their rows.
    for (depth, row), (next_depth, next_row) in pairwise(places):
        if depth == next_depth:
            here, there = (
                next(n for n in seen if (layout["depth"][n], layout["row"][n]) == place)
                for place in ((depth, row), (next_depth, next_row))
            )
            assert (layout["below"][here], layout["above"][there]) == (there, here)


def test_arrows_lead_to_parents_children_and_neighbours(visit, site):
    page = open_tree(visit, f"{site}/small/tree")
    assert selected(page) == 0
    for key, agent in (
        ("ArrowRight", 1),
        ("ArrowRight", 3),
        ("ArrowDown", 4),
        ("ArrowDown", 6),
        ("ArrowUp", 4),
        ("ArrowLeft", 1),
        ("ArrowDown", 2),
        ("Home", 0),
        ("ArrowLeft", 0),
    ):
        press(page, key)
        assert (key, selected(page)) == (key, agent)
    assert page.complaints == []


def test_a_screen_reader_hears_level_position_and_tally(visit, site):
    page = open_tree(visit, f"{site}/small/tree#agent=4")
    item = page.locator("#item-4")
    names = ("aria-level", "aria-posinset", "aria-setsize", "aria-selected", "aria-expanded")
    assert [item.get_attribute(name) for name in names] == ["3", "2", "2", "true", None]
    assert "4 of 4 resolved" in item.text_content()
    press(page, "ArrowLeft")
    item = page.locator("#item-1")
    assert item.get_attribute("aria-expanded") == "true"
    assert page.locator("[role=treeitem]").count() == 5  # the root, the sibling, and two children


def test_folded_descendants_are_passed_over(visit, site):
    page = open_tree(visit, f"{site}/small/tree#agent=1")
    press(page, " ")
    assert page.get_attribute("#item-1", "aria-expanded") == "false"
    assert link_of(page)["folded"] == "1"
    press(page, "ArrowRight")
    assert (selected(page), page.get_attribute("#item-1", "aria-expanded")) == (1, "true")
    press(page, "z")
    assert link_of(page).get("folded")
    press(page, "z")
    assert "folded" not in link_of(page)


def test_enter_opens_the_agent(visit, site):
    page = open_tree(visit, f"{site}/small/tree#agent=3")
    press(page, "Enter")
    page.wait_for_url("**/small/agents/3")


def test_keys_zoom_and_move_and_fit(visit, site):
    page = open_tree(visit, f"{site}/bushy/tree")
    assert view_of(page) is None
    press(page, "+", "+", "+")
    near = view_of(page)
    press(page, "Shift+ArrowRight")
    moved = view_of(page)
    assert moved[0] > near[0]
    assert moved[2:] == near[2:]
    press(page, "-")
    assert view_of(page)[3] < near[3]
    press(page, "f")
    assert view_of(page) is None


def test_the_search_selects_one_match_after_another(visit, site):
    page = open_tree(visit, f"{site}/bushy/tree")
    press(page, "/")
    page.keyboard.type("crossover")
    page.wait_for_selector("#tree-matches:not(:empty)")
    count = int(page.text_content("#tree-matches").split()[0])
    first = selected(page)
    page.keyboard.press("Enter")
    page.wait_for_timeout(150)
    assert 1 < count < 400
    assert selected(page) > first
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "tree"
    assert link_of(page).get("search") is None


def test_a_link_shows_the_same_view(visit, site):
    page = open_tree(visit, f"{site}/bushy/tree")
    page.select_option("#tree-colour", "operator")
    press(page, "b", "ArrowLeft", "+", "+", "+", " ")
    link = link_of(page)
    assert {"agent", "colour", "folded", "view"} <= link.keys()
    copy = open_tree(visit, page.url, size="phone")
    assert link_of(copy) == link
    assert copy.input_value("#tree-colour") == "operator"


@pytest.mark.parametrize(
    "fragment", ["agent=99999&folded=-4,x", "view=NaN,1,2,0", "colour=red&agent=%00", "view=1"]
)
def test_a_broken_link_shows_the_tree(visit, site, fragment):
    page = open_tree(visit, f"{site}/small/tree#{fragment}")
    assert selected(page) == 0
    assert page.complaints == []


def test_the_mouse_moves_zooms_and_selects(visit, site):
    page = open_tree(visit, f"{site}/small/tree")
    box = page.locator("#tree").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.wheel(0, -240)
    near = view_of(page)
    page.mouse.down()
    page.mouse.move(middle[0] + 60, middle[1] + 20, steps=4)
    page.mouse.up()
    moved = view_of(page)
    assert near[0] - moved[0] == pytest.approx(60 / near[2], rel=0.15)
    assert selected(page) == 0
    press(page, "f")
    # Three leaves, 26 pixels apart, stand in the middle; agent 1 is half a row above it, a column right of the root.
    page.mouse.click(box["x"] + 26 + 210, middle[1] + 2 - 13)
    page.wait_for_timeout(200)
    assert selected(page) == 1


def test_two_fingers_zoom(visit, site):
    page = open_tree(visit, f"{site}/bushy/tree", size="phone")
    box = page.locator("#tree").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    for kind, gap in (
        ("touchStart", 20),
        ("touchMove", 40),
        ("touchMove", 80),
        ("touchMove", 120),
        ("touchEnd", 0),
    ):
        points = [{"x": x - gap, "y": y, "id": 1}, {"x": x + gap, "y": y, "id": 2}] if gap else []
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert view_of(page) is not None


@pytest.mark.parametrize("path", ["tree", "matrix", "tree#colour=operator&search=script"])
def test_nothing_that_an_agent_wrote_runs(visit, site, path):
    page = visit(f"{site}/hostile/{path}")
    page.wait_for_selector("#tree-items [aria-selected=true], #matrix-task[href]", state="attached")
    title = page.title()
    page.wait_for_timeout(500)
    for key in ("ArrowRight", "ArrowDown", "+"):
        page.focus("[role=tree], [role=application]")
        page.keyboard.press(key)
        page.wait_for_timeout(400)
    assert page.title() == title
    assert "owned" not in title
    assert (
        page.evaluate("document.images.length + document.querySelectorAll('iframe, object, embed').length")
        == 0
    )
    assert page.complaints == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "path", ["bushy/tree", "bushy/tree#colour=root", "hostile/tree#colour=operator&agent=3"]
)
def test_axe_finds_nothing(visit, site, size, scheme, path):
    page = open_tree(visit, f"{site}/{path}", size=size, scheme=scheme)
    page.wait_for_timeout(600)
    assert find_violations(page) == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]


def test_a_growing_run_keeps_what_the_user_looks_at(visit, tmp_path):
    bushy_run(tmp_path / "growing", 200).close()
    with growth(tmp_path / "growing", 50), serving(tmp_path) as url:
        page = open_tree(visit, f"{url}/growing/tree")
        press(page, "ArrowRight", "+", "+")
        agent, view = selected(page), view_of(page)
        count = "Number(document.querySelector('[data-news=agents]').textContent.replace(',', ''))"
        before = page.evaluate(count)
        page.wait_for_timeout(4000)
        assert page.evaluate(count) > before + 20
        assert selected(page) == agent
        assert view_of(page)[2:] == view[2:]
        assert page.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_work_under_way_is_marked(visit, tmp_path, scheme):
    steps = Growing(tmp_path / "living")
    with steps.run, serving(tmp_path) as url:
        steps.born(0)
        page = open_tree(visit, f"{url}/living/tree#agent=1", scheme=scheme)
        assert page.locator("#tree-legend .busy").count() == 0
        steps.start(1)
        page.wait_for_selector("#tree-legend .busy")
        assert "expanding" in page.text_content("#item-1")
        assert page.text_content("#tree-panel .busy") == "expanding"
        assert find_violations(page) == {}


@pytest.mark.parametrize("selected_agent", [4, -1])
def test_newborns_move_nothing_that_the_user_looks_at(visit, site, selected_agent):
    page = visit(f"{site}/small/tree")
    parents = [-1, 0, 0, 1, 2, 2]
    before, after = page.evaluate(ANCHOR, [parents, [1] * 40 + [3] * 40, selected_agent])
    assert after["rows"] > before["rows"] + 70
    assert (after["x"], after["scale"]) == (before["x"], before["scale"])
    assert after["y"] == pytest.approx(before["y"], abs=0.01)


def test_a_view_that_shows_everything_goes_on_showing_everything(visit, site):
    page = visit(f"{site}/small/tree")
    _, after = page.evaluate(ANCHOR, [[-1, 0, 0], [1] * 200, None])
    assert after["last"] <= 600
