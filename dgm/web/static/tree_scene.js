// What of the tree is on the canvas at this zoom: agents that are drawn one by one, their edges, and for clades that
// are less than a few pixels high a grid of cells that sums up all agents that fall into it.
//
// So the number of shapes is bounded by the size of the canvas, however many agents there are.

import { NONE } from "./tree_store.js";

const TINY = 2.5; // pixels: the height of a cell, and of the smallest clade that is drawn as a tree
const CELL_WIDTH = 3;

export class Scene {
  constructor() {
    this.nodes = []; // agents, parents first
    this.stubs = []; // x of the trunk, x and y of the agent that it leads to, and whether it is the first or last child
    this.trunks = []; // x, y from, y to
    this.threads = []; // lines behind cells: x from, x to, y
    this.cells = []; // x, y, resolved, n, and an agent of the cell
    this.cellWidth = 0;
    this.cellHeight = TINY;
  }
}

// ``counts`` holds the columns that are summed up in cells: resolved and n; null if none are.
export function buildScene(store, layout, camera, folded, counts) {
  const scene = new Scene();
  const grid = new Grid(camera, layout, counts);
  const waiting = store.roots.length ? [store.roots[0]] : [];
  while (waiting.length) {
    for (let id = waiting.pop(); id !== NONE; id = store.nextSibling[id]) {
      const top = camera.y(layout.first[id] - 0.5);
      if (top > camera.height) break; // younger siblings are further down
      const height = layout.leaves[id] * camera.row;
      if (top + height < 0) continue;
      if (height < TINY) {
        grid.addClade(store, layout, camera, folded, id);
        continue;
      }
      scene.nodes.push(id);
      addEdges(scene, store, layout, camera, folded, id);
      const open = store.firstChild[id] !== NONE && !folded.has(id);
      if (open && camera.x(store.depth[id]) < camera.width) waiting.push(store.firstChild[id]);
    }
  }
  grid.writeTo(scene);
  return scene;
}

// The vertical line that connects the children of an agent stands a little left of them.
export function trunkX(camera, depth) {
  return camera.x(depth) + camera.column - Math.min(20, camera.column * 0.45);
}

function addEdges(scene, store, layout, camera, folded, id) {
  const y = camera.y(layout.row[id]);
  const parent = store.parent[id];
  if (parent !== NONE) {
    const side = Math.sign(layout.row[id] - layout.row[parent]);
    scene.stubs.push(trunkX(camera, store.depth[parent]), camera.x(store.depth[id]), y, side);
  }
  if (store.firstChild[id] === NONE || folded.has(id)) return;
  const x = trunkX(camera, store.depth[id]);
  scene.stubs.push(camera.x(store.depth[id]), x, y, 0);
  const from = camera.y(layout.row[store.firstChild[id]]);
  const to = camera.y(layout.row[store.lastChild[id]]);
  if (to > from) scene.trunks.push(x, Math.max(-9, from), Math.min(camera.height + 9, to));
}

class Grid {
  constructor(camera, layout, counts) {
    this.width = Math.ceil(camera.width / CELL_WIDTH) + 1;
    this.height = Math.ceil(camera.height / TINY) + 1;
    this.resolved = new Int32Array(this.width * this.height);
    this.n = new Int32Array(this.width * this.height);
    this.agent = new Int32Array(this.width * this.height).fill(NONE);
    this.from = new Float64Array(this.height).fill(Infinity);
    this.to = new Float64Array(this.height).fill(-Infinity);
    this.cellWidth = Math.max(2, Math.min(7, camera.column * 0.6));
    this.counts = counts;
    this.x = Float64Array.from({ length: layout.columns }, (_, column) => camera.x(column));
  }

  // Add an agent and all its visible descendants; they are within one or two rows of cells. This visits most agents of
  // a large tree at each movement, so it makes no objects and calls little.
  addClade(store, layout, camera, folded, clade) {
    const { depth, firstChild, nextSibling, parent } = store;
    const trunk = parent[clade] === NONE ? this.x[0] : trunkX(camera, depth[clade] - 1);
    const closed = folded.size > 0;
    let id = clade;
    for (;;) {
      const x = this.x[depth[id]];
      const line = Math.floor((camera.top + layout.row[id] * camera.row) / TINY);
      if (line >= 0 && line < this.height) this._addAgent(id, x, line, trunk);
      if (firstChild[id] !== NONE && x < camera.width && !(closed && folded.has(id))) {
        id = firstChild[id];
        continue;
      }
      while (id !== clade && nextSibling[id] === NONE) id = parent[id];
      if (id === clade) return;
      id = nextSibling[id];
    }
  }

  _addAgent(id, x, line, trunk) {
    if (trunk < this.from[line]) this.from[line] = trunk;
    if (x > this.to[line]) this.to[line] = x;
    const column = Math.floor(x / CELL_WIDTH);
    if (column < 0 || column >= this.width) return;
    const cell = line * this.width + column;
    this.agent[cell] = id;
    if (!this.counts) return;
    this.resolved[cell] += this.counts.resolved[id];
    this.n[cell] += this.counts.n[id];
  }

  writeTo(scene) {
    scene.cellWidth = this.cellWidth;
    for (let line = 0; line < this.height; line++) {
      if (this.from[line] === Infinity) continue;
      const y = line * TINY;
      scene.threads.push(this.from[line], this.to[line], y + TINY / 2);
      for (let cell = line * this.width; cell < (line + 1) * this.width; cell++) {
        if (this.agent[cell] === NONE) continue;
        const x = (cell - line * this.width) * CELL_WIDTH;
        scene.cells.push(x, y, this.resolved[cell], this.n[cell], this.agent[cell]);
      }
    }
  }
}

// The agent nearest to a point, among those drawn one by one and those in cells; NONE if none is near.
export function nodeAt(scene, store, layout, camera, x, y, reach) {
  let nearest = NONE;
  let least = reach * reach;
  const consider = id => {
    const distance = (camera.x(store.depth[id]) - x) ** 2 + (camera.y(layout.row[id]) - y) ** 2;
    if (distance <= least) [nearest, least] = [id, distance];
  };
  scene.nodes.forEach(consider);
  for (let n = 4; n < scene.cells.length; n += 5) consider(scene.cells[n]);
  return nearest;
}
