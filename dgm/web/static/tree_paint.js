// Draws a scene: edges first, then agents by colour, then what is marked, and labels where there is room.

import { LABEL_ROW } from "./camera.js";
import { NONE, cmpText, rateText } from "./tree_store.js";
import { trunkX } from "./tree_scene.js";

const CHARACTER = 6.3; // pixels, about
const CELL = 5; // pixels; labels that share a cell overlap
const MOST_SECOND_PARENTS = 400; // dashed edges to second parents, above which only the selected line's are drawn

export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
  }

  resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  clear(palette, camera) {
    this.context.fillStyle = palette.paper;
    this.context.fillRect(0, 0, camera.width, camera.height);
  }

  // ``state`` has store, layout, camera, folded, scene, colouring, palette, selected, hovered and matches.
  paint(state) {
    Object.assign(this, state);
    const { camera, palette } = this;
    this.radius = Math.max(2.2, Math.min(6, camera.row * 0.38, camera.column * 0.45));
    this.clear(palette, camera);
    this._paintEdges();
    this._paintSecondParents();
    this._paintLine(this.store.best, palette.star, 2);
    if (this.selected !== this.store.best) this._paintLine(this.selected, palette.accent, 1.6);
    this._paintCells();
    this._paintNodes();
    this._paintMarks();
    if (camera.row >= LABEL_ROW) this._paintLabels();
    this._paintNames();
  }

  _at(id) {
    return [this.camera.x(this.store.depth[id]), this.camera.y(this.layout.row[id])];
  }

  _paintEdges() {
    const { context, scene, camera } = this;
    const bend = Math.min(6, camera.row * 0.3, camera.column * 0.2);
    context.lineWidth = 1;
    context.strokeStyle = this.palette.edge;
    context.beginPath();
    for (let n = 0; n < scene.threads.length; n += 3) {
      context.moveTo(scene.threads[n], scene.threads[n + 2]);
      context.lineTo(scene.threads[n + 1], scene.threads[n + 2]);
    }
    for (let n = 0; n < scene.trunks.length; n += 3) {
      context.moveTo(scene.trunks[n], scene.trunks[n + 1] + bend);
      context.lineTo(scene.trunks[n], scene.trunks[n + 2] - bend);
    }
    for (let n = 0; n < scene.stubs.length; n += 4) {
      const [from, to, y, side] = [scene.stubs[n], scene.stubs[n + 1], scene.stubs[n + 2], scene.stubs[n + 3]];
      if (side && bend > 1.5) {
        context.moveTo(from, y - side * bend);
        context.quadraticCurveTo(from, y, from + bend, y);
      } else context.moveTo(from, y);
      context.lineTo(to, y);
    }
    context.stroke();
  }

  // The line from a root to an agent.
  _paintLine(agent, colour, width) {
    if (agent === NONE) return;
    const { context, camera, store, layout } = this;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineJoin = "round";
    context.beginPath();
    for (const id of store.line(layout.visible(store, agent))) {
      const [x, y] = this._at(id);
      if (store.parent[id] === NONE) context.lineTo(x, y);
      else {
        const trunk = trunkX(camera, store.depth[id] - 1);
        const from = camera.y(layout.row[store.parent[id]]);
        context.lineTo(x, y);
        context.lineTo(trunk, y);
        context.lineTo(trunk, from);
      }
    }
    context.stroke();
  }

  // Dashed curves from the second parents of crossovers.
  _paintSecondParents() {
    const { context, store, layout, scene } = this;
    const crossovers = scene.nodes.filter(id => store.otherParents.has(id));
    const line = new Set([...store.line(this.selected), ...store.line(store.best)]);
    const drawn = crossovers.length > MOST_SECOND_PARENTS ? crossovers.filter(id => line.has(id)) : crossovers;
    context.strokeStyle = this.palette.soft;
    context.lineWidth = 1;
    context.setLineDash([3, 4]);
    context.globalAlpha = drawn.length > 40 ? 0.4 : 0.7;
    context.beginPath();
    for (const id of drawn) {
      const [x, y] = this._at(id);
      for (const parent of store.otherParents.get(id)) {
        const [from, top] = this._at(layout.visible(store, parent));
        const middle = (from + x) / 2;
        context.moveTo(from, top);
        context.bezierCurveTo(middle, top, middle, y, x, y);
      }
    }
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  _paintCells() {
    const { context, scene, colouring } = this;
    const colours = this.palette[colouring.palette];
    const { cells, cellWidth, cellHeight } = scene;
    const buckets = colours.map(() => []);
    const unknown = [];
    for (let n = 0; n < cells.length; n += 5) {
      const bucket = colouring.bucket(cells[n + 2], cells[n + 3], cells[n + 4]);
      (buckets[bucket] ?? unknown).push(n);
    }
    const fill = (list, colour) => {
      context.fillStyle = colour;
      for (const n of list) context.fillRect(cells[n], cells[n + 1], cellWidth, cellHeight);
    };
    fill(unknown, this.palette.soft);
    buckets.forEach((list, n) => fill(list, colours[n]));
  }

  _paintNodes() {
    const { context, scene, colouring, store, folded, radius, palette } = this;
    const colours = palette[colouring.palette];
    const buckets = [...colours.map(() => []), []];
    for (const id of scene.nodes) {
      const bucket = colouring.bucket(colouring.counts?.resolved[id], colouring.counts?.n[id], id);
      buckets[bucket < 0 ? colours.length : bucket].push(id);
    }
    context.strokeStyle = palette.outline;
    context.lineWidth = 1;
    buckets.forEach((ids, bucket) => {
      context.fillStyle = colours[bucket] ?? palette.paper;
      context.beginPath();
      for (const id of ids) {
        const [x, y] = this._at(id);
        if (x < -radius || x > this.camera.width + radius) continue;
        if (folded.has(id) && store.firstChild[id] !== NONE) this._foldedClade(x, y);
        context.moveTo(x + radius, y);
        context.arc(x, y, radius, 0, 2 * Math.PI);
      }
      context.fill();
      if (radius >= 3 || bucket === colours.length) context.stroke();
    });
  }

  // A wedge for the agents that are folded away.
  _foldedClade(x, y) {
    const { context, radius } = this;
    context.moveTo(x + radius, y);
    context.lineTo(x + radius + 14, y - radius);
    context.lineTo(x + radius + 14, y + radius);
    context.closePath();
  }

  _paintMarks() {
    const { palette, radius, store, layout } = this;
    const seen = new Set(this.scene.nodes);
    for (const id of store.front) if (seen.has(id)) this._diamond(id, radius + 3.5, palette.front);
    for (const id of this.matches) this._ring(layout.visible(store, id), radius + 2.5, palette.accent, 2.5);
    for (const [id, state] of store.states) {
      if (state === "expanding" || state === "evaluating") {
        this._ring(layout.visible(store, id), radius + 3, palette.busy, 2, state === "expanding" ? [] : [2, 3]);
      }
    }
    if (store.best !== NONE) this._star(layout.visible(store, store.best), Math.max(7.5, radius + 3.5));
    if (this.hovered !== NONE) this._ring(this.hovered, radius + 2, palette.ink, 1);
    if (this.selected !== NONE) this._ring(layout.visible(store, this.selected), Math.max(8, radius + 5), palette.ink, 2);
  }

  _ring(id, radius, colour, width, dash = []) {
    const { context } = this;
    const [x, y] = this._at(id);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.stroke();
    context.setLineDash([]);
  }

  _diamond(id, size, colour) {
    const { context } = this;
    const [x, y] = this._at(id);
    context.strokeStyle = colour;
    context.lineWidth = 1.6;
    context.beginPath();
    for (const [dx, dy] of [[0, -1], [1, 0], [0, 1], [-1, 0]]) context.lineTo(x + dx * size, y + dy * size);
    context.closePath();
    context.stroke();
  }

  _star(id, size) {
    const { context, palette } = this;
    const [x, y] = this._at(id);
    context.beginPath();
    for (let corner = 0; corner < 10; corner++) {
      const angle = (corner * Math.PI) / 5 - Math.PI / 2;
      const length = corner % 2 ? size * 0.45 : size;
      context.lineTo(x + length * Math.cos(angle), y + length * Math.sin(angle));
    }
    context.closePath();
    context.fillStyle = palette.star;
    context.fill();
    context.strokeStyle = palette.ink;
    context.lineWidth = 0.8;
    context.stroke();
  }

  _paintLabels() {
    const { context, palette, camera, store, layout, scene, folded, radius } = this;
    context.font = `${Math.max(10, Math.min(12, camera.row * 0.85))}px ${palette.font}`;
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const free = new FreeSpace(camera);
    const inner = []; // parents; their labels give way to those of leaves, which have the space to their right
    for (const id of scene.nodes) {
      const [x, y] = this._at(id);
      if (x > camera.width || x < -camera.column || y < -10 || y > camera.height + 10) continue;
      const closed = folded.has(id);
      if (store.firstChild[id] !== NONE && !closed) {
        inner.push(id);
        continue;
      }
      const count = closed && store.firstChild[id] !== NONE ? `+${(layout.members[id] - 1).toLocaleString("en")}  ` : "";
      const label = count + fittingLabel(store, id, Infinity);
      free.take(x - radius, y, label.length * CHARACTER + 20);
      this._text(label, x + radius + (count ? 20 : 6), y, id === store.best || id === this.selected);
    }
    for (const id of inner) {
      const [x, y] = this._at(id);
      const label = fittingLabel(store, id, camera.column - radius - 30);
      const strong = id === store.best || id === this.selected;
      if (free.take(x + radius, y - 7, label.length * CHARACTER) || strong) this._text(label, x + radius + 5, y - 7, strong);
    }
  }

  // Numbers of the best and the selected agent, which stand there at every zoom.
  _paintNames() {
    const { context, camera, store, layout, palette } = this;
    if (camera.row >= LABEL_ROW) return;
    context.font = `600 12px ${palette.font}`;
    context.textBaseline = "middle";
    for (const agent of new Set([store.best, this.selected, this.hovered])) {
      if (agent === NONE) continue;
      const [x, y] = this._at(layout.visible(store, agent));
      const text = `${agent}  ${rateText(store, agent)}`;
      context.globalAlpha = 0.85;
      context.fillStyle = palette.paper;
      context.fillRect(x + 9, y - 19, context.measureText(text).width + 6, 17);
      context.globalAlpha = 1;
      context.fillStyle = palette.ink;
      context.fillText(text, x + 12, y - 10);
    }
  }

  // Text with a halo, so that it can be read on edges.
  _text(text, x, y, strong) {
    const { context, palette } = this;
    // Where rows are close, a wide halo would cut the text of the row above.
    context.lineWidth = Math.max(2, Math.min(4, this.camera.row * 0.22));
    context.strokeStyle = palette.paper;
    context.strokeText(text, x, y);
    context.fillStyle = strong ? palette.ink : palette.soft;
    context.fillText(text, x, y);
  }
}

