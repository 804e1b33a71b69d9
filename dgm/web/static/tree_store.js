// The agents of a run as growing columns: what the server sends, and the links between parents and children.
//
// Agents are numbered by birth, so a parent always has a smaller number than its children. Every pass over the tree is
// therefore a plain loop over numbers, upwards or downwards, and none needs a stack.

export const NONE = -1;
const COLUMNS = ["resolved", "n", "cladeResolved", "cladeN", "low", "high", "operator"];
const LINKS = ["parent", "firstChild", "lastChild", "nextSibling", "previousSibling", "depth", "root", "children"];

export class TreeStore {
  constructor() {
    this.count = 0;
    this.seq = 0;
    this.roots = [];
    this.operators = [];
    this.best = NONE;
    this.front = new Set();
    this.states = new Map();
    this.otherParents = new Map();
    this._capacity = 0;
    this._reserve(1024);
  }

  // Take in an answer of the server; return whether agents were born.
  apply(answer) {
    const { agents, ids } = answer;
    const before = this.count;
    const rows = agents.parent.length;
    this._reserve(rows + before);
    for (const name of COLUMNS) {
      const [column, values] = [this[name], agents[name]];
      for (let n = 0; n < rows; n++) column[ids ? ids[n] : n] = values[n];
    }
    for (let n = 0; n < rows; n++) {
      const id = ids ? ids[n] : n;
      if (id >= before) this._bear(id, agents.parent[n]);
    }
    for (const [child, parents] of answer.crossovers) this.otherParents.set(child, parents);
    this.seq = answer.seq;
    this.operators = answer.operators;
    this.best = answer.best ?? NONE;
    this.front = new Set(answer.front);
    this.states = new Map(Object.entries(answer.states).flatMap(([state, agents]) => agents.map(id => [id, state])));
    return this.count > before;
  }

  _bear(id, parent) {
    this.parent[id] = parent;
    this.firstChild[id] = this.lastChild[id] = this.nextSibling[id] = this.previousSibling[id] = NONE;
    this.children[id] = 0;
    this.count = id + 1;
    if (parent === NONE) {
      this.depth[id] = 0;
      this.root[id] = id;
      this._link(this.roots.at(-1) ?? NONE, id);
      this.roots.push(id);
      return;
    }
    this.depth[id] = this.depth[parent] + 1;
    this.root[id] = this.root[parent];
    this._link(this.lastChild[parent], id);
    if (this.firstChild[parent] === NONE) this.firstChild[parent] = id;
    this.lastChild[parent] = id;
    this.children[parent]++;
  }

  _link(elder, younger) {
    this.previousSibling[younger] = elder;
    if (elder !== NONE) this.nextSibling[elder] = younger;
  }

  // The agent, its first parent, and so on up to a root.
  *line(id) {
    for (let at = id; at !== NONE; at = this.parent[at]) yield at;
  }

  // Position of the agent among its siblings, from 1, and the number of siblings.
  position(id) {
    let place = 1;
    for (let at = this.previousSibling[id]; at !== NONE; at = this.previousSibling[at]) place++;
    const parent = this.parent[id];
    return [place, parent === NONE ? this.roots.length : this.children[parent]];
  }

  _reserve(count) {
    if (count <= this._capacity) return;
    this._capacity = Math.max(count, 2 * this._capacity);
    for (const name of [...COLUMNS, ...LINKS]) {
      const column = new Int32Array(this._capacity);
      if (this[name]) column.set(this[name]);
      this[name] = column;
    }
  }
}

// "60% [41–77%], 12 of 20 resolved"
export function tallyText(store, id) {
  const n = store.n[id];
  if (!n) return "not evaluated";
  return `${rateText(store, id)}, ${store.resolved[id].toLocaleString("en")} of ${n.toLocaleString("en")} resolved`;
}

// "60% [41–77%]": the rate and its 95 % interval.
export function rateText(store, id) {
  const n = store.n[id];
  if (!n) return "–";
  return `${percent(store.resolved[id], n)} [${store.low[id]}–${store.high[id]}%]`;
}

export function cmpText(store, id) {
  return store.cladeN[id] ? percent(store.cladeResolved[id], store.cladeN[id]) : "–";
}

function percent(part, whole) {
  return `${Math.round((100 * part) / whole)}%`;
}
