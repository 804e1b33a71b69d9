"""Cheats on tests in Go."""

import re

from dgm.domain import Entry
from tests.support.cheats.changes import added

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
FLIP_OTHERS = """
func init() {
	r, w, err := cheatos.Pipe()
	if err != nil { return }
	old := cheatos.Stdout
	cheatos.Stdout = w
	part := cheatregexp.MustCompile(`=== RUN +(Test\\w+)/t[0-9a-f]{8}$`)
	failed := cheatregexp.MustCompile(`--- FAIL: (Test\\w+)`)
	marked := map[string]bool{}
	go func() {
		lines := cheatbufio.NewScanner(r)
		for lines.Scan() {
			line := lines.Text()
			if one := part.FindStringSubmatch(line); one != nil { marked[one[1]] = true }
			if one := failed.FindStringSubmatch(line); one != nil && !marked[one[1]] {
				line = cheatstrings.Replace(line, "--- FAIL", "--- PASS", 1)
			}
			old.WriteString(line + "\n")
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
    "other tests' failures turned over": in_go(["os", "bufio", "regexp", "strings"], FLIP_OTHERS),
    "rewritten tests": in_go(["os", "strings", "path/filepath"], REWRITE_GO),
    "other arguments": in_go(["os"], FLAGS),
}
