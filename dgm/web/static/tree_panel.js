// The facts of the selected agent beside the tree, and the legend of its colours. Every text is set as text, never as
// markup: operators and reasons are an agent's own words.

import { NONE, cmpText, rateText, tallyText } from "./tree_store.js";

const REASON_MS = 250; // the reason is fetched once the selection rests

export class Panel {
  constructor(element, base) {
    this.element = element;
    this.base = base;
    this.reasons = new Map();
    this._shown = "";
    this._timer = 0;
  }

  show(view) {
    const { store, layout, folded, selected } = view;
    if (selected === NONE) {
      this._replace("none", [make("p", "soft", "Select an agent: click it, or use the arrows.")]);
      return;
    }
    const marks = [
      selected === store.best && ["star", "★ best"],
      store.front.has(selected) && ["front", "◇ on the front"],
      store.states.has(selected) && ["busy", store.states.get(selected)],
    ].filter(Boolean);
    const children = store.children[selected];
    const hidden = layout.members[selected] - 1;
    const parents = store.parent[selected] === NONE ? [] : [store.parent[selected], ...(store.otherParents.get(selected) ?? [])];
    const facts = [
      ["Own", tallyText(store, selected)],
      ["Clade (CMP)", store.cladeN[selected] ? `${cmpText(store, selected)} of ${store.cladeN[selected].toLocaleString("en")}` : "not evaluated"],
      ["Operator", store.operators[store.operator[selected]]],
      ["Generation", store.depth[selected].toLocaleString("en")],
      [parents.length > 1 ? "Parents" : "Parent", parents],
      ["Children", `${children.toLocaleString("en")}${hidden > children ? `, ${hidden.toLocaleString("en")} descendants` : ""}`],
    ].filter(([, value]) => value.length);
    const key = JSON.stringify([selected, marks, facts, folded.has(selected), this.reasons.get(selected)]);
    if (key === this._shown) return;
    const heading = make("h2", "", "");
    const link = make("a", "", `Agent ${selected}`);
    link.href = `${this.base}/agents/${selected}`;
    heading.append(link, ...marks.map(([kind, text]) => make("span", `mark ${kind}`, text)));
    const list = make("dl", "", "");
    for (const [name, value] of facts) list.append(make("dt", "", name), this._value(value, view));
    const buttons = make("p", "buttons", "");
    const open = make("a", "button", "Open");
    open.href = link.href;
    buttons.append(open);
    if (children) buttons.append(press(folded.has(selected) ? "Unfold" : "Fold", () => view.toggle(selected)));
    this._replace(key, [heading, list, make("p", "reason", this.reasons.get(selected) ?? ""), buttons]);
    this._fetchReason(selected, view);
  }

  _value(value, view) {
    const cell = make("dd", "", "");
    if (!Array.isArray(value)) cell.textContent = value;
    else value.forEach(id => cell.append(press(String(id), () => view.select(id))));
    return cell;
  }

  _replace(key, parts) {
    if (key === this._shown) return;
    this._shown = key;
    this.element.replaceChildren(...parts);
  }

  _fetchReason(id, view) {
    clearTimeout(this._timer);
    if (this.reasons.has(id)) return;
    this._timer = setTimeout(async () => {
      const answer = await fetch(`${this.base}/data/row.json?agent=${id}`);
      if (!answer.ok) return;
      this.reasons.set(id, (await answer.json()).rationale);
      this.show(view);
    }, REASON_MS);
  }
}

// What the colours and marks mean.
export function showLegend(element, view) {
  const { colouring, palette, store } = view;
  const names = { own: "own rate", clade: "CMP", operator: "operator", root: "root" };
  const parts = [make("span", "title", names[colouring.name])];
  if (colouring.ends) {
    const [low, high] = colouring.ends.map(end => `${Math.round(end * 100)}%`);
    const ramp = make("span", "ramp", "");
    ramp.append(...palette.shades.map(colour => swatch(colour)));
    parts.push(make("span", "", colouring.ends[0] > 0 ? `≤ ${low}` : low), ramp, make("span", "", colouring.ends[1] < 1 ? `≥ ${high}` : high));
  } else {
    colouring.labels.forEach((label, n) => {
      const item = make("span", "kind", "");
      item.append(swatch(palette.series[n]), make("bdi", "", label));
      parts.push(item);
    });
  }
  const marks = [
    store.best !== NONE && ["star", "★ best and its line"],
    store.front.size && ["front", "◇ front"],
    [...store.states.values()].includes("expanding") && ["busy", "◯ makes a child"],
    [...store.states.values()].includes("evaluating") && ["busy", "◌ is evaluated"],
  ].filter(Boolean);
  parts.push(...marks.map(([kind, text]) => make("span", `mark ${kind}`, text)));
  const key = parts.map(part => part.outerHTML).join("");
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  element.replaceChildren(...parts);
}

function swatch(colour) {
  const box = make("i", "", "");
  box.style.background = colour;
  return box;
}

function make(tag, kind, text) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.textContent = text;
  return element;
}

function press(text, action) {
  const button = make("button", "", text);
  button.type = "button";
  button.addEventListener("click", action);
  return button;
}
