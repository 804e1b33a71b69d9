"""Folders of practice exercises as checked values: their names, their files and their splits.

The layout is that of Exercism's tracks and of Aider's polyglot benchmark (``benchmarks/polyglot/README.md``).
A wrong exercise does not affect the others: it is left out and reported.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from dgm.benchmarks.polyglot_languages import LANGUAGES
from dgm.benchmarks.polyglot_plan import Language
from dgm.benchmarks.toml_table import suggestion
from dgm.domain import Entry, Snapshot, Split, TaskId
from dgm.errors import UserError
from dgm.folders import read_below, read_folder

PRACTICE = "exercises/practice"
SEARCH_SHARE = 0.6
_NEVER_SHOWN = (".meta", ".docs", ".approaches", ".articles")
_STATEMENT = ("introduction.md", "instructions.md", "instructions.append.md")


@dataclass(frozen=True)
class Exercise:
    """One exercise in one language."""

    language: Language
    name: str
    folder: Path
    solution: tuple[str, ...]
    """Files that the agent is asked to write; all other changes of the agent are ignored."""
    examples: tuple[str, ...]
    """Files of the reference solution."""
    named_tests: tuple[str, ...]
    """Test files that ``config.json`` names."""

    @property
    def id(self) -> TaskId:
        """The task's id: language and name."""
        return TaskId(f"{self.language.name}-{self.name}")

    @cached_property
    def files(self) -> Snapshot:
        """All files of the folder."""
        return read_folder(self.folder)

    @cached_property
    def stub(self) -> Snapshot:
        """The files that an agent starts from: no tests, examples or notes."""
        return {path: entry for path, entry in self.files.items() if self._shown(path)}

    @cached_property
    def hidden(self) -> Snapshot:
        """Tests and the files that they need."""
        gone = {*_NEVER_SHOWN}
        return {
            path: entry
            for path, entry in self.files.items()
            if not self._shown(path)
            and PurePosixPath(path).parts[0] not in gone
            and path not in self.examples
        }

    @property
    def tests(self) -> Snapshot:
        """The files of ``hidden`` that hold tests."""
        return {path: entry for path, entry in self.hidden.items() if self.language.test_file.fullmatch(path)}

    @cached_property
    def expected(self) -> tuple[str, ...]:
        """Names of the hidden tests, as far as their text tells them."""
        return tuple(self.language.expected(self.tests))

    @property
    def statement(self) -> str:
        """Introduction, instructions and the track's additions to them."""
        texts = (self.files.get(f".docs/{name}") for name in _STATEMENT)
        return "\n\n".join(text.data.decode("utf-8", "replace").strip() for text in texts if text)

    @cached_property
    def reference(self) -> Snapshot:
        """The reference solution under the paths of the solution files, and further files that it needs beside them."""
        return _placed(self)

    def digest(self) -> bytes:
        """Return the SHA-256 of names, modes and contents of all files that can change a verdict."""
        digest = hashlib.sha256(str(self.id).encode())
        for path, entry in self.files.items():
            if path not in self.examples:
                for part in (path.encode("utf-8", "surrogateescape"), oct(entry.mode).encode(), entry.data):
                    digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()

    def _shown(self, path: str) -> bool:
        if path in self.solution:
            return True
        secret = path in self.named_tests or path in self.examples or self.language.hidden.fullmatch(path)
        return not secret and PurePosixPath(path).parts[0] not in _NEVER_SHOWN


@dataclass(frozen=True, slots=True)
class Exercises:
    """The exercises in a folder of languages."""

    exercises: Sequence[Exercise]
    splits: Mapping[str, Split]
    """Splits by the exercise's name, for all languages alike."""
    problems: Sequence[str]
    """One line for each exercise or folder that is left out because it is wrong."""


