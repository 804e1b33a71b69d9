// Parts of all test tools: what is told of tests, and whether functions are still those that they were.
"use strict";
const { writeSync } = require("node:fs");
const { inspect } = require("node:util");

const RESULTS = 3; // the descriptor that `tool_runner.py` reads
const MESSAGE = 6000;
const PLACES = 8;
const RANK = { passed: 0, skipped: 1, failed: 2 };
const { stringify } = JSON;
const { isArray } = Array;
const { keys } = Object;

// What follows after code under test was read calls no method that it could have replaced.

// Return a function that says whether all functions of some objects are still those that they were.
function watch(objects) {
  const known = [];
  for (const each of objects) {
    for (const [name, value] of Object.entries(each)) {
      if (typeof value === "function") known[known.length] = { each, name, value };
    }
  }
  return () => {
    for (let at = 0; at < known.length; at += 1) {
      const { each, name, value } = known[at];
      if (each[name] !== value) return false;
    }
    return true;
  };
}

// Return the kind of an error, and the places in own files on its way, the innermost last.
function describe(error, workdir) {
  const stack = String(error?.stack ?? "");
  const places = [];
  for (const line of stack.split("\n")) {
    const at = line.indexOf(`${workdir}/`);
    const found = at < 0 ? null : /^(.+?):(\d+)(?::\d+)?\)?$/.exec(line.slice(at + workdir.length + 1).trim());
    if (found && !found[1].includes("node_modules/")) places.push([found[1], Number(found[2])]);
  }
  return { kind: String(error?.name ?? ""), lines: places.slice(0, PLACES).reverse() };
}

// Return a value as JSON. JSON.stringify alone asks objects for a method toJSON, which code under test may have added.
function write(value) {
  if (typeof value !== "object" || value === null) return stringify(value);
  const list = isArray(value);
  const names = list ? value : keys(value);
  let text = "";
  for (let at = 0; at < names.length; at += 1) {
    const inner = write(list ? value[at] : value[names[at]]);
    if (inner === undefined) continue;
    text += (text && ",") + (list ? inner : `${stringify(names[at])}:${inner}`);
  }
  return list ? `[${text}]` : `{${text}}`;
}

function textOf(error) {
  const text =
    typeof error === "string" ? error : (error?.text ?? inspect(error, { depth: 4, breakLength: 100 }));
  return text.slice(0, MESSAGE);
}

// Return what tells results: of several tests of one name in a file the worst counts.
function makeTeller(task, untouched) {
  const results = Object.create(null);
  const say = (said) => writeSync(RESULTS, `\n${task.nonce} ${write(said)}\n`);
  return {
    take(file, name, outcome, error) {
      const test = `${file}::${name}`;
      const known = results[test];
      const counts = untouched() ? outcome : "failed";
      if (known && RANK[known.outcome] >= RANK[counts]) return;
      const failed = counts === "failed";
      results[test] = { test, outcome: counts, error: failed ? describe(error, task.workdir) : null };
      if (failed && task.survey) results[test].message = textOf(error);
    },
    control(control, file) {
      say({ control, file });
    },
    broken(file, error) {
      say({ broken: file, message: textOf(error) });
    },
    end() {
      if (untouched()) for (const test in results) say(results[test]);
      say({ end: true });
    },
  };
}

module.exports = { makeTeller, watch };
