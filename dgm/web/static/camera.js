// The part of the tree that the canvas shows: two scales, and the position of its origin in pixels.
//
// Rows and columns have scales of their own: a tree of 10,000 agents has many rows and few columns. Zooming leads from
// "everything fits" to "everything is labelled" along one path on which both scales arrive together.

export const LABEL_ROW = 9; // pixels between rows from which agents have labels
const LABELLED = { column: 300, row: 34 }; // pixels
const ROOMY = { column: 210, row: 26 }; // a small tree is not stretched over the whole screen
const MARGIN = { left: 26, top: 30, bottom: 26 };
const RIGHT = { labels: 220, numbers: 96 }; // for labels of leaves, and for the number of the best agent

export class Camera {
  constructor() {
    this.width = this.height = 1;
    this.columns = this.rows = 1;
    this.fitted = true; // follows the growing tree until the user moves
    this.fit();
  }

  get _fit() {
    const height = Math.max(20, this.height - MARGIN.top - MARGIN.bottom);
    const row = Math.min(ROOMY.row, height / Math.max(1, this.rows - 1));
    const right = Math.min(row < LABEL_ROW ? RIGHT.numbers : RIGHT.labels, this.width * 0.3);
    const width = Math.max(20, this.width - MARGIN.left - right);
    return { column: Math.min(ROOMY.column, width / Math.max(1, this.columns - 1)), row };
  }

  // From 0, everything fits, to 1, everything is labelled.
  get zoom() {
    const fit = this._fit;
    return Math.log(this.row / fit.row) / Math.log(LABELLED.row / fit.row);
  }

  x(column) {
    return this.left + column * this.column;
  }

  y(row) {
    return this.top + row * this.row;
  }

  columnAt(x) {
    return (x - this.left) / this.column;
  }

  rowAt(y) {
    return (y - this.top) / this.row;
  }

  // Adapt to the sizes of canvas and tree; a view that the user chose stays, except that its middle is kept.
  resize(width, height, columns, rows) {
    const middle = [this.columnAt(this.width / 2), this.rowAt(this.height / 2)];
    const changed = width !== this.width || height !== this.height;
    Object.assign(this, { width, height, columns, rows });
    if (this.fitted) this.fit();
    else if (changed) this.centre(...middle);
  }

  fit() {
    Object.assign(this, this._fit);
    this.left = MARGIN.left;
    this.top = MARGIN.top + Math.max(0, (this.height - MARGIN.top - MARGIN.bottom - (this.rows - 1) * this.row) / 2);
    this.fitted = true;
  }

  // Zoom by steps (1 is a press of a key); what is at the point stays there.
  zoomBy(steps, x = this.width / 2, y = this.height / 2) {
    const fit = this._fit;
    const range = Math.max(Math.log(LABELLED.row / fit.row), Math.log(LABELLED.column / fit.column));
    const zoom = Math.min(1, Math.max(0, this.zoom + (steps * 0.35) / range));
    const at = [this.columnAt(x), this.rowAt(y)];
    this.column = fit.column * (LABELLED.column / fit.column) ** zoom;
    this.row = fit.row * (LABELLED.row / fit.row) ** zoom;
    this.left = x - at[0] * this.column;
    this.top = y - at[1] * this.row;
    this.fitted = false;
    this._keepInSight();
  }

  panBy(dx, dy) {
    this.left += dx;
    this.top += dy;
    this.fitted = false;
    this._keepInSight();
  }

  centre(column, row) {
    this.left = this.width / 2 - column * this.column;
    this.top = this.height / 2 - row * this.row;
    this.fitted = false;
    this._keepInSight();
  }

  // Move as little as brings a node into sight; where it is too small to be seen, zoom to it.
  reveal(column, row) {
    const x = this.x(column);
    const y = this.y(row);
    const edge = { x: Math.min(90, this.width / 4), y: Math.min(60, this.height / 4) };
    const inside = x >= 8 && x <= this.width - edge.x && y >= edge.y / 2 && y <= this.height - edge.y / 2;
    if (inside) return;
    this.panBy(
      Math.max(edge.x, Math.min(this.width - 2 * edge.x, x)) - x,
      Math.max(edge.y, Math.min(this.height - edge.y, y)) - y,
    );
  }

  // At least a corner of the tree stays on the canvas.
  _keepInSight() {
    const width = (this.columns - 1) * this.column;
    const height = (this.rows - 1) * this.row;
    this.left = Math.min(this.width - 60, Math.max(60 - width, this.left));
    this.top = Math.min(this.height - 60, Math.max(60 - height, this.top));
  }

  // What a link needs to show the same part on a screen of any size; empty if everything is shown.
  get link() {
    if (this.fitted) return "";
    const middle = [this.columnAt(this.width / 2), this.rowAt(this.height / 2)];
    return [...middle, this.column, this.row].map(value => Number(value.toPrecision(5))).join(",");
  }

  set link(text) {
    const [column, row, ...scales] = text.split(",").map(Number);
    if (![column, row, ...scales].every(Number.isFinite) || scales.length !== 2 || scales.some(scale => scale <= 0)) {
      this.fit();
      return;
    }
    this.column = Math.min(LABELLED.column, scales[0]);
    this.row = Math.min(LABELLED.row, scales[1]);
    this.centre(column, row);
  }
}