// Where labels are already, in cells of a few pixels.
class FreeSpace {
  constructor(camera) {
    this.columns = Math.ceil(camera.width / CELL) + 1;
    this.occupied = new Uint8Array(this.columns * (Math.ceil(camera.height / CELL) + 4));
  }

  // Take the space of a line of text around ``y``; return whether it was free.
  take(x, y, width) {
    let free = true;
    const from = Math.max(0, Math.floor(x / CELL));
    const to = Math.min(this.columns - 1, Math.floor((x + width) / CELL));
    for (let line = Math.floor((y - 3) / CELL) + 1; line <= Math.floor((y + 3) / CELL) + 1; line++) {
      if (line < 0) continue;
      for (let cell = line * this.columns + from; cell <= line * this.columns + to; cell++) {
        if (this.occupied[cell]) free = false;
        this.occupied[cell] = 1;
      }
    }
    return free;
  }
}

// As much of number, rate, CMP and operator as fits, in this order.
function fittingLabel(store, id, room) {
  const cmp = store.firstChild[id] === NONE ? [] : [`CMP ${cmpText(store, id)}`]; // without children it is the own rate
  const parts = [String(id), rateText(store, id), ...cmp, store.operators[store.operator[id]]];
  let label = parts[0];
  for (const part of parts.slice(1)) {
    if ((label.length + part.length + 2) * CHARACTER > room) break;
    label += `  ${part}`;
  }
  return label;
}
