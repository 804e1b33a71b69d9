"""Folders of practice exercises as checked values: their languages, their names, their files and their splits.

The layout is that of Exercism's tracks and of Aider's polyglot benchmark (``benchmarks/polyglot/README.md``).
A wrong exercise does not affect the others: it is left out and reported. Where the tools stand in the images is defined
by the recipes ``sandboxes/polyglot-*``.
"""

import hashlib
import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ValidationError

from dgm.benchmarks.grade import Exam
from dgm.benchmarks.grader_version import digest_files
from dgm.benchmarks.languages import LANGUAGES, Language
from dgm.benchmarks.suite_files import Limits
from dgm.benchmarks.test_spec import TestSpec
from dgm.benchmarks.toml_table import first_mistake, suggestion
from dgm.domain import Entry, Snapshot, Split, TaskId
from dgm.errors import UserError
from dgm.folders import read_below, read_folder

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


PRACTICE = "exercises/practice"
SEARCH_SHARE = 0.6
TIMEOUT_S, TESTS_S = 600.0, 480.0
"""Wall time of an agent, and of a build with its tests, in seconds."""
_NEVER_SHOWN = (".meta", ".docs", ".approaches", ".articles")
_STATEMENT = ("introduction.md", "instructions.md", "instructions.append.md")


def _inside(path: str) -> str:
    plain = PurePosixPath(path)
    if not path or plain.is_absolute() or ".." in plain.parts:
        raise ValueError(f"{path!r} leaves the exercise")
    return plain.as_posix()


Paths = tuple[Annotated[str, AfterValidator(_inside)], ...]


class Files(BaseModel):
    """The table ``files`` of an exercise's ``config.json``."""

    solution: Paths = ()
    """Files that the agent is asked to write."""
    test: Paths = ()
    example: Paths = ()
    """Files of the reference solution."""


class _Config(BaseModel):
    files: Files


@dataclass(frozen=True)
class Exercise:
    """One exercise in one language."""

    track: str
    name: str
    folder: Path
    named: Files

    @property
    def id(self) -> TaskId:
        """The task's id: language and name."""
        return TaskId(f"{self.track}-{self.name}")

    @property
    def language(self) -> Track:
        """Its language."""
        return TRACKS[self.track]

    @cached_property
    def files(self) -> Snapshot:
        """All files of the folder."""
        return read_folder(self.folder)

    @cached_property
    def stub(self) -> Snapshot:
        """The files that an agent starts from: no tests, examples or notes."""
        return {path: entry for path, entry in self.files.items() if self._is_shown(path)}

    @cached_property
    def hidden(self) -> Snapshot:
        """Tests, with nothing skipped, and the files that they need."""
        return {
            path: self._enable(path, entry)
            for path, entry in self.files.items()
            if not self._is_shown(path)
            and PurePosixPath(path).parts[0] not in _NEVER_SHOWN
            and path not in self.named.example
        }

    @property
    def tests(self) -> Sequence[str]:
        """The hidden files that hold tests."""
        return [path for path in self.hidden if self.language.test_file.fullmatch(path)]

    @cached_property
    def expected(self) -> Sequence[str]:
        """Names of the hidden tests, as far as their text tells them."""
        matches = (
            match for path in self.tests for match in self.language.names.finditer(_text(self.hidden[path]))
        )
        return list(dict.fromkeys(next(filter(None, match.groups()), "") for match in matches))

    @property
    def statement(self) -> str:
        """Introduction, instructions and the track's additions to them."""
        texts = (self.files.get(f".docs/{name}") for name in _STATEMENT)
        return "\n\n".join(_text(text).strip() for text in texts if text)

    @property
    def limits(self) -> Limits:
        """The image and the limits of its task."""
        return Limits(f"polyglot-{self.track}", f"/work/{self.name}", TIMEOUT_S, TESTS_S)

    @property
    def exam(self) -> Exam:
        """The inputs for grading a patch."""
        others = [path for path in self.stub if path not in self.named.solution]
        restored = self.language.restored(self.named.solution, others)
        tests = self.language.make_tests(self.name, self.tests)
        tests = replace(tests, restored=restored, limit_s=TESTS_S, cpus=2.0, memory_mb=3072, disk_mb=1536)
        return Exam(self.stub, self.hidden, tests, self.limits)

    @property
    def reference(self) -> Snapshot:
        """The reference solution in place of the solution files, and further files that it needs beside them.

        An example stands for the solution file of its name, ``Cargo-example.toml`` for ``Cargo.toml``, another for the
        next file of its suffix.
        """
        solution, placed = list(self.named.solution), dict[str, Entry]()
        examples = [path for path in self.named.example if path in self.files]
        for part in ("name", "suffix"):
            for example in [*examples]:
                wanted = PurePosixPath(example.replace("Cargo-example.toml", "Cargo.toml"))
                alike = (
                    path for path in solution if getattr(PurePosixPath(path), part) == getattr(wanted, part)
                )
                if target := next(alike, ""):
                    placed[target] = self.files[example]
                    solution.remove(target)
                    examples.remove(example)
        home = PurePosixPath(self.named.solution[0]).parent
        return {(home / PurePosixPath(path).name).as_posix(): self.files[path] for path in examples} | placed

    def digest(self) -> bytes:
        """Return the SHA-256 of names, modes and contents of all files that can change a verdict."""
        graded = [(path, entry) for path, entry in self.files.items() if path not in self.named.example]
        return bytes.fromhex(digest_files(graded, self.id))

    def _is_shown(self, path: str) -> bool:
        if path in self.named.solution:
            return True
        secret = path in (*self.named.test, *self.named.example) or self.language.hidden.fullmatch(path)
        return not secret and PurePosixPath(path).parts[0] not in _NEVER_SHOWN

    def _enable(self, path: str, entry: Entry) -> Entry:
        if not self.language.test_file.fullmatch(path):
            return entry
        return replace(
            entry, data=self.language.enable_tests(_text(entry)).encode("utf-8", "surrogateescape")
        )


