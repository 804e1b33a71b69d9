// Where each agent stands: its generation is its column, and a leaf has a row of its own.
//
// A parent stands in the middle between its first and its last child. Siblings stand in order of birth, so that a
// newborn moves nothing above it. Agents of a column are at least a row apart, and to the right of a leaf there is
// nothing, so that its label has room. A folded agent counts as a leaf. The layout is two loops over the agents.

import { NONE } from "./tree_store.js";

export class Layout {
  constructor(store, folded) {
    const { count, parent, depth, firstChild, lastChild } = store;
    this.hidden = new Uint8Array(count);
    this.leaves = new Int32Array(count); // rows of the visible clade
    this.members = new Int32Array(count); // agents of the clade, hidden ones too
    this.deepest = new Int32Array(count); // last visible generation of the clade
    this.first = new Int32Array(count); // first row of the visible clade
    this.row = new Float64Array(count);
    this.columns = 0;
    const { hidden, leaves, members, deepest, first, row } = this;
    for (let id = 0; id < count; id++) {
      const above = parent[id];
      hidden[id] = above !== NONE && (hidden[above] || folded.has(above)) ? 1 : 0;
      if (!hidden[id] && depth[id] >= this.columns) this.columns = depth[id] + 1;
    }
    for (let id = count - 1; id >= 0; id--) {
      members[id]++;
      if (!leaves[id]) leaves[id] = 1;
      if (deepest[id] < depth[id]) deepest[id] = depth[id];
      const above = parent[id];
      if (above === NONE) continue;
      members[above] += members[id];
      if (hidden[id]) continue;
      leaves[above] += leaves[id];
      if (deepest[above] < deepest[id]) deepest[above] = deepest[id];
    }
    const next = new Int32Array(count); // first free row of each clade
    let free = 0;
    for (let id = 0; id < count; id++) {
      if (hidden[id]) continue;
      const above = parent[id];
      if (above === NONE) {
        first[id] = free;
        free += leaves[id];
      } else {
        first[id] = next[above];
        next[above] += leaves[id];
      }
      next[id] = first[id];
    }
    this.rows = free;
    for (let id = count - 1; id >= 0; id--) {
      if (hidden[id]) continue;
      const open = firstChild[id] !== NONE && !folded.has(id);
      row[id] = open ? (row[firstChild[id]] + row[lastChild[id]]) / 2 : first[id];
    }
  }

  // The agent, or its nearest ancestor that is not hidden.
  visible(store, id) {
    let at = id;
    while (at !== NONE && this.hidden[at]) at = store.parent[at];
    return at;
  }
}
