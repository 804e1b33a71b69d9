// Starts vitest with a reporter in this process; the code under test runs in workers.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import * as vitest from "vitest/node";

const { makeTeller } = createRequire(import.meta.url)("./support.cjs");
const task = JSON.parse(readFileSync(0, "utf8"));
const tell = makeTeller(task, () => true);
const OUTCOMES = { pass: "passed", fail: "failed" };

class Reporter {
  // vitest 3 and later.
  onTestRunEnd(modules, errors) {
    this.#finish(modules.map((each) => each.task), errors);
  }

  // Before it; vitest 3 calls both.
  onFinished(files, errors) {
    this.#finish(files ?? [], errors);
  }

  #finished = false;

  #finish(files, errors = []) {
    if (this.#finished) return;
    this.#finished = true;
    for (const file of files) {
      const name = String(file.filepath).replace(`${task.workdir}/`, "");
      const error = file.result?.errors?.[0];
      if (error && !file.tasks.length) tell.broken(name, error);
      for (const each of file.tasks) this.#walk(name, [], each);
    }
    for (const error of errors) tell.broken("(outside of the tests)", error);
  }

  #walk(file, titles, each) {
    const path = [...titles, each.name];
    if (each.tasks) {
      for (const inner of each.tasks) this.#walk(file, path, inner);
      return;
    }
    const state = each.result?.state;
    if (!titles.length && task.controls.includes(each.name)) {
      if (state === "fail") tell.control(each.name, file);
      return;
    }
    tell.take(file, path.join(" > "), OUTCOMES[state] ?? "skipped", plain(each.result?.errors?.[0]));
  }
}

function plain(error) {
  if (!error) return error;
  const { name, message, stack, diff } = error;
  return { name, stack, text: [`${name}: ${message}`, diff, stack].filter(Boolean).join("\n") };
}

const words = process.argv.slice(2);
// Before vitest 1.4 there is no parser to ask: then options are left to the configuration.
const asked = vitest.parseCLI?.(["vitest", "run", ...words]) ?? { filter: [], options: {} };
const started = await vitest.startVitest("test", task.files.length ? task.files : asked.filter, {
  ...asked.options,
  run: true,
  watch: false,
  reporters: [new Reporter()],
  runner: new URL("./vitest_runner.mjs", import.meta.url).pathname,
  coverage: { enabled: false },
});
await started?.close();
tell.end();
process.exit();
