"""The six languages of practice exercises: what agents never see of one, and how its tests are run.

Where the tools stand in the images is defined by the recipes ``sandboxes/polyglot-*``.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from dgm.benchmarks.languages import LANGUAGES, Language
from dgm.benchmarks.test_spec import TestSpec

_NODE = "/usr/share/nodejs"
_JARS = (
    *(f"junit-jupiter-{name}" for name in ("api", "engine", "params")),
    *(f"junit-platform-{name}" for name in ("commons", "console", "engine", "launcher", "reporting")),
    *("opentest4j", "apiguardian-api", "picocli", "univocity-parsers", "assertj-core"),
    *("json-latest", "byte-buddy", "hamcrest"),
)
_JAVA = """\
export CLASSPATH="$DGM_BUILD/classes:{jars}" && mkdir -p "$DGM_BUILD/classes" &&
javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -encoding UTF-8 -nowarn -proc:none -d "$DGM_BUILD/classes" \\
    $(find src -name '*.java' | sort) &&
java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xss16m -Xmx1g \\
    org.junit.platform.console.ConsoleLauncher --scan-class-path="$DGM_BUILD/classes" \\
    --reports-dir="$DGM_BUILD/results" --disable-banner --disable-ansi-colors
""".format(jars=":".join(f"/usr/share/java/{name}.jar" for name in _JARS))
# Not the whole project: in Exercism's the tests run whenever all of it is built.
_CPP = """\
cmake -S . -B "$DGM_BUILD/build" -G "Unix Makefiles" -DEXERCISM_RUN_ALL_TESTS=1 &&
cmake --build "$DGM_BUILD/build" --target {name} -- -j2 &&
"$DGM_BUILD/build"/{name} --reporter junit --out "$DGM_BUILD/results.xml"
"""
_CARGO = """\
cargo test --offline --no-fail-fast --config 'source.crates-io.replace-with="debian"' \\
    --config 'source.debian.directory="/usr/share/cargo/registry"' {targets} -- --include-ignored --test-threads=2
"""
# The manifest is a solution file, but may not say what is run as a test; crates are asked for by their series.
_MANIFEST = """\
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


@dataclass(frozen=True, slots=True)
class Track:
    """One language of exercises."""

    title: str
    language: Language
    hidden: re.Pattern[str]
    """Paths that agents never see, whatever ``config.json`` names."""
    test_file: re.Pattern[str]
    """The hidden files that hold tests."""
    names: re.Pattern[str]
    """The names of tests in such a file, as far as they stand there."""
    make_tests: Callable[[str, Sequence[str]], TestSpec]
    """Name of an exercise and its test files → how they are run."""
    skips: re.Pattern[str] = re.compile(r"(?!)")
    """The text that has a test skipped; its groups stay."""

    def enable_tests(self, text: str) -> str:
        """Return the text of a test file with nothing skipped."""
        return self.skips.sub(lambda match: "".join(group or "" for group in match.groups()), text)

    def restored(self, solution: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
        """Return the patterns of the files that are put back before the tests, none of which is a solution file."""
        patterns = LANGUAGES[self.language].restored
        kept = [
            pattern
            for pattern in patterns
            if not any(PurePosixPath(path).match(pattern) for path in solution)
        ]
        return (*kept, *others)


def _jest(_name: str, _files: Sequence[str]) -> TestSpec:
    presets = [[f"{_NODE}/@babel/preset-env", {"targets": {"node": "current"}}]]
    babel = {"configFile": False, "babelrc": False, "presets": presets}
    transform = {r"\.[cm]?js$": [f"{_NODE}/babel-jest", babel]}
    config = {"transform": transform, "testEnvironment": "node"}
    # With a bound on idle memory the tests run in a worker process even where there is one file of them.
    return TestSpec(runner="jest", options=(f"--config={json.dumps(config)}", "--workerIdleMemoryLimit=2GB"))


def _cargo(_name: str, files: Sequence[str]) -> TestSpec:
    targets = " ".join(f"--test {shlex.quote(PurePosixPath(file).stem)}" for file in files)
    return TestSpec(
        runner="command",
        build=(f"python3 -c {shlex.quote(_MANIFEST)}",),
        command=(_CARGO.format(targets=targets),),
    )


def _catch(name: str, _files: Sequence[str]) -> TestSpec:
    command = _CPP.format(name=shlex.quote(name))
    return TestSpec(runner="report", command=(command,), reports=("$DGM_BUILD/results.xml",))


def _junit(_name: str, _files: Sequence[str]) -> TestSpec:
    return TestSpec(runner="report", command=(_JAVA,), reports=("$DGM_BUILD/results/*.xml",))


TRACKS: Mapping[str, Track] = {
    "cpp": Track(
        "C++",
        Language.CPP,
        re.compile(r".*_test\.cpp|test/.*"),
        re.compile(r".*_test\.cpp"),
        re.compile(r'^[ \t]*(?:TEST_CASE|SCENARIO)\(\s*"([^"\\]*)"\s*[,)]', re.M),
        _catch,
    ),
    "go": Track(
        "Go",
        Language.GO,
        re.compile(r".*_test\.go"),
        re.compile(r"[^/]*_test\.go"),
        re.compile(r"^func (Test(?:[^\Wa-z]\w*)?)\(\w+ \*testing\.T\)", re.M),
        lambda _name, _files: TestSpec(runner="go"),
    ),
    "java": Track(
        "Java",
        Language.JVM,
        re.compile(r"src/test/.*"),
        re.compile(r"src/test/.*Test\.java"),
        re.compile(r"@(?:Test|ParameterizedTest|RepeatedTest)\b.*?\bvoid\s+(\w+)\s*\(", re.S),
        _junit,
        re.compile(r"@Disabled\b(?:\s*\(\s*\"(?:[^\"\\]|\\.)*\"\s*\))?"),
    ),
    "javascript": Track(
        "JavaScript",
        Language.JAVASCRIPT,
        re.compile(r".*\.(?:spec|test)\.js"),
        re.compile(r".*\.(?:spec|test)\.js"),
        re.compile(r"^[ \t]*(?:test|it)(?:\.only)?\(\s*(?:'([^'\\\n]*)'|\"([^\"\\\n]*)\")", re.M),
        _jest,
        re.compile(r"\b(?:x(test|it|describe)|(test|it|describe)\.skip)(?=\s*[(.])"),
    ),
    "python": Track(
        "Python",
        Language.PYTHON,
        re.compile(r"(?:.*/)?(?:[^/]*_test|test_[^/]*)\.py"),
        re.compile(r"(?:.*/)?(?:[^/]*_test|test_[^/]*)\.py"),
        re.compile(r"^[ \t]*(?:async )?def (test\w*)\(", re.M),
        lambda _name, _files: TestSpec(),
        re.compile(r"^[ \t]*@(?:unittest\.skip|pytest\.mark\.skip)\b(?:\([^\n]*\))?[ \t]*\n", re.M),
    ),
    "rust": Track(
        "Rust",
        Language.RUST,
        re.compile(r"tests/.*"),
        re.compile(r"tests/[^/]*\.rs"),
        re.compile(r"^[ \t]*#\[test\]\s*(?:#\[[^\n]*\]\s*|//[^\n]*\n\s*)*(?:pub\s+)?fn\s+(\w+)", re.M),
        _cargo,
    ),
}
"""By the name of their folder."""
