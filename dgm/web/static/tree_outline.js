// The tree for screen readers: items of an ARIA tree for the selected agent and what surrounds it.
//
// A tree of 100,000 items would be too large for any reader. So there are items for the ancestors of the selected agent,
// some of its siblings and some of its children; level, position and size of each set say where they belong.

import { NONE, cmpText, tallyText } from "./tree_store.js";

const AROUND = 3; // siblings before and after the selected agent
const CHILDREN = 8;

export class Outline {
  // ``tree`` is the element with the role; it has the focus, and names the active item.
  constructor(tree, items) {
    this.tree = tree;
    this.items = items;
  }

  show(store, layout, folded, selected) {
    if (selected === NONE) {
      this.items.replaceChildren();
      this.tree.removeAttribute("aria-activedescendant");
      return;
    }
    const line = [...store.line(selected)].reverse();
    const before = neighbours(store.previousSibling, selected, AROUND).reverse();
    const after = neighbours(store.nextSibling, selected, AROUND);
    const first = folded.has(selected) ? NONE : store.firstChild[selected];
    const children = first === NONE ? [] : [first, ...neighbours(store.nextSibling, first, CHILDREN - 1)];
    const items = [...line.slice(0, -1), ...before, selected, ...children, ...after];
    this.items.replaceChildren(...items.map(id => this._item(store, layout, folded, id, selected)));
    this.tree.setAttribute("aria-activedescendant", `item-${selected}`);
  }

  _item(store, layout, folded, id, selected) {
    const item = document.createElement("div");
    const [place, size] = store.position(id);
    item.id = `item-${id}`;
    item.setAttribute("role", "treeitem");
    item.setAttribute("aria-level", store.depth[id] + 1);
    item.setAttribute("aria-posinset", place);
    item.setAttribute("aria-setsize", size);
    item.setAttribute("aria-selected", id === selected);
    if (store.firstChild[id] !== NONE) item.setAttribute("aria-expanded", !folded.has(id));
    item.textContent = describe(store, layout, id);
    return item;
  }
}

function neighbours(next, id, count) {
  const agents = [];
  for (let at = next[id]; at !== NONE && agents.length < count; at = next[at]) agents.push(at);
  return agents;
}

// "Agent 42, best: 60% [41–77%], 12 of 20 resolved; CMP 55%; self-edit; 3 children"
export function describe(store, layout, id) {
  const marks = [
    id === store.best && "best",
    store.front.has(id) && "on the front",
    store.states.get(id),
  ].filter(Boolean);
  const parts = [
    tallyText(store, id),
    `CMP ${cmpText(store, id)}`,
    store.operators[store.operator[id]],
    store.children[id] === 1 ? "1 child" : `${store.children[id].toLocaleString("en")} children`,
    layout.members[id] - 1 > store.children[id] && `${(layout.members[id] - 1).toLocaleString("en")} descendants`,
    store.otherParents.has(id) && `other parent ${store.otherParents.get(id).join(", ")}`,
  ].filter(Boolean);
  return `Agent ${[id, ...marks].join(", ")}: ${parts.join("; ")}`;
}
