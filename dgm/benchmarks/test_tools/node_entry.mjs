// Runs one test file of node:test in this process, and after it two tests that must fail.
//
// `tool_runner.py` starts it with the assignment on standard input. Code under test shares this process, so nothing
// that it says is more than a claim: the host compares it with what tests must report. The nonce is in closures only.
import assert from "node:assert";
import { EventEmitter } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);
const { makeTeller, watch } = require("./support.cjs");
const task = JSON.parse(readFileSync(0, "utf8"));
const bearers = [EventEmitter.prototype, Readable.prototype, process.binding("fs")];
const tell = makeTeller(task, watch([assert, assert.strict, require("node:test"), ...bearers]));
const [asserts, raises] = task.controls;
const file = task.files[0];

// The reporter takes it when the first test starts, which is before anything of the repository is read.
globalThis[Symbol.for("dgm.reporter")] = { task, tell, leave: process.reallyExit.bind(process) };
await test(`${asserts} ${raises}`, () => {});
delete require.cache[require.resolve("./support.cjs")];
rmSync(task.folder, { recursive: true, force: true });

process.argv.length = 1;
process.argv.push(`${task.workdir}/${file}`);
try {
  await import(pathToFileURL(`${task.workdir}/${file}`));
} catch (error) {
  tell.broken(file, error);
}
test(asserts, () => assert.strictEqual("this", "that"));
test(raises, () => {
  throw new Error("a test of dgm's own, which must fail");
});
