// Draws the window of the matrix that is scrolled to: task names at the left, agents' numbers and rates on top, cells.

export const SIZES = [[1, 5], [2, 8], [4, 14], [8, 14], [14, 14], [22, 20]]; // width and height of a cell in pixels
export const TOP = 58; // height of the agents' numbers and rates
const RATES = 26; // of it, the rates
const FILLS = { y: "yes", n: "no", i: "invalid", r: "busy" };

export class MatrixPainter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
  }

  resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  // ``view`` has store, palette, the sizes left, cellWidth and cellHeight, scroll position, cursor and the window.
  paint(view) {
    Object.assign(this, view);
    const { context, palette } = this;
    context.fillStyle = palette.paper;
    context.fillRect(0, 0, this.width, this.height);
    context.textBaseline = "middle";
    this._clipped(this.left, TOP, this.width, this.height, () => this._paintCells());
    this._clipped(this.left, 0, this.width, TOP, () => this._paintAgents());
    this._clipped(0, TOP, this.left, this.height, () => this._paintTasks());
    context.fillStyle = palette.rule;
    context.fillRect(0, TOP - 1, this.width, 1);
    context.fillRect(this.left - 1, 0, 1, this.height);
    context.fillStyle = palette.soft;
    context.font = `12px ${palette.font}`;
    context.textAlign = "right";
    context.fillText("agents →", this.left - 8, TOP - 34);
    context.textAlign = "left";
    context.fillText("tasks ↓", 6, TOP - 14);
  }

  _clipped(x, y, right, bottom, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, right - x, bottom - y);
    this.context.clip();
    draw();
    this.context.restore();
  }

  x(column) {
    return this.left + column * this.cellWidth - this.scrollX;
  }

  y(row) {
    return TOP + row * this.cellHeight - this.scrollY;
  }

  _paintCells() {
    const { context, palette, store, window: seen, cellWidth, cellHeight } = this;
    const gap = cellWidth >= 8 ? 1 : 0;
    const lists = { y: [], n: [], i: [], r: [], ".": [], "": [] };
    for (let row = seen.top; row < seen.bottom; row++) {
      for (let column = seen.left; column < seen.right; ) {
        const letter = store.cell(row, column);
        const first = column++;
        // Neighbours without a gap are one rectangle: there may be 100,000 cells.
        while (!gap && column < seen.right && store.cell(row, column) === letter) column++;
        lists[letter].push(row, first, column - first);
      }
    }
    for (const [letter, list] of Object.entries(lists)) {
      context.fillStyle = letter ? (palette[FILLS[letter]] ?? palette.none) : palette.panel;
      // What has no verdict is smaller, so that it differs in more than its colour.
      const inset = letter === "i" || letter === "r" ? Math.min(cellWidth, cellHeight) * 0.25 : 0;
      const height = cellHeight - (cellHeight >= 8 ? 1 : 0) - 2 * inset;
      for (let n = 0; n < list.length; n += 3) {
        context.fillRect(this.x(list[n + 1]) + inset, this.y(list[n]) + inset, list[n + 2] * cellWidth - gap - 2 * inset, height);
      }
    }
    const { row, column } = this.cursor;
    context.strokeStyle = palette.ink;
    context.lineWidth = 2;
    context.strokeRect(Math.max(this.left + 1, this.x(column) - 1), Math.max(TOP + 1, this.y(row) - 1), Math.max(4, cellWidth), cellHeight);
  }

  _paintAgents() {
    const { context, palette, store, window: seen, cellWidth } = this;
    const { agents } = store;
    const every = Math.ceil(15 / cellWidth); // columns from one number to the next
    context.font = `11px ${palette.font}`;
    for (let column = seen.left; column < seen.right; column++) {
      const id = store.agentOrder[column];
      const x = this.x(column);
      const rate = agents.n[id] ? agents.resolved[id] / agents.n[id] : 0;
      context.fillStyle = id === agents.best ? palette.star : palette.accent;
      context.fillRect(x, TOP - 2 - RATES * rate, Math.max(1, cellWidth - (cellWidth >= 4 ? 1 : 0)), RATES * rate);
      const named = column % every === 0 || column === this.cursor.column;
      if (!named) continue;
      context.save();
      context.translate(x + Math.max(cellWidth, 10) / 2, TOP - RATES - 4);
      context.rotate(-Math.PI / 3);
      context.fillStyle = column === this.cursor.column || id === agents.best ? palette.ink : palette.soft;
      context.fillText(String(id), 0, 0);
      context.restore();
    }
  }

  _paintTasks() {
    const { context, palette, store, window: seen, cellHeight, left } = this;
    const { tasks } = store;
    const bar = Math.min(44, left * 0.16);
    context.font = `${Math.min(12, Math.max(10, cellHeight - 3))}px ${palette.font}`;
    for (let row = seen.top; row < seen.bottom; row++) {
      const task = store.taskOrder[row];
      const [y, middle] = [this.y(row), this.y(row) + cellHeight / 2];
      const rate = tasks.n[task] ? tasks.resolved[task] / tasks.n[task] : 0;
      context.fillStyle = palette.nobox;
      context.fillRect(left - bar - 4, y + 1, bar, cellHeight - 2);
      context.fillStyle = palette.yes;
      context.fillRect(left - bar - 4, y + 1, bar * rate, cellHeight - 2);
      if (cellHeight < 11 && row !== this.cursor.row) continue;
      context.fillStyle = row === this.cursor.row ? palette.ink : palette.soft;
      context.fillText(shorten(context, tasks.name[task], left - bar - 16), 6, middle);
    }
  }
}

// The text, without its beginning where it is too long: names of tasks differ at their ends.
function shorten(context, text, width) {
  const line = text.slice(0, 300).replace(/\s+/g, " ");
  if (context.measureText(line).width <= width) return line;
  let end = line.length;
  for (let low = 0; low < end; ) {
    const middle = (low + end) >> 1;
    if (context.measureText(`…${line.slice(line.length - middle - 1)}`).width <= width) low = middle + 1;
    else end = middle;
  }
  return `…${line.slice(line.length - end)}`;
}
