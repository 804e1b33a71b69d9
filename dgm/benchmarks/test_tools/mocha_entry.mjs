// Runs one test file of mocha in this process, and after it two tests that must fail; `node_entry.mjs` says more.
import assert from "node:assert";
import { EventEmitter } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { makeTeller, watch } = require("./support.cjs");
const task = JSON.parse(readFileSync(0, "utf8"));
const leave = process.reallyExit.bind(process);
const mocha = "/node_modules/mocha";
const Mocha = require(mocha);
const { loadOptions } = require(`${mocha}/lib/cli/options.js`);
const { handleRequires } = require(`${mocha}/lib/cli/run-helpers.js`);
const { reporter, spec, parallel, bail, grep, watch: again, ...options } = loadOptions(process.argv.slice(2));

const watched = [assert, assert.strict, EventEmitter.prototype, process.binding("fs")];
watched.push(Mocha.Runner.prototype, Mocha.Runnable.prototype, Mocha.Test.prototype);
try {
  const chai = createRequire(`${task.workdir}/package.json`)("chai");
  watched.push(chai.assert, chai.Assertion.prototype);
} catch {
  // Its tests do without it, or import it as a module, whose parts cannot be replaced.
}
const tell = makeTeller(task, watch(watched));
const [asserts, raises] = task.controls;
const file = task.files[0];
delete require.cache[require.resolve("./support.cjs")];
rmSync(task.folder, { recursive: true, force: true });

const plugins = await handleRequires(options.require ?? []);
const run = new Mocha({ ...options, ...plugins, reporter: class {} });
for (const each of [...(options.file ?? []), file]) run.addFile(`${task.workdir}/${each}`);
process.argv.length = 2;
try {
  await run.loadFilesAsync();
} catch (error) {
  tell.broken(file, error);
}
const last = Mocha.Suite.create(run.suite, "");
last.addTest(new Mocha.Test(asserts, () => assert.strictEqual("this", "that")));
last.addTest(
  new Mocha.Test(raises, () => {
    throw new Error("a test of dgm's own, which must fail");
  }),
);

const take = (test, outcome, error) => {
  if (test.title === asserts || test.title === raises) {
    if (outcome === "failed") tell.control(test.title, file);
  } else {
    let name = test.title;
    for (let suite = test.parent; suite && !suite.root; suite = suite.parent) name = `${suite.title} > ${name}`;
    tell.take(file, name, outcome, error);
  }
};
run
  .run(() => {
    tell.end();
    leave(0);
  })
  .on("pass", (test) => take(test, "passed"))
  .on("pending", (test) => take(test, "skipped"))
  .on("fail", (test, error) => take(test, "failed", error));
