// The tree on its canvas: what is shown, selected, folded and coloured, and when it is drawn again.

import { Camera, LABEL_ROW } from "./camera.js";
import { colouring, readPalette } from "./colours.js";
import { Layout } from "./tree_layout.js";
import { Painter } from "./tree_paint.js";
import { buildScene, nodeAt } from "./tree_scene.js";
import { NONE, TreeStore } from "./tree_store.js";

export class TreeView {
  // ``onChange(view)`` is called before each drawing that shows another selection, colour, part or fold.
  constructor(canvas, onChange) {
    this.canvas = canvas;
    this.onChange = onChange;
    this.store = new TreeStore();
    this.folded = new Set();
    this.layout = new Layout(this.store, this.folded);
    this.camera = new Camera();
    this.painter = new Painter(canvas);
    this.selected = this.hovered = NONE;
    this.matches = [];
    this.colour = "own";
    this._scheduled = false;
    this._changed = true;
    new ResizeObserver(() => this._resize()).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    this.restyle();
    this._resize();
  }

  // Colours of the style sheet may have changed.
  restyle() {
    this.palette = readPalette(this.canvas);
    this.draw();
  }

  // Take in an answer of the server. What the user looks at stays where it is on the screen.
  apply(answer) {
    const born = this.store.apply(answer);
    this.colouring = colouring(this.colour, this.store);
    if (born) this._arrange(this._anchor());
    this._change();
  }

  setColour(name) {
    this.colour = name;
    this.colouring = colouring(name, this.store);
    this._change();
  }

  select(id, { reveal = true } = {}) {
    if (id < 0 || id >= this.store.count) return;
    this.selected = id;
    if (this.layout.hidden[id]) {
      for (const above of this.store.line(this.store.parent[id])) this.folded.delete(above);
      this._arrange(NONE);
    }
    if (reveal) this.camera.reveal(this.store.depth[id], this.layout.row[id]);
    this._change();
  }

  setFolded(ids) {
    this.folded = new Set(ids.filter(id => id < this.store.count));
    this._arrange(NONE);
    this._change();
  }

  toggle(id) {
    if (id === NONE || this.store.firstChild[id] === NONE) return;
    if (!this.folded.delete(id)) this.folded.add(id);
    this._arrange(id);
    if (this.selected !== NONE) this.selected = this.layout.visible(this.store, this.selected);
    this._change();
  }

  // Fold all agents of the last generation that has room for all its labels, or unfold all.
  toggleAll() {
    if (this.folded.size) this.setFolded([]);
    else {
      const { store } = this;
      const sizes = new Int32Array(this.layout.columns + 1);
      for (let id = 0; id < store.count; id++) sizes[store.depth[id]]++;
      const fits = depth => sizes[depth] * LABEL_ROW < this.camera.height;
      let depth = 1;
      while (this.layout.rows * LABEL_ROW > this.camera.height && fits(depth + 1) && sizes[depth + 2]) depth++;
      const agents = Array.from({ length: store.count }, (_, id) => id);
      this.setFolded(agents.filter(id => store.depth[id] === depth && store.firstChild[id] !== NONE));
      if (this.selected !== NONE) this.selected = this.layout.visible(store, this.selected);
    }
    this.fit();
  }

  zoomBy(steps, x, y) {
    this.camera.zoomBy(steps, x, y);
    this._change();
  }

  panBy(dx, dy) {
    this.camera.panBy(dx, dy);
    this._change();
  }

  fit() {
    this.camera.fit();
    this._change();
  }

  show(link) {
    if (link) this.camera.link = link;
    else this.camera.fit();
    this._change();
  }

  hover(x, y) {
    const agent = x === undefined ? NONE : this.agentAt(x, y, 14);
    if (agent === this.hovered) return;
    this.hovered = agent;
    this.canvas.style.cursor = agent === NONE ? "" : "pointer";
    this.draw();
  }

  agentAt(x, y, reach) {
    return this.scene ? nodeAt(this.scene, this.store, this.layout, this.camera, x, y, reach) : NONE;
  }

  draw() {
    if (this._scheduled) return;
    this._scheduled = true;
    requestAnimationFrame(() => {
      this._scheduled = false;
      if (!this.store.count) {
        this.painter.clear(this.palette, this.camera);
        return;
      }
      if (this._changed) {
        this._changed = false;
        this._rebuild();
        this.onChange(this);
      }
      this.painter.paint(this);
    });
  }

  // The scene of 100,000 agents takes a frame to build, so it is kept while only the selection changes.
  _rebuild() {
    const { left, top, column, row, width, height } = this.camera;
    const inputs = [left, top, column, row, width, height, this.layout, this.colouring];
    if (this._inputs?.every((input, n) => input === inputs[n])) return;
    this._inputs = inputs;
    this.scene = buildScene(this.store, this.layout, this.camera, this.folded, this.colouring.counts);
  }

  _change() {
    this._changed = true;
    this.draw();
  }

  // Lay the tree out anew; the agent ``anchor`` keeps its position on the screen.
  _arrange(anchor) {
    const { store, camera } = this;
    const before = anchor === NONE ? 0 : camera.y(this.layout.row[anchor]);
    this.layout = new Layout(store, this.folded);
    this._measure();
    if (anchor !== NONE && !camera.fitted) {
      camera.panBy(0, before - camera.y(this.layout.row[this.layout.visible(store, anchor)]));
    }
  }

  // The selected agent if it can be seen, else one in the middle of the screen.
  _anchor() {
    const { camera, layout, selected } = this;
    if (!this.scene || camera.fitted) return NONE;
    if (selected !== NONE && !layout.hidden[selected]) {
      const y = camera.y(layout.row[selected]);
      if (y > 0 && y < camera.height) return selected;
    }
    return this.agentAt(camera.width / 2, camera.height / 2, camera.width + camera.height);
  }

  _resize() {
    const { clientWidth, clientHeight } = this.canvas.parentElement;
    if (!clientWidth || !clientHeight) return;
    this.painter.resize(clientWidth, clientHeight);
    this._measure();
    this._change();
  }

  _measure() {
    const { clientWidth, clientHeight } = this.canvas.parentElement;
    this.camera.resize(clientWidth, clientHeight, this.layout.columns, this.layout.rows);
  }
}
