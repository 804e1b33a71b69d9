// The page of tasks × agents: connects the matrix with scrolling, keys, the pointer, its table, the link and the server.

import { readPalette } from "./colours.js";
import { LETTERS, MatrixStore } from "./matrix_store.js";
import { MatrixPainter, SIZES, TOP } from "./matrix_paint.js";
import { showTable } from "./matrix_table.js";
import { NONE, TreeStore, rateText, tallyText } from "./tree_store.js";

const NEWS_MS = 1000; // changes are fetched together, once in this time at most
const REST_MS = 120; // after a movement, until cells are fetched, the table is filled and the link is written
const ORDERS = ["rate", "birth", "line"];

const part = name => document.getElementById(`matrix-${name}`);
const base = part("page").dataset.base;
const scroller = part("scroller");
const agents = new TreeStore();
const store = new MatrixStore(agents, base);
const painter = new MatrixPainter(part("canvas"));
const cursor = { row: 0, column: 0 };
let palette = readPalette(scroller);
let size = 3;
let scheduled = false;
let restTimer = 0;

function geometry() {
  const [cellWidth, cellHeight] = SIZES[size];
  const { clientWidth: width, clientHeight: height, scrollLeft: scrollX, scrollTop: scrollY } = scroller;
  const left = Math.round(Math.min(280, Math.max(120, width * 0.26)));
  const across = store.agentOrder.length;
  const down = store.taskOrder.length;
  const window = {
    left: Math.max(0, Math.floor(scrollX / cellWidth)),
    right: Math.min(across, Math.ceil((scrollX + width - left) / cellWidth)),
    top: Math.max(0, Math.floor(scrollY / cellHeight)),
    bottom: Math.min(down, Math.ceil((scrollY + height - TOP) / cellHeight)),
  };
  return { width, height, left, scrollX, scrollY, cellWidth, cellHeight, window, across, down };
}

function draw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    painter.paint({ store, palette, cursor, ...geometry() });
  });
}

// After a movement: draw at once, and the rest when the user pauses.
function move() {
  draw();
  clearTimeout(restTimer);
  restTimer = setTimeout(() => {
    if (!store.agentOrder.length) return;
    const { window } = geometry();
    store.need(window.left, window.right, arrive);
    describe();
    writeLink();
  }, REST_MS);
}

function arrive() {
  draw();
  describe();
}

function resize() {
  const { width, height, left, cellWidth, cellHeight, across, down } = geometry();
  painter.resize(width, height);
  part("sizer").style.width = `${left + across * cellWidth + 8}px`;
  part("sizer").style.height = `${TOP + down * cellHeight + 8}px`;
  move();
}

// The cell under the cursor, in words and with links

function addressOf(id, task) {
  return `${base}/agents/${id}/tasks/${encodeURIComponent(task)}`;
}

function describe() {
  const id = store.agentOrder[cursor.column];
  const task = store.taskOrder[cursor.row];
  if (id === undefined || task === undefined) return;
  const { tasks } = store;
  const letter = store.cell(cursor.row, cursor.column);
  const solved = `${tasks.resolved[task].toLocaleString("en")} of ${tasks.n[task].toLocaleString("en")} agents resolved it`;
  part("task").textContent = tasks.name[task];
  part("task").href = `${base}/tasks/${encodeURIComponent(tasks.name[task])}`;
  part("agent").textContent = `agent ${id}${id === agents.best ? " ★" : ""}`;
  part("agent").href = `${base}/agents/${id}`;
  part("verdict").textContent = letter ? LETTERS[letter] : "being read";
  part("verdict").dataset.verdict = letter;
  part("tallies").textContent = `${solved}; the agent: ${tallyText(agents, id)}`;
  part("open").href = addressOf(id, tasks.name[task]);
  part("open").hidden = letter !== "y" && letter !== "n"; // only these have a page
  showTable(part("table"), store, cursor, { addressOf, rateOf: agent => rateText(agents, agent) });
}

function goTo(row, column) {
  const { window, across, down, cellWidth, cellHeight } = geometry();
  cursor.row = Math.max(0, Math.min(down - 1, row));
  cursor.column = Math.max(0, Math.min(across - 1, column));
  const seen = { x: window.right - window.left - 1, y: window.bottom - window.top - 1 };
  if (cursor.column < window.left) scroller.scrollLeft = cursor.column * cellWidth;
  if (cursor.column >= window.right - 1) scroller.scrollLeft = (cursor.column - seen.x + 2) * cellWidth;
  if (cursor.row < window.top) scroller.scrollTop = cursor.row * cellHeight;
  if (cursor.row >= window.bottom - 1) scroller.scrollTop = (cursor.row - seen.y + 2) * cellHeight;
  move();
}

function setSize(next) {
  const { window } = geometry();
  size = Math.max(0, Math.min(SIZES.length - 1, next));
  resize();
  // What was in the middle stays there, or the cursor if it could be seen.
  const seen = cursor.column >= window.left && cursor.column < window.right;
  const column = seen ? cursor.column : (window.left + window.right) / 2;
  scroller.scrollLeft = column * SIZES[size][0] - (geometry().width - geometry().left) / 2;
  move();
}

