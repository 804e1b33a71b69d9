// A reporter of jest: writes what became of each test to a file, a line each, under a nonce.
//
// It is put into the grading sandbox with its two values filled in and removes itself when it is loaded. It lives in
// jest's own process; the graded code runs in a worker process.
"use strict";
const fs = require("fs");

const nonce = "@NONCE@";
const write = fs.writeSync;
const file = fs.openSync("@RESULTS@", "wx", 0o600);
fs.unlinkSync(__filename);

const say = (said) => write(file, `${nonce} ${JSON.stringify(said)}\n`);
const outcomes = { passed: "passed", failed: "failed" };

module.exports = class {
  onTestResult(_test, result) {
    if (result.testExecError || (result.failureMessage && !result.testResults.length)) {
      say({ broken: String(result.failureMessage || result.testExecError.message).slice(-20000) });
    }
    for (const one of result.testResults) {
      const message = one.failureMessages.join("\n").slice(0, 20000);
      say({ test: one.fullName, outcome: outcomes[one.status] || "skipped", message });
    }
  }

  onRunComplete() {
    say({ end: true });
  }
};
