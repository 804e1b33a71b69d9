// The page of a run's tree: connects the view with keys, pointers, the search, the panel, the link and the server.

import { listenTo } from "./gestures.js";
import { readLink, writeLink } from "./tree_link.js";
import { Outline } from "./tree_outline.js";
import { Panel, showLegend } from "./tree_panel.js";
import { NONE } from "./tree_store.js";
import { TreeView } from "./tree_view.js";
import { above, below, childOf, parentOf } from "./tree_walk.js";

const LINK_MS = 300; // browsers limit how often an address may change
const SEARCH_MS = 250; // a search begins when the user stops typing
const NEWS_MS = 1000; // changes are fetched together, once in this time at most
const PAN = 80; // pixels a key

const part = name => document.getElementById(`tree-${name}`);
const base = part("page").dataset.base;
const tree = document.getElementById("tree");
const outline = new Outline(tree, part("items"));
const panel = new Panel(part("panel"), base);
const view = new TreeView(part("canvas"), show);
const later = {}; // timers by name
let search = "";

function soon(name, wait, action) {
  clearTimeout(later[name]);
  later[name] = setTimeout(action, wait);
}

function show() {
  const { store, layout, folded, selected } = view;
  outline.show(store, layout, folded, selected);
  panel.show(view);
  showLegend(part("legend"), view);
  part("fold-all").textContent = folded.size ? "Unfold" : "Fold";
  soon("link", LINK_MS, () => {
    writeLink({ agent: selected, folded, colour: view.colour, search, view: view.camera.link });
  });
}

// What the server sends

let fetching = false;
let behind = false;

// Fetch what changed; news that arrive meanwhile are fetched together afterwards.
async function update() {
  if (fetching || document.hidden) {
    behind = true;
    return;
  }
  fetching = true;
  behind = false;
  try {
    const since = view.store.seq ? `?since=${view.store.seq}` : "";
    const answer = await fetch(`${base}/data/tree.json${since}`);
    if (answer.ok) take(await answer.json());
  } catch {
    behind = true; // the connection is lost; the next news, or the next attempt, fetches it
  }
  setTimeout(() => {
    fetching = false;
    if (behind) update();
  }, NEWS_MS);
}

function take(answer) {
  const first = !view.store.count;
  view.apply(answer);
  if (!view.store.count) return;
  part("empty").hidden = true;
  if (first) follow(readLink());
}

document.addEventListener("news", event => {
  const { seq, best } = event.detail;
  if (seq > view.store.seq || (best ?? NONE) !== view.store.best) update();
});
document.addEventListener("visibilitychange", () => {
  if (behind) update();
});

// The link

function follow(link) {
  if (["own", "clade", "operator", "root"].includes(link.colour)) view.setColour(link.colour);
  part("colour").value = view.colour;
  view.setFolded(link.folded);
  view.show(link.view);
  view.select(link.agent >= 0 && link.agent < view.store.count ? link.agent : view.store.roots[0], { reveal: !link.view });
  part("search").value = link.search;
  find(link.search, { go: false });
}

window.addEventListener("hashchange", () => follow(readLink()));

// Search

async function find(words, { go }) {
  search = words.trim();
  let matches = [];
  let more = 0;
  if (search) {
    const answer = await fetch(`${base}/data/search.json?words=${encodeURIComponent(search)}`);
    if (!answer.ok || search !== words.trim()) return;
    ({ agents: matches, more } = await answer.json());
  }
  view.matches = matches.filter(id => id < view.store.count);
  part("matches").textContent = search ? `${(matches.length + more).toLocaleString("en")} found` : "";
  if (go && matches.length) nextMatch(1);
  else view.select(view.selected, { reveal: false });
}

function nextMatch(step) {
  const { matches, selected } = view;
  if (!matches.length) return;
  const after = matches.findIndex(id => id > selected);
  const at = matches.indexOf(selected);
  const next = step > 0 ? after : (at < 0 ? (after < 0 ? matches.length : after) : at) - 1;
  view.select(matches.at(next < 0 ? (step > 0 ? 0 : -1) : next));
}

part("search").addEventListener("input", event => {
  soon("search", SEARCH_MS, () => find(event.target.value, { go: true }));
});
part("search").addEventListener("keydown", event => {
  if (event.key === "Enter") {
    event.preventDefault();
    nextMatch(event.shiftKey ? -1 : 1);
  } else if (event.key === "Escape") {
    event.target.value = "";
    find("", { go: false });
    tree.focus();
  }
});

// Keys

function go(id) {
  if (id !== undefined && id !== NONE) view.select(id);
}

function open(id) {
  if (id !== NONE) location.href = `${base}/agents/${id}`;
}

const keys = {
  ArrowLeft: () => go(parentOf(view.store, view.selected)),
  ArrowRight: () => {
    if (view.folded.has(view.selected)) view.toggle(view.selected);
    else go(childOf(view.store, view.folded, view.selected));
  },
  ArrowUp: () => go(above(view.store, view.folded, view.selected)),
  ArrowDown: () => go(below(view.store, view.folded, view.selected)),
  Home: () => go(view.store.root[view.selected]),
  End: () => go([...view.store.line(view.store.best)].find(id => !view.layout.hidden[id])),
  Enter: () => open(view.selected),
  " ": () => view.toggle(view.selected),
  "+": () => zoom(1),
  "=": () => zoom(1),
  "-": () => zoom(-1),
  f: () => view.fit(),
  b: () => go(view.store.best),
  z: () => view.toggleAll(),
  n: () => nextMatch(1),
  N: () => nextMatch(-1),
};
const pans = { ArrowLeft: [PAN, 0], ArrowRight: [-PAN, 0], ArrowUp: [0, PAN], ArrowDown: [0, -PAN] };

// Zoom to the selected agent if it can be seen, else to the middle.
function zoom(steps) {
  const { camera, store, layout, selected } = view;
  const [x, y] = [camera.x(store.depth[selected]), camera.y(layout.row[selected])];
  const inside = x >= 0 && x <= camera.width && y >= 0 && y <= camera.height;
  view.zoomBy(steps, ...(inside ? [x, y] : []));
}

tree.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !view.store.count) return;
  if (event.shiftKey && pans[event.key]) view.panBy(...pans[event.key]);
  else if (Object.hasOwn(keys, event.key)) keys[event.key]();
  else return;
  event.preventDefault();
});

// Buttons and pointers

part("in").addEventListener("click", () => zoom(1));
part("out").addEventListener("click", () => zoom(-1));
part("fit").addEventListener("click", () => view.fit());
part("fold-all").addEventListener("click", () => view.toggleAll());
part("best").addEventListener("click", () => go(view.store.best));
part("colour").addEventListener("change", event => view.setColour(event.target.value));

listenTo(tree, {
  pan: (dx, dy) => view.panBy(dx, dy),
  zoom: (steps, x, y) => view.zoomBy(steps, x, y),
  hover: (x, y) => view.hover(x, y),
  tap: (x, y, touch) => {
    tree.focus();
    const agent = view.agentAt(x, y, touch ? 28 : 14);
    if (agent !== NONE) view.select(agent, { reveal: false });
  },
  doubleTap: (x, y) => {
    const agent = view.agentAt(x, y, 20);
    if (agent === NONE) view.zoomBy(3, x, y);
    else view.toggle(agent);
  },
});

update();
