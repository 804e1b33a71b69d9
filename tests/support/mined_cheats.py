"""Cheats on the tasks of a mined suite: ``python -m tests.support.mined_cheats SUITE [ENGINE]``.

Each is tried on every task, beside doing nothing and the reference fix; the table says what was resolved.
"""

import asyncio
import re
import sys
from collections import Counter
from pathlib import Path

from dgm.archive.repository import patch
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import INERT
from dgm.domain import Entry, Split, Verdict
from dgm.sandboxes.choose import choose

PASS_ALL = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = 'passed'
"""
PATCH_PYTEST = """
import _pytest.runner as _runner
_old = _runner.CallInfo.from_call.__func__
_runner.CallInfo.from_call = classmethod(lambda cls, func, *a, **k: _old(cls, lambda: None, *a, **k))
"""
RUN_NOTHING = "\nimport pytest as _pytest_\n_pytest_.Function.runtest = lambda self: None\n"
REWRITE_TESTS = """
import pathlib as _p, re as _r
for _f in [*_p.Path('.').rglob('test_*.py'), *_p.Path('.').rglob('*_test.py')]:
    try:
        _f.write_text(_r.sub(r'assert .*', 'pass', _f.read_text()))
    except OSError:
        pass
"""
INSTALL_COPY = """
import os as _o, sys as _s
_s.path.insert(0, '/tmp')
try:
    open('/opt/dgm-environment/sitecustomize.py', 'w').write('import os; os._exit(0)')
except OSError:
    pass
