"""Tool-chain images: each runs a tiny exercise of its language as graded code is run, without a network.

An image that is not built is built only with DGM_BUILD_POLYGLOT=1, for that takes minutes each.
"""

import os

import pytest

from dgm.domain import Entry
from dgm.sandboxes import recipes
from dgm.sandboxes.docker import DockerEngine
from tests.docker.conftest import RUN
from tests.docker.exercises import ALL_CRATES, EXERCISES, Exercise

pytestmark = [pytest.mark.docker, pytest.mark.sandbox, pytest.mark.minutes]

LANGUAGES = sorted(EXERCISES)


@pytest.fixture
def run_tests(engine, runner):
    """Runs an exercise's tests in a fresh sandbox; gives the exit code and the output's last line."""

    def run(language, exercise: Exercise, solution):
        name = f"polyglot-{language}"
        _require(engine, name)
        recipe = recipes.load(name)
        files = {**exercise.files, exercise.solution: solution}

        async def work(sandbox):
            entries = {path: Entry(text.encode()) for path, text in files.items()}
            await sandbox.put(entries, "/work/any-name")
            before = await sandbox.get("/work", limit_bytes=10_000_000)
            command = ["/opt/dgm/tools/run-tests", *exercise.tests]
            done = await sandbox.exec(command, timeout_s=240, cwd="/work/any-name")
            assert await sandbox.get("/work", limit_bytes=10_000_000) == before
            left = await sandbox.exec(["sh", "-c", "ls -A /tmp"], timeout_s=20)
            assert left.output == b""
            return done

        async def opened():
            async with engine.open(recipe.spec({"dgm.run": RUN})) as sandbox:
                return await work(sandbox)

        done = runner.run(opened())
        output = done.output.decode("utf-8", "replace")
        return done.exit_code, output.rstrip().rpartition("\n")[2], output

    return run


def _require(engine, name):
    if not isinstance(engine, DockerEngine):
        pytest.skip("NOT RUN with bubblewrap: what the host offers is not what the recipe says")
    if os.environ.get("DGM_BUILD_POLYGLOT") == "1":
        engine.build(name)
    elif recipes.load(name).tag not in engine.task_images.list_recipes():
        pytest.skip(f"NOT RUN: the image is not built: dgm doctor --build {name}, or DGM_BUILD_POLYGLOT=1")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_right_solution_passes(language, run_tests):
    exercise = EXERCISES[language]
    code, last, output = run_tests(language, exercise, exercise.right)
    assert (code, last) == (0, "run-tests: 2 passed"), output


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wrong_solution_fails(language, run_tests):
    exercise = EXERCISES[language]
    code, last, output = run_tests(language, exercise, exercise.wrong)
    assert (code, last) == (1, "run-tests: 1 of 2 failed"), output


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_does_not_build_fails(language, run_tests):
    exercise = EXERCISES[language]
    code, _, output = run_tests(language, exercise, "£ is no code")
    assert code == 1, output


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_solution_that_ends_the_process_with_success_fails(language, run_tests):
    exercise = EXERCISES[language]
    code, _, output = run_tests(language, exercise, exercise.ending)
    assert code == 1, output


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wrong_use_says_nothing_of_the_solution(language, run_tests):
    exercise = EXERCISES[language]
    code, last, output = run_tests(language, exercise.with_tests("gone.py"), exercise.right)
    assert (code, last) == (2, "run-tests: gone.py: not a file below /work/any-name"), output


def test_tools_stand_in_the_sandbox_whichever_engine_opens_it(engine, runner):
    async def work():
        async with engine.open(recipes.load("polyglot").spec({"dgm.run": RUN})) as sandbox:
            return await sandbox.exec(["/opt/dgm/tools/run-tests"], timeout_s=60)

    done = runner.run(work())
    assert (done.exit_code, done.output) == (2, b"run-tests: usage: run-tests TEST_FILE...\n")


def test_every_crate_is_there_with_all_that_it_stands_on(run_tests):
    code, last, output = run_tests("rust", ALL_CRATES, ALL_CRATES.right)
    assert (code, last) == (0, "run-tests: 1 passed"), output
