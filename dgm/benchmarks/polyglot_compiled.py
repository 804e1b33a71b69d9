"""Hidden tests in C++, Go, Java and Rust: built first, then run under the tool chain's own test framework.

Where the tools stand in the images is said by the recipes ``sandboxes/polyglot-*``.
"""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from dgm.benchmarks.polyglot_plan import BUILD_S, TESTS_S, Plan, Room, Step, entry, found, text
from dgm.benchmarks.polyglot_reports import CONTROL
from dgm.domain import Snapshot

_CPP_TEST = re.compile(
    r'^([ \t]*(?:TEST_CASE|SCENARIO|TEMPLATE_TEST_CASE)\(\s*)"((?:[^"\\]|\\.)*)"', re.MULTILINE
)
_CPP_PLAIN = re.compile(r'^[ \t]*(TEST_CASE|SCENARIO)\(\s*"([^"\\]*)"\s*[,)]', re.MULTILINE)
_GO_TEST = re.compile(r"^func (Test(?:[^\Wa-z]\w*)?)\(\w+ \*testing\.T\)", re.MULTILINE)
_GO_PACKAGE = re.compile(r"^package (\w+)", re.MULTILINE)
_GO_BUILD = (
    'mkdir -p "$GOCACHE" && if [ -d /opt/dgm/go-cache ]; then cp -rs /opt/dgm/go-cache/. "$GOCACHE"; fi;'
    ' exec go test -c -o "$1" .'
)
_RUST_TEST = re.compile(
    r"^[ \t]*#\[test\]\s*(?:#\[[^\n]*\]\s*|//[^\n]*\n\s*)*(?:pub\s+)?fn\s+(\w+)", re.MULTILINE
)
_RUST_CRATES = "/usr/share/cargo/registry"
# The manifest is a solution file, but may not say what is run as a test; crates are asked for by their series.
_RUST_MANIFEST = """
import pathlib, sys, tomllib
sys.dont_write_bytecode = True
sys.path[:0] = ["/opt/dgm/tools"]
from chains.rust import relaxed
file = pathlib.Path("Cargo.toml")
text = file.read_text("utf-8")
try:
    given = tomllib.loads(text)
except tomllib.TOMLDecodeError as error:
    sys.exit(f"error: Cargo.toml: {error}")
package = given.get("package", {})
refused = [key for key in ("test", "patch", "replace", "build-dependencies") if key in given]
refused += [f"package.{key}" for key in ("build", "links", "autotests") if key in package]
if refused:
    sys.exit(f"error: Cargo.toml: {refused[0]} is not allowed in a solution")
file.write_text(relaxed(text), "utf-8")
pathlib.Path("Cargo.lock").unlink(missing_ok=True)
"""
_JAVA_TESTS = PurePosixPath("src/test/java")
_JAVA_TEST = re.compile(r"@(?:Test|ParameterizedTest|RepeatedTest)\b.*?\bvoid\s+(\w+)\s*\(", re.DOTALL)
_JAVA_DISABLED = re.compile(r"@Disabled\b(?:\s*\(\s*\"(?:[^\"\\]|\\.)*\"\s*\))?")
_JAVA_BUILD = 'mkdir -p "$1" && exec javac {} -d "$1" -cp "$2" $(find src -name "*.java" | sort)'.format(
    "-J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -encoding UTF-8 -nowarn -proc:none"
)
_JAVA_JARS = (
    *("junit-jupiter-api", "junit-jupiter-engine", "junit-jupiter-params", "junit-platform-commons"),
    *(
        "junit-platform-console",
        "junit-platform-engine",
        "junit-platform-launcher",
        "junit-platform-reporting",
    ),
    *("opentest4j", "apiguardian-api", "picocli", "univocity-parsers", "assertj-core"),
    *("json-latest", "byte-buddy", "hamcrest"),
)
_JAVA_PATH = ":".join(f"/usr/share/java/{name}.jar" for name in _JAVA_JARS)
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xss16m", "-Xmx1g")


def cpp_names(tests: Snapshot) -> Sequence[str]:
    """The names of Catch's test cases that are one plain literal."""
    cases = (each for file in tests.values() for each in _CPP_PLAIN.findall(text(file)))
    return [f"Scenario: {name}" if macro == "SCENARIO" else name for macro, name in cases]


def cpp_plan(room: Room, tests: Snapshot) -> Plan:
    """Names carry the mark; the exercise's own CMake project builds the program, and Catch writes XML."""
    ready = {name: entry(_CPP_TEST.sub(rf'\1"{room.mark} \2"', text(file))) for name, file in tests.items()}
    first = min(tests)
    control = f'\nTEST_CASE("{room.mark}{CONTROL}") {{ REQUIRE(1 == 2); }}\n'
    ready[first] = entry(text(ready[first]) + control)
    build, results = f"{room.scratch}/build", f"{room.scratch}/results.xml"
    configure = ["cmake", "-S", ".", "-B", build, "-G", "Unix Makefiles", "-DEXERCISM_RUN_ALL_TESTS=1"]
    steps = [
        Step("build", configure, BUILD_S),
        # Not the whole project: in Exercism's the tests run, unmeasured, whenever all of it is built.
        Step("build", ["cmake", "--build", build, "--target", room.name, "--", "-j2"], BUILD_S),
        Step("tests", [f"{build}/{room.name}", "-r", "xml", "-o", results], TESTS_S),
    ]
    return Plan(ready, steps, results)


