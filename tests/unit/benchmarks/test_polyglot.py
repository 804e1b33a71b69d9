"""Practice exercises: what is read, what agents see, which split, which prompt, which fault is told how."""

import json
import logging
import shutil
from collections import Counter

import pytest

from dgm.benchmarks.formats import BenchmarkContext
from dgm.benchmarks.polyglot import PolyglotBenchmark, open_polyglot, passing_stubs, require_recipe
from dgm.benchmarks.polyglot_exercises import TRACKS as LANGUAGES
from dgm.benchmarks.polyglot_exercises import read_exercises, split_names
from dgm.config import BenchmarksSettings, PolyglotSettings
from dgm.domain import Split, TaskId, Verdict
from dgm.errors import UserError
from dgm.paths import asset
from dgm.protocols import Grade
from tests.support.suite_on_disk import NoEngine

SHIPPED = asset("benchmarks", "polyglot")
PRACTICE = "python/exercises/practice"
TASK = TaskId("python-toll-road")


@pytest.fixture
def folder(tmp_path):
    """The shipped Python exercises, to be spoilt."""
    shutil.copytree(SHIPPED / "python", tmp_path / "python")
    return tmp_path


def opened(folder, **settings):
    return PolyglotBenchmark(folder, NoEngine(), PolyglotSettings(languages=("python",), **settings))


def configure(folder, name, change):
    config = folder / PRACTICE / name / ".meta" / "config.json"
    record = json.loads(config.read_text())
    change(record["files"])
    config.write_text(json.dumps(record))


def only_problem(folder):
    (problem,) = opened(folder).problems
    return problem


# What is shipped and what agents see


def test_shipped_exercises_are_three_a_language():
    found = read_exercises(SHIPPED, LANGUAGES)
    assert found.problems == []
    assert Counter(each.track for each in found.exercises) == dict.fromkeys(LANGUAGES, 3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_agents_see_no_test_no_example_and_no_notes(language):
    for exercise in read_exercises(SHIPPED, (language,)).exercises:
        assert set(exercise.named.solution) <= set(exercise.stub)
        assert exercise.tests
        assert exercise.expected
        hidden = {entry.data for path, entry in exercise.files.items() if path not in exercise.stub}
        assert not hidden & {entry.data for entry in exercise.stub.values()}
        assert not [path for path in exercise.stub if "test" in path.lower() or path.startswith(".")]


def test_cases_of_go_are_hidden_though_they_are_no_test_file():
    (exercise,) = [each for each in read_exercises(SHIPPED, ("go",)).exercises if each.name == "luggage-tag"]
    assert "cases_test.go" in exercise.hidden
    assert "cases_test.go" not in exercise.stub


def test_reference_stands_under_the_names_of_the_solution():
    for exercise in read_exercises(SHIPPED, LANGUAGES).exercises:
        changed = set(exercise.reference)
        assert changed & set(exercise.named.solution)
        extra = {path.rpartition("/")[2] for path in changed - set(exercise.named.solution)}
        assert extra == ({"Turns.java"} if exercise.id == "java-tide-table" else set())


def test_prompt_joins_the_documents_and_names_the_files():
    task = opened(SHIPPED).task(TASK)
    assert task.prompt.index("# Introduction") < task.prompt.index("# Instructions\n")
    assert task.prompt.index("# Instructions\n") < task.prompt.index("# Instructions append")
    assert "Write your solution into `toll_road.py`" in task.prompt
    assert (task.image, task.workdir, task.timeout_s, task.tags) == (
        "polyglot-python",
        "/work/toll-road",
        600,
        ("python",),
    )


def test_unknown_task_is_told_with_a_suggestion():
    with pytest.raises(UserError, match="did you mean 'python-toll-road'"):
        opened(SHIPPED).task(TaskId("python-tollroad"))


# Splits


def test_an_exercise_is_in_one_split_in_all_languages():
    found = PolyglotBenchmark(SHIPPED, NoEngine())
    splits = {split: {task.id.partition("-")[2] for task in found.tasks(split)} for split in Split}
    assert not splits[Split.SEARCH] & splits[Split.HOLDOUT]
    assert splits[Split.PROMOTION] == set()


def test_about_sixty_percent_of_each_language_are_searched_on():
    known = {
        language: [f"exercise-{n}" for n in range(100) if (n * 7 + place) % 3]
        for place, language in enumerate(LANGUAGES)
    }
    splits = split_names(known)
    for names in known.values():
        share = sum(splits[name] is Split.SEARCH for name in names) / len(names)
        assert 0.5 < share < 0.7


def test_choosing_fewer_languages_moves_no_exercise():
    whole, part = read_exercises(SHIPPED, LANGUAGES), read_exercises(SHIPPED, ("go",))
    assert whole.splits == part.splits


# What is wrong is told, and hides nothing else


def test_an_exercise_without_config_is_left_out_and_told(folder, caplog):
    (folder / PRACTICE / "tide-table" / ".meta" / "config.json").unlink()
    with caplog.at_level(logging.WARNING):
        found = opened(folder)
    assert [task.id for split in Split for task in found.tasks(split)] == [TASK, "python-luggage-tag"]
    (problem,) = found.problems
    assert "tide-table/.meta/config.json: missing" in problem
    assert problem in caplog.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda files: files["solution"].append("gone.py"),
            "files.solution names 'gone.py', which is not in",
        ),
        (
            lambda files: files["test"].append("gone_test.py"),
            "files.test names 'gone_test.py', which is not in",
        ),
        (lambda files: files.update(solution=[]), "files.solution: names no file"),
        (lambda files: files.update(solution="x.py"), "files.solution: "),
        (lambda files: files.update(test=["../x.py"]), "files.test: '../x.py' leaves the exercise"),
        (lambda files: files.update(solution=["/etc/passwd"]), "'/etc/passwd' leaves the exercise"),
    ],
)
def test_a_wrong_config_is_told_with_file_and_key(folder, change, said):
    configure(folder, "tide-table", change)
    problem = only_problem(folder)
    assert said in problem
    assert "tide-table/.meta/config.json: " in problem
    assert "\n" not in problem


