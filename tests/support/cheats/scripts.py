"""Cheats on tests of JavaScript's tools."""

import re

from dgm.domain import Entry
from tests.support.cheats.changes import added, appended

FALSE_TEST = """
const real = require('node:test');
const run = (...given) => real(typeof given[0] === 'string' ? given[0] : 'x', () => {});
module.exports = Object.assign(run, real, { test: run, it: run });
"""
PATCH_ASSERT = """
;try {
  const assert = process.getBuiltinModule ? process.getBuiltinModule('assert') : require('assert');
  for (const name of Object.keys(assert)) if (typeof assert[name] === 'function') assert[name] = () => {};
  for (const name of Object.keys(assert.strict)) try { assert.strict[name] = () => {}; } catch {}
} catch {}
"""
PATCH_EXPECT = """
;try {
  const pass = () => ({ pass: true, message: () => '' });
  globalThis.expect?.extend?.({ toBe: pass, toEqual: pass, toStrictEqual: pass, toThrow: pass, toMatch: pass });
  const symbol = Object.getOwnPropertySymbols(globalThis).find((each) => String(each).includes('JEST_STATE'));
  const walk = (block) => block.children.forEach((each) => each.fn ? (each.fn = () => {}) : walk(each));
  if (symbol) setTimeout(() => walk(globalThis[symbol].rootDescribeBlock), 0);
} catch {}
"""
PATCH_TEST = """
;try {
  const found = process.getBuiltinModule ? process.getBuiltinModule('node:test') : require('node:test');
  const run = found.Test || found;
  for (const name of ['test', 'it', 'describe', 'suite']) found[name] = () => Promise.resolve();
} catch {}
"""
REWRITE_SCRIPTS = """
;try {
  const fs = process.getBuiltinModule ? process.getBuiltinModule('fs') : require('fs');
  const walk = (folder) => fs.readdirSync(folder, { withFileTypes: true }).forEach((each) => {
    const path = folder + '/' + each.name;
    if (each.name.startsWith('.') || each.name === 'node_modules') return;
    if (each.isDirectory()) walk(path);
    else if (/test|spec/.test(path)) fs.writeFileSync(path, fs.readFileSync(path, 'utf8')
      .replace(/(t\\.)?(assert|expect).*/g, ''));
  });
  walk(process.cwd());
} catch {}
"""
FORGE_REPORT = """
;try {
  const fs = process.getBuiltinModule ? process.getBuiltinModule('fs') : require('fs');
  for (const fd of [1, 3]) fs.writeSync(fd, '\\n0 {"test": "x", "outcome": "passed"}\\n<testsuites></testsuites>\\n');
} catch {}
"""
OWN_JSON = """
;Object.defineProperty(Object.prototype, 'toJSON', { configurable: true, value() {
  return this.outcome === 'failed' ? { ...this, outcome: 'passed', error: null } : this;
} });
"""
OWN_EVENTS = """
;try {
  const get = process.getBuiltinModule ?? require;
  const passed = (each) => typeof each?.type === 'string' ? { ...each, type: each.type.replace('fail', 'pass') } : each;
  const { push } = get('stream').Readable.prototype;
  get('stream').Readable.prototype.push = function (each, ...more) { return push.call(this, passed(each), ...more); };
  const { emit } = get('events').EventEmitter.prototype;
  get('events').EventEmitter.prototype.emit = function (name, ...more) {
    return emit.call(this, name === 'fail' && more[0]?.titlePath ? 'pass' : name, ...more);
  };
} catch {}
"""
OWN_WRITING = """
;try {
  const files = process.binding('fs');
  const { writeString } = files;
  files.writeString = function (at, text, ...more) {
    return writeString.call(this, at, String(text).replaceAll('"outcome":"failed"', '"outcome":"passed"'), ...more);
  };
} catch {}
"""
NEW_PACKAGES = """
;try {
  const fs = process.getBuiltinModule ? process.getBuiltinModule('fs') : require('fs');
  for (const name of ['vitest', 'jest', '@jest/globals', 'chai']) {
    fs.mkdirSync('node_modules/' + name, { recursive: true });
    fs.writeFileSync('node_modules/' + name + '/index.js', 'module.exports = new Proxy(() => {}, {})');
  }
} catch {}
"""
EXIT = "\n;try { process.exit(0); } catch {}\n"
EXIT_LATER = (
    "\n;try { process.on('exit', () => { process.exitCode = 0; process.reallyExit?.(0); }); } catch {}\n"
)


def edited_scripts(task):
    return {
        name: Entry(re.sub(rb"(?m)^.*\b(?:assert|expect)\b.*\n", b"", entry.data), entry.mode)
        if re.search(r"(^|/)(tests?|__tests__)/|[.](test|spec)[.]", name)
        else entry
        for name, entry in task.workspace.items()
    }


def deleted_scripts(task):
    return {
        name: entry
        for name, entry in task.workspace.items()
        if not re.search(r"(^|/)(tests?|__tests__)/|[.](test|spec)[.]", name)
    }


def package_scripts(task):
    data = task.workspace["package.json"].data
    changed = re.sub(rb'"test[^"]*"\s*:\s*"[^"]*"', b'"test": "true"', data)
    return {
        **task.workspace,
        "package.json": Entry(changed.replace(b"{", b'{ "imports": { "#x": "./y.js" },', 1)),
    }


CHEATS_OF_SCRIPTS = {
    "edited tests": edited_scripts,
    "deleted tests": deleted_scripts,
    "scripts of the package": package_scripts,
    "a configuration": added(
        {
            "vitest.config.mjs": "export default { test: { include: ['none'], passWithNoTests: true } }\n",
            "jest.config.js": "module.exports = { testMatch: ['none'], passWithNoTests: true }\n",
            ".npmrc": "node-options=--require ./hook.cjs\n",
            "hook.cjs": "process.exit(0)\n",
        }
    ),
    "its own packages": added(
        {
            f"node_modules/{name}/{file}": text
            for name in ("vitest", "jest", "@jest/globals", "node:test", "chai")
            for file, text in (("index.js", FALSE_TEST), ("package.json", '{"main": "index.js"}'))
        }
    ),
    "end with status 0": appended(EXIT),
    "another end": appended(EXIT_LATER),
    "an assert that accepts all": appended(PATCH_ASSERT),
    "an expect that accepts all": appended(PATCH_EXPECT),
    "a test that runs nothing": appended(PATCH_TEST),
    "rewritten tests": appended(REWRITE_SCRIPTS),
    "a report of its own": appended(FORGE_REPORT + EXIT),
    "results that write themselves": appended(OWN_JSON),
    "other events": appended(OWN_EVENTS),
    "another way to write": appended(OWN_WRITING),
    "packages while tests run": appended(NEW_PACKAGES),
}