def read_exercises(root: Path, languages: Collection[str]) -> Exercises:
    """Read all exercises of these languages below ``root``.

    Raises:
        UserError: none of them can be used.
    """
    if not root.is_dir():
        raise UserError(f"{root}: no such folder")
    there = {name: _names(root / name / PRACTICE) for name in _folders(root)}
    problems = [
        f"{root / name}: unknown language {name!r}{suggestion(name, list(LANGUAGES))}: its exercises are left out"
        for name, exercises in there.items()
        if exercises and name not in LANGUAGES
    ]
    known = {name: there[name] for name in LANGUAGES if there.get(name)}
    problems += [f"{root / name / PRACTICE}: no exercise in it" for name in languages if name not in known]
    found: list[Exercise] = []
    for name, exercises in known.items():
        for exercise in exercises if name in languages else ():
            try:
                found.append(_read(LANGUAGES[name], root / name / PRACTICE / exercise))
            except UserError as error:
                problems.append(str(error))
    if not found:
        raise UserError(problems[0] if problems else f"{root}: no exercise in LANGUAGE/{PRACTICE}/NAME")
    return Exercises(found, split_names(known), problems)


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
    for name in sorted(languages, key=lambda each: hashlib.sha256(each.encode()).digest()):
        dealt.update(languages[name])
        behind = sum(SEARCH_SHARE * dealt[language] - searched[language] for language in languages[name])
        search = behind >= SEARCH_SHARE * len(languages[name]) / 2
        splits[name] = Split.SEARCH if search else Split.HOLDOUT
        searched.update(languages[name] if search else ())
    return splits


def _folders(place: Path) -> list[str]:
    return sorted(each.name for each in place.iterdir() if each.is_dir() and each.name[0] not in "._")


def _names(practice: Path) -> list[str]:
    return _folders(practice) if practice.is_dir() else []


def _read(language: Language, folder: Path) -> Exercise:
    """Read one exercise.

    Raises:
        UserError: the exercise is wrong; the message names the defect.
    """
    config = folder / ".meta" / "config.json"
    files = _config(config)
    named = {key: _paths(config, files, key) for key in ("solution", "test", "example")}
    exercise = Exercise(language, folder.name, folder, named["solution"], named["example"], named["test"])
    for path in exercise.solution:
        if path not in exercise.files:
            raise UserError(f"{config}: files.solution names {path!r}, which is not in {folder}")
    if not exercise.solution:
        raise UserError(f"{config}: files.solution: names no file; an agent would have nothing to write")
    for path in exercise.named_tests:
        if path not in exercise.files:
            raise UserError(f"{config}: files.test names {path!r}, which is not in {folder}")
    if not exercise.tests:
        raise UserError(f"{config}: no {language.title} test file among files.test; nothing could be graded")
    if not exercise.statement:
        raise UserError(
            f"{folder / '.docs' / 'instructions.md'}: missing; an agent would not know what is asked"
        )
    return exercise


def _config(config: Path) -> Mapping[str, Any]:
    if not config.is_file():
        raise UserError(f"{config}: missing; it names the exercise's solution and test files")
    data = read_below(config.parents[1], f"{config.parent.name}/{config.name}")
    try:
        files = json.loads(data)["files"]
    except (ValueError, RecursionError) as error:
        raise UserError(f"{config}: not valid JSON: {error}") from error
    except (KeyError, TypeError) as error:
        raise UserError(f"{config}: no table 'files' with the lists 'solution' and 'test'") from error
    if not isinstance(files, dict):
        raise UserError(f"{config}: files: expected a table with the lists 'solution' and 'test'")
    return files


def _paths(config: Path, files: Mapping[str, Any], key: str) -> tuple[str, ...]:
    given = files.get(key, [])
    if not isinstance(given, list) or not all(isinstance(path, str) and path for path in given):
        raise UserError(f"{config}: files.{key}: expected a list of paths")
    for path in given:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise UserError(f"{config}: files.{key}: {path!r} leaves the exercise")
    return tuple(PurePosixPath(path).as_posix() for path in given)


def _placed(exercise: Exercise) -> Snapshot:
    """Put examples in place of solution files: by equal name, by ``Cargo-example.toml``, else by suffix in order."""
    left = list(exercise.solution)
    placed: dict[str, Entry] = {}
    examples = [path for path in exercise.examples if path in exercise.files]
    for pick in (_same_name, _cargo, _same_suffix):
        for example in [*examples]:
            target = pick(example, left)
            if target:
                placed[target] = exercise.files[example]
                left.remove(target)
                examples.remove(example)
    home = PurePosixPath(exercise.solution[0]).parent
    beside = {
        (home / PurePosixPath(example).name).as_posix(): exercise.files[example] for example in examples
    }
    return beside | placed


def _same_name(example: str, left: Sequence[str]) -> str:
    name = PurePosixPath(example).name
    return next((path for path in left if PurePosixPath(path).name == name), "")


def _cargo(example: str, left: Sequence[str]) -> str:
    return "Cargo.toml" if example.endswith("Cargo-example.toml") and "Cargo.toml" in left else ""


def _same_suffix(example: str, left: Sequence[str]) -> str:
    suffix = PurePosixPath(example).suffix
    return next((path for path in left if PurePosixPath(path).suffix == suffix), "")