@dataclass(frozen=True, slots=True)
class Exercises:
    """The exercises in a folder of languages."""

    exercises: Sequence[Exercise]
    splits: Mapping[str, Split]
    """Splits by the exercise's name, for all languages alike."""
    problems: Sequence[str]
    """One line for each exercise or folder that is left out because it is wrong."""


def read_exercises(root: Path, languages: Collection[str]) -> Exercises:
    """Read all exercises of these languages below ``root``, which may be the clone of one track.

    Raises:
        UserError: none of them can be used.
    """
    if not root.is_dir():
        raise UserError(f"{root}: no such folder")
    is_track = (root / PRACTICE).is_dir()
    folders = {_slug(root): root} if is_track else {name: root / name for name in _list_folders(root)}
    names = {name: _list_folders(folder / PRACTICE) for name, folder in folders.items()}
    known = {name: exercises for name, exercises in names.items() if name in TRACKS}
    problems = [
        f"{folders[name]}: unknown language {name!r}{suggestion(name, list(TRACKS))}"
        for name in names
        if name not in TRACKS and names[name]
    ]
    exercises: list[Exercise] = []
    for language in sorted(languages):
        if not is_track and not known.get(language):
            problems.append(f"{root / language / PRACTICE}: no exercise in it")
        for name in known.get(language, ()):
            try:
                exercises.append(_read(language, folders[language] / PRACTICE / name))
            except UserError as error:
                problems.append(str(error))
    if not exercises:
        raise UserError(
            problems[0] if problems else f"{root}: no exercise of {' or '.join(sorted(languages))} in it"
        )
    return Exercises(exercises, split_names(known), problems)


def split_names(known: Mapping[str, Iterable[str]]) -> Mapping[str, Split]:
    """Assign every name to one split, about 60 % of each language's names to ``search``.

    Names are assigned in the order of their hashes, each to the split in which its languages are further behind. The
    result depends only on the set of exercises.
    """
    languages: dict[str, list[str]] = defaultdict(list)
    for language, names in known.items():
        for name in names:
            languages[name].append(language)
    dealt, searched = Counter[str](), Counter[str]()
    splits: dict[str, Split] = {}
    for name in sorted(languages, key=lambda name: hashlib.sha256(name.encode()).digest()):
        dealt.update(languages[name])
        behind = sum(SEARCH_SHARE * dealt[language] - searched[language] for language in languages[name])
        search = behind >= SEARCH_SHARE * len(languages[name]) / 2
        splits[name] = Split.SEARCH if search else Split.HOLDOUT
        searched.update(languages[name] if search else ())
    return splits


def _list_folders(place: Path) -> list[str]:
    entries = place.iterdir() if place.is_dir() else ()
    return sorted(entry.name for entry in entries if entry.is_dir() and entry.name[0] not in "._")


def _slug(root: Path) -> str:
    """Return the language of a track, as its ``config.json`` says; else the name of its folder."""
    try:
        return str(json.loads(read_below(root, "config.json"))["slug"])
    except (UserError, OSError, ValueError, RecursionError, KeyError, TypeError):
        return root.resolve().name


def _read(language: str, folder: Path) -> Exercise:
    """Read one exercise.

    Raises:
        UserError: the exercise is wrong; the message names the defect.
    """
    config = folder / ".meta" / "config.json"
    if not config.is_file():
        raise UserError(f"{config}: missing; it names the exercise's solution and test files")
    try:
        files = _Config.model_validate_json(read_below(folder, ".meta/config.json")).files
    except ValidationError as error:
        key, reason, _ = first_mistake(error)
        raise UserError(f"{config}: {key}: {reason}") from error
    exercise = Exercise(language, folder.name, folder, files)
    if not files.solution:
        raise UserError(f"{config}: files.solution: names no file; an agent would have nothing to write")
    for key, paths in (("solution", files.solution), ("test", files.test)):
        for path in paths:
            if path not in exercise.files:
                raise UserError(f"{config}: files.{key} names {path!r}, which is not in {folder}")
    if not exercise.tests:
        title = exercise.language.title
        raise UserError(f"{config}: no {title} test file among files.test; nothing could be graded")
    if not exercise.statement:
        raise UserError(
            f"{folder / '.docs' / 'instructions.md'}: missing; an agent would not know what is asked"
        )
    return exercise


def _text(entry: Entry) -> str:
    return entry.data.decode("utf-8", "surrogateescape")
