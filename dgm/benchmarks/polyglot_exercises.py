"""Folders of practice exercises as checked values: their names, their files and their splits.

The layout is that of Exercism's tracks and of Aider's polyglot benchmark (``benchmarks/polyglot/README.md``).
A wrong exercise does not affect the others: it is left out and reported.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ValidationError

from dgm.benchmarks.grade import Exam
from dgm.benchmarks.polyglot_tracks import TRACKS, Track
from dgm.benchmarks.suite_files import Limits
from dgm.benchmarks.toml_table import suggestion
from dgm.domain import Entry, Snapshot, Split, TaskId
from dgm.errors import UserError
from dgm.folders import read_below, read_folder

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
        digest = hashlib.sha256(str(self.id).encode())
        for path, entry in self.files.items():
            if path not in self.named.example:
                for part in (path.encode("utf-8", "surrogateescape"), oct(entry.mode).encode(), entry.data):
                    digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()

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
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        raise UserError(f"{config}: {key}: {first['msg'].removeprefix('Value error, ')}") from error
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
