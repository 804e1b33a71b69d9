// The part of the matrix around the cursor as a table: for screen readers, and for everyone who likes text.

import { LETTERS } from "./matrix_store.js";

const ROWS = 15;
const COLUMNS = 8;

// ``addressOf(agent, task name)`` and ``rateOf(agent)`` give what cells and headings need.
export function showTable(table, store, cursor, { addressOf, rateOf }) {
  if (!table.closest("details").open) return;
  const rows = around(cursor.row, ROWS, store.taskOrder.length);
  const columns = around(cursor.column, COLUMNS, store.agentOrder.length);
  const head = make("tr", make("th", "task", { scope: "col" }));
  for (const column of columns) {
    const id = store.agentOrder[column];
    head.append(make("th", `agent ${id}: ${rateOf(id)}`, { scope: "col" }));
  }
  const body = rows.map(row => {
    const name = store.tasks.name[store.taskOrder[row]];
    const cells = columns.map(column => {
      const letter = store.cell(row, column);
      const text = LETTERS[letter] ?? "";
      if (letter !== "y" && letter !== "n") return make("td", text);
      return make("td", make("a", text, { href: addressOf(store.agentOrder[column], name) }));
    });
    return make("tr", make("th", name, { scope: "row" }), ...cells);
  });
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...body);
}

function around(middle, count, end) {
  const from = Math.max(0, Math.min(middle - (count >> 1), end - count));
  return Array.from({ length: Math.min(count, end) }, (_, n) => from + n);
}

function make(tag, ...parts) {
  const element = document.createElement(tag);
  for (const part of parts) {
    if (part instanceof Node || typeof part === "string") element.append(part);
    else for (const [name, value] of Object.entries(part)) element.setAttribute(name, value);
  }
  return element;
}
