// A reporter of node:test: gathers what became of each test, and tells it when the two tests that must fail have ended.
const key = Symbol.for("dgm.reporter");
const { task, tell, leave } = globalThis[key];
delete globalThis[key];
const file = task.files[0];
const failedControls = new Set();
const seenControls = new Set();

function take({ type, data }, titles) {
  if (type === "test:start") {
    titles.length = data.nesting;
    titles[data.nesting] = data.name;
  }
  if (type !== "test:pass" && type !== "test:fail") return;
  if (data.nesting === 0 && task.controls.includes(data.name)) {
    seenControls.add(data.name);
    if (type === "test:fail") failedControls.add(data.name);
    return;
  }
  if (data.name === task.controls.join(" ") || data.details?.type === "suite") return;
  const name = [...titles.slice(0, data.nesting), data.name].join(" > ");
  const left = data.skip !== undefined || data.todo !== undefined;
  const error = data.details?.error;
  const outcome = left ? "skipped" : type === "test:pass" ? "passed" : "failed";
  tell.take(file, name, outcome, error?.cause instanceof Object ? error.cause : error);
}

export default async function* reporter(events) {
  const titles = [];
  for await (const event of events) {
    take(event, titles);
    if (seenControls.size === task.controls.length) {
      for (const control of failedControls) tell.control(control, file);
      tell.end();
      leave(0);
    }
  }
  yield "";
}
