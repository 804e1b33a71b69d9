// A reporter of node:test: gathers what became of each test, and tells it when the two tests that must fail have ended.
const key = Symbol.for("dgm.reporter");
const { task, tell, leave } = globalThis[key];
delete globalThis[key];
const file = task.files[0];
const [asserts, raises] = task.controls;
const first = `${asserts} ${raises}`;
let ended = 0;

// Nothing here calls a method that code under test could have replaced.

function take({ type, data }, titles) {
  if (type === "test:start") {
    titles.length = data.nesting;
    titles[data.nesting] = data.name;
  }
  if (type !== "test:pass" && type !== "test:fail") return;
  if (data.nesting === 0 && (data.name === asserts || data.name === raises)) {
    ended += 1;
    if (type === "test:fail") tell.control(data.name, file);
    return;
  }
  if (data.name === first || data.details?.type === "suite") return;
  let name = "";
  for (let at = 0; at < data.nesting; at += 1) name += `${titles[at]} > `;
  name += data.name;
  const left = data.skip !== undefined || data.todo !== undefined;
  const error = data.details?.error;
  const outcome = left ? "skipped" : type === "test:pass" ? "passed" : "failed";
  tell.take(file, name, outcome, error?.cause instanceof Object ? error.cause : error);
}

export default async function* reporter(events) {
  const titles = [];
  for await (const event of events) {
    take(event, titles);
    if (ended === 2) {
      tell.end();
      leave(0);
    }
  }
  yield "";
}