@pytest.mark.parametrize("text", ["{", "[]", '{"files": []}', '"x"', '{"files": 1}', "\0", "[" * 100_000])
def test_a_config_that_is_none_is_told(folder, text):
    (folder / PRACTICE / "tide-table" / ".meta" / "config.json").write_text(text)
    assert "tide-table/.meta/config.json: " in only_problem(folder)


def test_an_exercise_without_tests_is_told(folder):
    configure(folder, "tide-table", lambda files: files.update(test=[]))
    (folder / PRACTICE / "tide-table" / "tide_table_test.py").unlink()
    assert "no Python test file" in only_problem(folder)


def test_an_exercise_without_instructions_is_told(folder):
    shutil.rmtree(folder / PRACTICE / "tide-table" / ".docs")
    assert "instructions.md: missing" in only_problem(folder)


def test_an_unknown_language_is_told_with_a_suggestion(folder):
    shutil.copytree(folder / "python", folder / "pyton")
    assert "unknown language 'pyton' (did you mean 'python'?)" in only_problem(folder)


def test_a_chosen_language_without_exercises_is_told(folder):
    found = PolyglotBenchmark(folder, NoEngine(), PolyglotSettings(languages=("python", "go")))
    assert found.problems == [f"{folder / 'go/exercises/practice'}: no exercise in it"]


def test_a_folder_without_exercises_is_refused(tmp_path):
    with pytest.raises(UserError, match="no exercise in it"):
        opened(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        opened(tmp_path / "gone")


def test_the_clone_of_one_track_is_read(folder):
    track = (folder / "python").rename(folder / "clone")
    (track / "config.json").write_text('{"language": "Python", "slug": "python"}')
    assert opened(track).task(TASK).tags == ("python",)
    (track / "config.json").write_text('{"slug": "pyton"}')
    with pytest.raises(UserError, match=r"unknown language 'pyton' \(did you mean 'python'\?\)"):
        opened(track)


# Stubs that pass


def test_known_passing_stubs_are_left_out_unless_they_are_wanted(folder):
    (folder / "passing-stubs.txt").write_text("# mine\npython tide-table  # refactoring\n")
    assert "python-tide-table" not in [t.id for split in Split for t in opened(folder).tasks(split)]
    assert opened(folder).passing_stubs == ["python-tide-table"]
    kept = opened(folder, passing_stubs=True)
    assert kept.task(TaskId("python-tide-table"))
    assert kept.version != opened(folder).version


def test_a_wrong_line_of_the_list_is_told(folder):
    (folder / "passing-stubs.txt").write_text("\npyton tide-table\n")
    with pytest.raises(UserError, match=r"passing-stubs.txt:2: 'pyton tide-table': expected a language"):
        passing_stubs(folder)


# Version


def test_version_is_of_what_can_change_a_verdict(folder):
    before = opened(folder).version
    example = folder / PRACTICE / "tide-table" / ".meta" / "example.py"
    example.write_text(example.read_text() + "\n")
    assert opened(folder).version == before
    assert opened(folder, attempts=2).version != before
    tests = folder / PRACTICE / "tide-table" / "tide_table_test.py"
    tests.write_text(tests.read_text() + "\n")
    assert opened(folder).version != before


def test_version_follows_the_splits(folder):
    before = opened(folder)
    searched = before.tasks(Split.SEARCH)
    for path in sorted((folder / PRACTICE).iterdir()):
        (folder / "go" / "exercises" / "practice" / path.name).mkdir(parents=True)
        after = opened(folder)
        assert (after.version == before.version) is (after.tasks(Split.SEARCH) == searched)
    for number in range(40):
        (folder / PRACTICE / f"more-{number}").mkdir()
        after = opened(folder)
        if after.tasks(Split.SEARCH) != searched:
            break
    assert after.version != before.version


# A second try


def test_one_attempt_is_all_by_default():
    grade = Grade(Verdict.UNRESOLVED, "1 of 2 tests fail: a", 0.5, log=b"FAILED a\nnot 3\n")
    assert opened(SHIPPED).again(TASK, grade, 1) == ""


def test_a_second_try_sees_what_the_tests_said():
    found = opened(SHIPPED, attempts=2)
    grade = Grade(Verdict.UNRESOLVED, "1 of 2 tests fail: a", 0.5, log=b"FAILED a\nnot 3\n" + b"x" * 100_000)
    problem = found.again(TASK, grade, 1)
    assert problem.startswith(found.task(TASK).prompt)
    assert "The hidden tests were run on it: 1 of 2 tests fail: a." in problem
    assert "FAILED a\nnot 3\n" in problem
    assert len(problem) < 20_000
    assert found.again(TASK, grade, 2) == ""
    assert found.again(TASK, Grade(Verdict.RESOLVED, "all 2 tests pass", 1.0), 1) == ""


# Opening by name


def test_shipped_exercises_open_without_a_source():
    found = open_polyglot(BenchmarkContext("polyglot:", NoEngine(), BenchmarksSettings()))
    assert sum(len(found.tasks(split)) for split in Split) == 18


def test_a_language_without_a_recipe_is_told(tmp_path):
    with pytest.raises(
        UserError, match=r"no image polyglot-python: there is no .*polyglot-python/sandbox\.toml"
    ):
        require_recipe("polyglot-python", tmp_path)