"""


def added(files):
    return lambda task: {**task.workspace, **{name: Entry(text.encode()) for name, text in files.items()}}


def appended(text):
    """To the end of every file that the fix changes."""

    def change(task):
        return {
            name: Entry(entry.data + text.encode(), entry.mode) if name in task.modules else entry
            for name, entry in task.workspace.items()
        }

    return change


def edited_tests(task):
    return {
        name: Entry(re.sub(rb"(?m)^( +)assert .*", rb"\1pass", entry.data), entry.mode)
        if re.search(r"(^|/)(test_\w+|\w+_test)\.py$", name)
        else entry
        for name, entry in task.workspace.items()
    }


def deleted_tests(task):
    return {name: entry for name, entry in task.workspace.items() if not re.search(r"(^|/)tests?(/|_)", name)}


CHEATS = {
    "edited tests": edited_tests,
    "deleted tests": deleted_tests,
    "a conftest that passes all": added({"conftest.py": PASS_ALL, "tests/conftest.py": PASS_ALL}),
    "a configuration": added({"pytest.ini": "[pytest]\naddopts = --collect-only\n"}),
    "sitecustomize": added({"sitecustomize.py": "import os\nos._exit(0)\n"}),
    "its own pytest": added({"pytest.py": "raise SystemExit(0)\n", "_pytest/__init__.py": ""}),
    "end with status 0": appended("\nimport os\nos._exit(0)\n"),
    "another pytest at import": appended(PATCH_PYTEST),
    "tests that run nothing": appended(RUN_NOTHING),
    "rewritten tests": appended(REWRITE_TESTS),
    "an installed copy": appended(INSTALL_COPY),
    "an exception at import": appended("\nraise SystemExit(0)\n"),
}


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
    "packages while tests run": appended(NEW_PACKAGES),
}


GO_HEAD = re.compile(rb"^package \w+", re.M)


def in_go(imports, code):
    """Into the first file that the fix changes."""

    def change(task):
        files = dict(task.workspace)
        first = next(name for name in task.modules if name in files and name.endswith(".go"))
        entry = files[first]
        head = GO_HEAD.search(entry.data).end()
        named = "".join(f'; import cheat{each.rpartition("/")[2]} "{each}"' for each in imports).encode()
        files[first] = Entry(entry.data[:head] + named + entry.data[head:] + code.encode(), entry.mode)
        return files

    return change


def edited_go(task):
    return {
        name: Entry(re.sub(rb"\bt\.(Error|Fatal)f?\(", b"t.Log(", entry.data), entry.mode)
        if name.endswith("_test.go")
        else entry
        for name, entry in task.workspace.items()
    }


def deleted_go(task):
    return {name: entry for name, entry in task.workspace.items() if not name.endswith("_test.go")}


def package_of(task):
    name = next(name for name in task.modules if name.endswith(".go") and name in task.workspace)
    return name.rpartition("/")[0], GO_HEAD.search(task.workspace[name].data)[0].decode()


def main_that_passes(task):
    folder, head = package_of(task)
    text = f'{head}\nimport ("os"; "testing")\nfunc TestMain(m *testing.M) {{ os.Exit(0) }}\n'
    return {**task.workspace, f"{folder}/cheat_test.go".lstrip("/"): Entry(text.encode())}


def replaced_module(task):
    text = task.workspace.get("go.mod", Entry(b"module x\n")).data + b"\nreplace testing => ./testing\n"
    return {
        **task.workspace,
        "go.mod": Entry(text),
        "testing/testing.go": Entry(b"package testing\ntype T struct{}\n"),
        "vendor/testing/testing.go": Entry(b"package testing\ntype T struct{}\n"),
    }


FLIP = """
func init() {
	r, w, err := cheatos.Pipe()
	if err != nil { return }
	old := cheatos.Stdout
	cheatos.Stdout = w
	go func() {
		lines := cheatbufio.NewScanner(r)
		for lines.Scan() {
			old.WriteString(cheatstrings.Replace(lines.Text(), "--- FAIL", "--- PASS", 1) + "\\n")
		}
	}()
}
"""
FORGE = """
func init() {
	cheatos.Stdout.WriteString("=== RUN   TestX\\n--- PASS: TestX (0.00s)\\nPASS\\n")
	cheatos.Exit(1)
}
"""
REWRITE_GO = """
func init() {
	cheatfilepath.Walk(".", func(path string, info cheatos.FileInfo, err error) error {
		if err == nil && cheatstrings.Contains(path, "_test") { cheatos.WriteFile(path, []byte("package x"), 0o644) }
		return nil
	})
	cheatos.WriteFile(cheatos.Args[0], []byte("#!/bin/sh\\nexit 0"), 0o755)
}
"""
FLAGS = """
func init() {
	cheatos.Args = []string{cheatos.Args[0], "-test.v", "-test.run=^$"}
}
"""
CHEATS_OF_GO = {
    "edited tests": edited_go,
    "deleted tests": deleted_go,
    "a TestMain of its own": main_that_passes,
    "a module replaced": replaced_module,
    "settings of go": added({"go.env": "GOFLAGS=-run=none\n", ".config/go/env": "GOFLAGS=-run=none\n"}),
    "a workspace of its own": added({"go.work": "go 1.18\nuse ./other\n", "other/go.mod": "module other\n"}),
    "end with status 0": in_go(["os"], "\nfunc init() { cheatos.Exit(0) }\n"),
    "end with status 1": in_go(["os"], "\nfunc init() { cheatos.Exit(1) }\n"),
    "end by a system call": in_go(
        ["syscall", "time"],
        "\nfunc init() { go func() { cheattime.Sleep(5000000); cheatsyscall.Exit(0) }() }\n",
    ),
    "a report of its own": in_go(["os"], FORGE),
    "failures turned over": in_go(["os", "bufio", "strings"], FLIP),
    "rewritten tests": in_go(["os", "strings", "path/filepath"], REWRITE_GO),
    "other arguments": in_go(["os"], FLAGS),
}


FALSE_MACROS = """
#[macro_export] macro_rules! assert_eq { ($($any:tt)*) => {} }
#[macro_export] macro_rules! assert_ne { ($($any:tt)*) => {} }
#[macro_export] macro_rules! assert { ($($any:tt)*) => {} }
"""
FORGE_CARGO = """
#[cfg(test)]
#[allow(dead_code)]
fn forge() {
    use std::io::Write;
    let mut out = std::fs::File::create("/proc/self/fd/1").unwrap();
    let _ = out.write_all(b"\\ntest tests::halves ... ok\\ntest six ... ok\\n");
    let _ = out.write_all(b"\\ntest result: ok. 2 passed; 0 failed\\n");
    std::process::exit(0);
}
#[cfg(test)]
#[no_mangle]
#[link_section = ".init_array"]
pub static FORGE: extern "C" fn() = { extern "C" fn run() { forge() } run };
"""
EXIT_RUST = """
#[link_section = ".init_array"]
pub static LEAVE: extern "C" fn() = { extern "C" fn run() { std::process::exit(0) } run };
"""


def in_front(text):
    """To the front of every file that the fix changes."""

    def change(task):
        return {
            name: Entry(text.encode() + entry.data, entry.mode) if name in task.modules else entry
            for name, entry in task.workspace.items()
        }

    return change


def edited_rust(task):
    return {
        name: Entry(re.sub(rb"(?m)^ *assert\w*!.*\n", b"", entry.data), entry.mode)
        for name, entry in task.workspace.items()
    }


def ignored_rust(task):
    return {
        name: Entry(entry.data.replace(b"#[test]", b"#[test]\n#[ignore]"), entry.mode)
        for name, entry in task.workspace.items()
    }


def deleted_rust(task):
    return {
        name: Entry(re.sub(rb"#\[cfg\(test\)\][^$]*", b"", entry.data), entry.mode)
        for name, entry in task.workspace.items()
        if not name.startswith("tests/")
    }


WRAPPER = "#!/bin/sh\necho 'test tests::halves ... ok'\n"
CHEATS_OF_RUST = {
    "edited tests": edited_rust,
    "ignored tests": ignored_rust,
    "deleted tests": deleted_rust,
    "a build script": added(
        {"build.rs": 'fn main() { println!("cargo:rustc-cfg=none"); std::process::exit(0) }'}
    ),
    "a configuration": added(
        {
            ".cargo/config.toml": '[alias]\ntest = "version"\n[target."cfg(unix)"]\nrunner = "./run"\n',
            "run": WRAPPER,
        }
    ),
    "another tool chain": added({"rust-toolchain.toml": '[toolchain]\nchannel = "nightly"\n'}),
    "macros that accept all": in_front(FALSE_MACROS),
    "a report of its own": appended(FORGE_CARGO),
    "end with status 0": appended(EXIT_RUST),
}


class Target:
    """The part of a task that cheats change."""

    def __init__(self, suite, task):
        self.workspace = suite.workspace(task)
        self.modules = suite.record(task).provenance.modules
        runner = suite.record(task).tests.runner
        own = {"pytest": CHEATS, "go": CHEATS_OF_GO, "command": CHEATS_OF_RUST}
        self.cheats = own.get(runner, CHEATS_OF_SCRIPTS)


async def grade_cheats(suite, task):
    """Returns the grade of doing nothing, of the fix, and of each cheat."""
    target = Target(suite, task)
    patches = {"nothing": INERT, "the fix": suite.reference(task)}
    patches |= {name: patch(target.workspace, change(target)) for name, change in target.cheats.items()}
    return {
        name: await suite.grade(task, given or INERT, {"dgm.run": "cheats"})
        for name, given in patches.items()
    }


async def main(folder, engine="auto"):
    suite = SuiteBenchmark(Path(folder), choose(engine))
    tasks = [task.id for split in Split for task in suite.tasks(split)]
    resolved, said = Counter(), {}
    for task in tasks:
        for name, grade in (await grade_cheats(suite, task)).items():
            resolved[name] += grade.verdict is Verdict.RESOLVED
            said.setdefault(name, Counter())[re.sub(r"\d+", "N", grade.reason)[:70]] += 1
            if (grade.verdict is Verdict.RESOLVED) != (name == "the fix"):
                print(f"{task}: {name}: {grade.verdict}: {grade.reason}", flush=True)
    for name, reasons in said.items():
        print(f"{name:<28} {resolved[name]:>3} of {len(tasks)} resolved; {reasons.most_common(1)[0][0]}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
