// Where the arrows lead from an agent: to its parent, its first child, or its neighbours of the same generation.

import { NONE } from "./tree_store.js";

export function parentOf(store, id) {
  return store.parent[id] === NONE ? id : store.parent[id];
}

export function childOf(store, folded, id) {
  return folded.has(id) || store.firstChild[id] === NONE ? id : store.firstChild[id];
}

// The next sibling; after the last one the next visible agent of the generation, whoever its parent is.
export function below(store, folded, id) {
  return aside(store, folded, id, store.nextSibling, store.firstChild);
}

export function above(store, folded, id) {
  return aside(store, folded, id, store.previousSibling, store.lastChild);
}

function aside(store, folded, id, sibling, end) {
  const generation = store.depth[id];
  let at = id;
  for (;;) {
    while (at !== NONE && sibling[at] === NONE) at = store.parent[at];
    if (at === NONE) return id;
    at = sibling[at];
    const top = at;
    // Search this clade for the generation; a line that ends before it is left for its neighbour.
    for (;;) {
      if (store.depth[at] === generation) return at;
      if (end[at] !== NONE && !folded.has(at)) at = end[at];
      else {
        while (at !== top && sibling[at] === NONE) at = store.parent[at];
        if (at === top) break;
        at = sibling[at];
      }
    }
  }
}
