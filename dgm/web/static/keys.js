// Keys and forms: "/" goes to the search field, j and k through the rows of a list; a form becomes an address; a field
// with `data-filter` hides the rows of a part that do not hold its words.
const rows = () => [...document.querySelectorAll("table[data-list] tbody tr")].filter((row) => !row.hidden && row.querySelector("a"));

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "/") {
    const field = document.querySelector("input[type=search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
  } else if (event.key === "j" || event.key === "k") {
    const all = rows();
    const here = all.indexOf(document.activeElement.closest("tr"));
    const next = all[here < 0 ? 0 : Math.min(all.length - 1, Math.max(0, here + (event.key === "j" ? 1 : -1)))];
    next?.querySelector("a").focus();
  }
});

addEventListener("submit", (event) => {
  event.preventDefault();
  const query = new URLSearchParams(new FormData(event.target));
  for (const [name, value] of [...query]) if (!value) query.delete(name);
  location.search = query.toString();
});

function filter(field) {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll(`#${CSS.escape(field.dataset.filter)} tbody tr`)) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
}

addEventListener("input", (event) => {
  if (event.target.dataset.filter) filter(event.target);
});