def go_names(tests: Snapshot) -> Sequence[str]:
    """The names of the test functions."""
    return found(_GO_TEST, tests)


def go_plan(room: Room, tests: Snapshot) -> Plan:
    """Names carry the mark; the program that ``go test`` would run is built and run by itself."""
    names = "|".join(re.escape(name) for name in go_names(tests)) or "(?!)"
    marked = re.compile(rf"\b({names})\b")
    ready = {name: entry(marked.sub(rf"\1_{room.mark}", text(file))) for name, file in tests.items()}
    package = next(iter(found(_GO_PACKAGE, tests)), "main")
    ready[f"{room.mark}_test.go"] = entry(
        f'package {package}\n\nimport "testing"\n\n'
        f'func TestC_{room.mark}{CONTROL}(t *testing.T) {{ t.Error("must fail") }}\n'
    )
    program = f"{room.scratch}/tests"
    settings = {
        "HOME": room.scratch,
        "GOCACHE": f"{room.scratch}/cache",
        "GOPATH": f"{room.scratch}/go",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "GOTELEMETRY": "off",
        "GOFLAGS": "-buildvcs=false",
        "CGO_ENABLED": "0",
    }
    steps = [
        Step("build", ["sh", "-c", _GO_BUILD, "sh", program], BUILD_S, settings),
        Step("tests", [program, "-test.v=test2json", "-test.paniconexit0"], TESTS_S),
    ]
    return Plan(ready, steps)


def rust_names(tests: Snapshot) -> Sequence[str]:
    """The names of the test functions, but those that macros make, and none of a file that depends on features."""
    plain = {name: file for name, file in tests.items() if "cfg(" not in text(file)}
    return found(_RUST_TEST, plain)


def rust_plan(room: Room, tests: Snapshot) -> Plan:
    """Each file becomes a module that has the mark for a name; libtest writes JSON."""
    ready = {
        name: entry(
            f"mod {room.mark} {{\n{text(file)}\n"
            f"#[test]\nfn {room.mark}{CONTROL}() {{ assert_eq!(1, 2); }}\n}}\n"
        )
        for name, file in tests.items()
    }
    targets = [word for name in sorted(tests) for word in ("--test", Path(name).stem)]
    settings = {
        "CARGO_HOME": f"{room.scratch}/cargo",
        "CARGO_TARGET_DIR": f"{room.scratch}/target",
        "CARGO_TERM_COLOR": "never",
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }
    crates = ["--config", 'source.crates-io.replace-with="debian"']
    crates += ["--config", f'source.debian.directory="{_RUST_CRATES}"']
    # --no-fail-fast: the control fails in every file, and the next one is to run all the same.
    cargo = ["cargo", "test", "--offline", *crates, "--no-fail-fast", *targets]
    run = ["--include-ignored", "--test-threads=2", "-Z", "unstable-options", "--format", "json"]
    steps = [
        Step("build", ["python3", "-c", _RUST_MANIFEST], BUILD_S),
        Step("build", [*cargo, "--no-run"], BUILD_S, settings),
        # libtest's JSON is not stable yet; the variable lets a stable one write it.
        Step("tests", [*cargo, "--", *run], TESTS_S, {**settings, "RUSTC_BOOTSTRAP": "1"}),
    ]
    return Plan(ready, steps)


def java_names(tests: Snapshot) -> Sequence[str]:
    """The names of the test methods."""
    return found(_JAVA_TEST, tests)


def java_plan(room: Room, tests: Snapshot) -> Plan:
    """The control is a class of its own; JUnit's console launcher writes XML."""
    ready = {name: entry(_JAVA_DISABLED.sub("", text(file))) for name, file in tests.items()}
    control = f"C{room.mark}{CONTROL}"
    ready[f"{_JAVA_TESTS / control}.java"] = entry(
        f"class {control} {{\n  @org.junit.jupiter.api.Test\n"
        "  void fails() { org.junit.jupiter.api.Assertions.assertEquals(1, 2); }\n}\n"
    )
    classes, results = f"{room.scratch}/classes", f"{room.scratch}/results"
    run = ["java", *_JVM, "-cp", f"{classes}:{_JAVA_PATH}", "org.junit.platform.console.ConsoleLauncher"]
    run += [f"--reports-dir={results}", "--details=none", "--disable-banner", "--disable-ansi-colors"]
    run += [f"--select-class={_java_class(name)}" for name in sorted(ready)]
    steps = [
        Step("build", ["sh", "-c", _JAVA_BUILD, "sh", classes, _JAVA_PATH], BUILD_S),
        Step("tests", run, TESTS_S),
    ]
    return Plan(ready, steps, results)


def _java_class(file: str) -> str:
    path = PurePosixPath(file).with_suffix("")
    inside = path.relative_to(_JAVA_TESTS) if _JAVA_TESTS in path.parents else PurePosixPath(path.name)
    return ".".join(inside.parts)
