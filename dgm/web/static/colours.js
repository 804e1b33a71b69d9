// What the colour of an agent means, and the colours themselves, which are those of the style sheet (light or dark).

const SHADES = 7;
const SERIES = 8;
const STEP = 0.1; // ends of the scale are whole tens of per cent

// Colours of the style sheet by name; read again when the scheme changes.
export function readPalette(element) {
  const style = getComputedStyle(element);
  const colour = name => style.getPropertyValue(`--${name}`).trim();
  const list = (name, length) => Array.from({ length }, (_, n) => colour(`${name}-${n}`));
  const names = ["paper", "panel", "ink", "soft", "rule", "edge", "accent", "star", "front", "busy", "nobox", "outline", "yes", "no", "invalid", "none"];
  return {
    ...Object.fromEntries(names.map(name => [name, colour(name)])),
    shades: list("shade", SHADES),
    series: list("series", SERIES),
    font: style.fontFamily,
  };
}

// A way to colour agents: ``bucket(resolved, n, agent)`` gives the index of a colour, or -1 if nothing is known; ``counts``
// holds the columns of its first two arguments.
export function colouring(name, store) {
  if (name === "operator") return byKind("operator", id => store.operator[id], store.operators);
  if (name === "root") {
    const numbers = new Map(store.roots.map((root, n) => [root, n]));
    return byKind("root", id => numbers.get(store.root[id]), store.roots.map(root => `agent ${root}`));
  }
  return name === "clade" ? byRate("clade", store, "cladeResolved", "cladeN") : byRate("own", store, "resolved", "n");
}

function byKind(name, kindOf, kinds) {
  // Kinds beyond the last colour share it.
  const bucket = (resolved, n, id) => Math.min(SERIES - 1, kindOf(id));
  const labels = kinds.length > SERIES ? [...kinds.slice(0, SERIES - 1), `${kinds.length - SERIES + 1} others`] : kinds;
  return { name, palette: "series", bucket, counts: null, labels, ends: null };
}

function byRate(name, store, resolvedColumn, nColumn) {
  const [low, high] = typicalRates(store[resolvedColumn], store[nColumn], store.count);
  const bucket = (resolved, n) => {
    if (!n) return -1;
    return Math.max(0, Math.min(SHADES - 1, Math.floor(((resolved / n - low) / (high - low)) * SHADES)));
  };
  const counts = { resolved: store[resolvedColumn], n: store[nColumn] };
  return { name, palette: "shades", bucket, counts, labels: [], ends: [low, high] };
}

// The range of all rates but the lowest and the highest twentieth, rounded outwards; it is at least 0.2 wide.
function typicalRates(resolved, n, count) {
  const bins = new Int32Array(Math.round(1 / STEP) + 1);
  let known = 0;
  for (let id = 0; id < count; id++) {
    if (!n[id]) continue;
    bins[Math.floor(resolved[id] / n[id] / STEP + 1e-9)]++;
    known++;
  }
  let low = 0;
  for (let below = 0; low < bins.length - 1 && below + bins[low] <= known / 20; low++) below += bins[low];
  let high = bins.length - 1;
  for (let above = 0; high > low && above + bins[high] <= known / 20; high--) above += bins[high];
  const ends = [low * STEP, Math.min(1, (high + 1) * STEP)];
  return ends[1] - ends[0] >= 0.2 - 1e-9 ? ends : [Math.min(0.8, ends[0]), Math.min(0.8, ends[0]) + 0.2];
}
