// The state of the view in the fragment of the address, so that a link or a reload shows the same.

const FOLDED = 500; // numbers of folded agents in a link, at most

export function readLink() {
  const words = new URLSearchParams(location.hash.slice(1));
  const numbers = name => (words.get(name) ?? "").split(",").filter(Boolean).map(Number).filter(Number.isSafeInteger);
  return {
    agent: numbers("agent")[0] ?? -1,
    folded: numbers("folded"),
    colour: words.get("colour") ?? "",
    search: words.get("search") ?? "",
    view: words.get("view") ?? "",
  };
}

export function writeLink({ agent, folded, colour, search, view }) {
  const words = new URLSearchParams();
  if (agent >= 0) words.set("agent", agent);
  if (folded.size) words.set("folded", [...folded].slice(0, FOLDED).join(","));
  if (colour !== "own") words.set("colour", colour);
  if (search) words.set("search", search);
  if (view) words.set("view", view);
  const text = words.toString().replaceAll("%2C", ",");
  // Not pushed: the back button leads to the page before, not through every movement.
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}
