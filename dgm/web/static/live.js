// Keeps a page up to date: numbers of the header from the news of the run, and every part with `data-live` and an id
// by loading the page again. A module that draws by itself listens for "news" on the document.
const header = document.querySelector("header.top");
const base = header?.dataset.base;
const every = Number(header?.dataset.every || 0) * 1000;
const LEAST_MS = 1000, MOST_MS = 30000;
const parts = document.querySelectorAll("[data-live][id]").length > 0;
let seen = Number(header?.dataset.seq || 0), best = header?.dataset.best;
let latest = null, state = null, loading = false, timer = 0, wait = LEAST_MS, source = null;

document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

function refresh(after) {
  if (parts && !timer) timer = setTimeout(load, after);
}

async function load() {
  timer = 0;
  if (loading || document.hidden) return;
  loading = true;
  try {
    const answer = await fetch(location.pathname + location.search, { headers: { "X-Waits": "1" } });
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live][id]")) replace(part, page.getElementById(part.id));
      const before = seen;
      seen = Number(page.querySelector("header.top")?.dataset.seq || 0);
      best = page.querySelector("header.top")?.dataset.best;
      wait = seen > before ? LEAST_MS : Math.min(MOST_MS, wait * 2);
    }
  } catch {
    wait = Math.min(MOST_MS, wait * 2);
  }
  loading = false;
  // A long run is computed less often than it grows; its end must be seen all the same.
  if (latest && latest.seq > seen) refresh(wait);
  else if (latest?.living) refresh(10000);
}

function replace(part, next) {
  if (!next || part.isEqualNode(next)) return;
  const selection = getSelection();
  if (selection && !selection.isCollapsed && part.contains(selection.anchorNode)) return;
  const open = [...part.querySelectorAll("details")].map((element) => element.open);
  const scrolled = [...part.querySelectorAll(".wide")].map((element) => element.scrollLeft);
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const again = focused && (focused.id ? `#${CSS.escape(focused.id)}` : focused.hasAttribute("href") ? `[href="${CSS.escape(focused.getAttribute("href"))}"]` : "");
  const copy = document.importNode(next, true);
  part.replaceWith(copy);
  copy.querySelectorAll("details").forEach((element, n) => { element.open = open[n] ?? element.open; });
  copy.querySelectorAll(".wide").forEach((element, n) => { element.scrollLeft = scrolled[n] || 0; });
  if (again) copy.querySelector(again)?.focus({ preventScroll: true });
}

function show(news) {
  for (const field of document.querySelectorAll("[data-news]")) {
    const value = news[field.dataset.news];
    const text = typeof value === "number" ? value.toLocaleString("en") : String(value);
    if (field.textContent !== text) field.textContent = text;
    if (field.dataset.news === "state") field.classList.toggle("living", news.living);
  }
  const changed = state !== null && state !== news.state;
  const other = best && news.best !== null && String(news.best) !== best;
  latest = news;
  state = news.state;
  if (news.seq > seen || changed || other) refresh(changed ? 100 : wait);
  else if (news.living) refresh(10000);
  document.dispatchEvent(new CustomEvent("news", { detail: news }));
}

function connect() {
  // A browser opens few connections to a server, so pages that nobody sees have none.
  if (document.hidden || source) return;
  source = new EventSource(`${base}/live`);
  const lost = document.getElementById("connection");
  source.onmessage = (message) => {
    lost.hidden = true;
    show(JSON.parse(message.data));
  };
  const again = (message) => {
    lost.hidden = false;
    if (message.type === "gone" || source.readyState === EventSource.CLOSED) {
      source.close();
      source = null;
      setTimeout(connect, 3000);
    }
  };
  source.onerror = again;
  source.addEventListener("gone", again);
}

if (base) {
  connect();
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return connect();
    source?.close();
    source = null;
  });
} else if (every) {
  setInterval(load, every);
} else if (header?.dataset.again && location.hash) {
  // A page is being computed. The header "Refresh" does nothing where the address has a fragment.
  setTimeout(() => location.reload(), 1000);
}
