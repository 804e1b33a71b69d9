// A reporter of jest, in its main process; the code under test runs in globals of its own, and mostly in workers.
"use strict";
const { readFileSync } = require("node:fs");
const { makeTeller } = require("./support.cjs");

const task = JSON.parse(readFileSync(0, "utf8"));
const tell = makeTeller(task, () => true);

module.exports = class {
  onTestResult(test, result) {
    const file = String(test.path).replace(`${task.workdir}/`, "");
    if (!result.testResults.length && result.failureMessage) tell.broken(file, result.failureMessage);
    for (const one of result.testResults) {
      if (!one.ancestorTitles.length && task.controls.includes(one.title)) {
        if (one.status === "failed") tell.control(one.title, file);
        continue;
      }
      const name = [...one.ancestorTitles, one.title].join(" > ");
      const outcome = { passed: "passed", failed: "failed" }[one.status] ?? "skipped";
      tell.take(file, name, outcome, readError(one.failureMessages?.[0]));
    }
  }

  onRunComplete() {
    tell.end();
  }
};

function readError(text) {
  if (!text) return undefined;
  return { name: /^(\w*Error)\b/.exec(text)?.[1] ?? "", stack: text, text };
}