function sort() {
  const [id, task] = [store.agentOrder[cursor.column], store.taskOrder[cursor.row]];
  store.sortAgents(part("agents").value);
  store.setTasks(store.tasks, part("tasks").value);
  cursor.column = Math.max(0, store.agentOrder.indexOf(id));
  cursor.row = Math.max(0, store.taskOrder.indexOf(task));
  showUnsorted();
  resize();
}

function showUnsorted() {
  part("sort").hidden = !store.unsorted;
  part("sort").textContent = `Sort ${store.unsorted.toLocaleString("en")} new`;
}

// The link

function writeLink() {
  const id = store.agentOrder[cursor.column];
  const values = { agents: part("agents").value, tasks: part("tasks").value, size, agent: id, task: store.taskOrder[cursor.row] };
  history.replaceState(null, "", `#${new URLSearchParams(values)}`);
}

function followLink() {
  const words = new URLSearchParams(location.hash.slice(1));
  if (ORDERS.includes(words.get("agents"))) part("agents").value = words.get("agents");
  if (words.get("tasks") === "suite") part("tasks").value = "suite";
  store.sortAgents(part("agents").value);
  store.setTasks(store.tasks, part("tasks").value);
  const { width: across, left } = geometry();
  const fits = SIZES.findLastIndex(([width]) => width * agents.count <= across - left);
  size = words.has("size") && Number(words.get("size")) in SIZES ? Number(words.get("size")) : Math.max(2, fits);
  resize();
  const column = store.agentOrder.indexOf(Number(words.get("agent") ?? store.agentOrder[0]));
  goTo(Math.max(0, store.taskOrder.indexOf(Number(words.get("task") ?? store.taskOrder[0]))), Math.max(0, column));
}

// What the server sends

let fetching = false;
let behind = false;
let evaluating = new Set();

async function update() {
  if (fetching || document.hidden) {
    behind = true;
    return;
  }
  fetching = true;
  behind = false;
  try {
    const since = agents.seq ? `?since=${agents.seq}` : "";
    const answers = await Promise.all([fetch(`${base}/data/tree.json${since}`), fetch(`${base}/data/tasks.json`)]);
    if (answers.every(answer => answer.ok)) take(...(await Promise.all(answers.map(answer => answer.json()))));
  } catch {
    behind = true; // the connection is lost; the next news fetch it
  }
  setTimeout(() => {
    fetching = false;
    if (behind) update();
  }, NEWS_MS);
}

function take(tree, { tasks }) {
  const first = !agents.count;
  const ids = tree.ids ?? [];
  const changed = ids.filter((id, n) => agents.n[id] !== tree.agents.n[n] || agents.resolved[id] !== tree.agents.resolved[n]);
  agents.apply(tree);
  const now = new Set([...agents.states].filter(([, state]) => state === "evaluating").map(([id]) => id));
  store.forget([...changed, ...evaluating, ...now]);
  evaluating = now;
  if (!agents.count || !tasks.name.length) return;
  part("empty").hidden = true;
  if (first) {
    store.tasks = tasks;
    followLink();
    return;
  }
  store.tasks = tasks;
  store.appendNewborns();
  showUnsorted();
  resize();
}

document.addEventListener("news", event => {
  const { seq, best } = event.detail;
  if (seq > agents.seq || (best ?? NONE) !== agents.best) update();
});
document.addEventListener("visibilitychange", () => {
  if (behind) update();
});

// Keys, pointer and controls

const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], PageUp: [-10, 0], PageDown: [10, 0] };
const keys = {
  Home: () => goTo(cursor.row, 0),
  End: () => goTo(cursor.row, store.agentOrder.length - 1),
  "+": () => setSize(size + 1),
  "=": () => setSize(size + 1),
  "-": () => setSize(size - 1),
  Enter: () => part("open").hidden || part("open").click(),
};

scroller.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = steps[event.key];
  if (step) goTo(cursor.row + step[0] * (event.shiftKey ? 10 : 1), cursor.column + step[1] * (event.shiftKey ? 10 : 1));
  else if (Object.hasOwn(keys, event.key)) keys[event.key]();
  else return;
  event.preventDefault();
});

function cellAt(event) {
  const box = scroller.getBoundingClientRect();
  const { left, scrollX, scrollY, cellWidth, cellHeight, across, down } = geometry();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const column = x < left ? cursor.column : Math.floor((x - left + scrollX) / cellWidth);
  const row = y < TOP ? cursor.row : Math.floor((y - TOP + scrollY) / cellHeight);
  return column < across && row < down ? [row, column] : null;
}

scroller.addEventListener("click", event => {
  const cell = cellAt(event);
  if (cell) [cursor.row, cursor.column] = cell;
  move();
});
scroller.addEventListener("dblclick", () => keys.Enter());
scroller.addEventListener("pointermove", event => {
  const cell = event.pointerType === "mouse" && cellAt(event);
  if (!cell || (cell[0] === cursor.row && cell[1] === cursor.column)) return;
  [cursor.row, cursor.column] = cell;
  move();
});
scroller.addEventListener("scroll", move, { passive: true });
part("in").addEventListener("click", () => setSize(size + 1));
part("out").addEventListener("click", () => setSize(size - 1));
part("sort").addEventListener("click", sort);
part("agents").addEventListener("change", sort);
part("tasks").addEventListener("change", sort);
part("details").addEventListener("toggle", describe);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  palette = readPalette(scroller);
  draw();
});
new ResizeObserver(resize).observe(scroller);

update();
