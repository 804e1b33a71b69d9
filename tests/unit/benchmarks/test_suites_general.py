"""Tasks with a folder, an image and a test command of their own: what agents see, and how mistakes are told."""

import re
import shutil
from pathlib import Path

import pytest

import dgm
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.opening import check_images
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.consents import ConsentNeeded
from dgm.domain import Split, TaskId
from dgm.errors import UserError
from dgm.protocols import InImage
from tests.support.suite_on_disk import NoEngine

HANDMADE = Path(__file__).parents[2] / "e2e" / "suites" / "handmade"
SLUG = TaskId("slugs-keep-their-signs")
WORDS = TaskId("short-words-are-lost")


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(HANDMADE, tmp_path / "handmade")


def opened(folder):
    return SuiteBenchmark(folder, NoEngine())


def edit(folder, task, old, new):
    file = folder / "tasks" / task / "task.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


@pytest.mark.starts_processes
def test_an_agent_sees_the_problem_the_workspace_and_nothing_else(folder):
    suite = opened(folder)
    assert [task.id for task in suite.tasks(Split.HOLDOUT)] == [SLUG]
    assert suite.task(SLUG).prompt.startswith("# Slugs")
    assert suite.task(SLUG).tags == ("python",)
    assert list(suite.workspace(SLUG)) == ["slug.py"]
    assert suite.task(WORDS).tags == ("wordcount", "python")
    assert b"len(word) > least" in suite.workspace(WORDS)["wordcount.py"].data


def test_instruction_md_is_a_problem_too(folder):
    assert opened(folder).task(TaskId("total-leaves-out-the-last")).prompt.startswith("# The last number")


@pytest.mark.parametrize(
    ("task", "old", "new", "message"),
    [
        (
            SLUG,
            "result =",
            "reslut =",
            r"task\.toml:6: tests\.reslut: unknown key \(did you mean 'result'\?\)",
        ),
        (SLUG, '"reward"', '"rewrad"', r"task\.toml:6: tests\.result: 'rewrad'.*did you mean 'reward'"),
        (SLUG, "[tests]", "[test]", r"task\.toml:4: test: unknown key \(did you mean 'tests'\?\)"),
        (SLUG, "threshold = 0.75", "threshold = 0", r"task\.toml:7: tests\.threshold: 0.0 must be above 0"),
        (SLUG, 'result = "reward"\n', "", r"tests\.threshold: is of no use without result = \"reward\""),
        (
            SLUG,
            "/tests/check.py",
            "/tests/chek.py",
            r"task\.toml:5: tests\.command: '/tests/chek\.py': there is no",
        ),
        (SLUG, "/tests/check.py", "tests/check.py", r"is found under '/tests/check\.py' when it runs"),
        (SLUG, '["python3", "/tests/check.py"]', "[]", r"tests\.command: names no program"),
        (SLUG, '["python3", "/tests/check.py"]', '"x"', r"tests\.command: 'x' is not a list"),
        (SLUG, "[tests]", "[tests]\nmemory_mb = 1.5", r"tests\.memory_mb: 1\.5 is not a whole number"),
        (
            SLUG,
            "[tests]",
            '[tests]\nenv = { "A B" = "x" }',
            r"tests\.env: A B = 'x' is not a name and a text",
        ),
        (SLUG, "[tests]", 'workdir = "/app"\n[tests]', r"workdir: '/app' is not below /work"),
        (SLUG, "[tests]", 'repo = "wordcount"\n[tests]', r"repo: the task has a folder workspace/ too"),
        (SLUG, "[tests]", "fail_to_pass = []\n[tests]", r"fail_to_pass: the task has a table \[tests\] too"),
        (
            WORDS,
            'repo = "wordcount"',
            'repo = "wordcuont"',
            r"task\.toml:2: repo: .*did you mean 'wordcount'",
        ),
        (WORDS, 'repo = "wordcount"\n', "", r"repo: missing; expected a text"),
    ],
)
def test_mistake_names_file_line_key_and_remedy(folder, task, old, new, message):
    edit(folder, task, old, new)
    with pytest.raises(UserError, match=message):
        opened(folder)


def test_task_without_anything_to_work_on_says_what_could_be_given(folder):
    shutil.rmtree(folder / "tasks" / SLUG / "workspace")
    with pytest.raises(
        UserError, match=r"slugs-keep-their-signs: nothing to work on: give it a folder workspace/"
    ):
        opened(folder)


def test_two_problems_are_one_too_many(folder):
    (folder / "tasks" / SLUG / "instruction.md").write_text("x")
    with pytest.raises(UserError, match=r"has both problem\.md and instruction\.md"):
        opened(folder)


def test_dockerfile_and_image_exclude_each_other(folder):
    (folder / "tasks" / SLUG / "Dockerfile").write_text("FROM dgm/python\n")
    edit(folder, SLUG, "[tests]", 'image = "python"\n[tests]')
    with pytest.raises(UserError, match=r"task\.toml:4: image: the task has Dockerfile too"):
        opened(folder)


def test_image_is_known_before_it_is_built_and_follows_its_context(folder):
    place = folder / "tasks" / SLUG / "environment"
    place.mkdir()
    (place / "Dockerfile").write_text("FROM dgm/python\nWORKDIR /app\n")
    first = opened(folder).task(SLUG).image
    assert re.fullmatch(r"docker:dgm/task:[0-9a-f]{24}", first)
    (place / "data.txt").write_text("x")
    assert opened(folder).task(SLUG).image != first


def test_workspace_may_stand_in_an_image(folder):
    shutil.rmtree(folder / "tasks" / SLUG / "workspace")
    edit(folder, SLUG, "[tests]", 'image = "docker:acme/slugs:1"\nworkdir = "/app"\n[tests]')
    suite = opened(folder)
    assert suite.task(SLUG).image.startswith("docker:dgm/task-workspace:")
    assert suite.record(SLUG).source == "image"
    with pytest.raises(UserError, match=r"none builds no images; start Docker"):
        suite.workspace(SLUG)


class Builds(NoEngine):
    """Remembers what it was asked to build."""

    def __init__(self):
        self.asked = []
        self.task_images = self

    def build(self, context, tag, *, network):
        self.asked.append((sorted(context), tag, network))

    def hold(self, image, folder, tag):
        self.asked.append((image, folder, tag))

    def check(self, image):
        self.asked.append(("check", image))


@pytest.fixture
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def with_dockerfile(folder, more=""):
    """Let a task work in an image of its own."""
    task = folder / "tasks" / SLUG
    shutil.rmtree(task / "workspace")
    (task / "environment").mkdir()
    (task / "environment" / "Dockerfile").write_text(f"FROM dgm/python\nWORKDIR /app\n{more}")
    edit(folder, SLUG, "[tests]", 'workdir = "/app"\n[tests]')
    return task / "environment"


def test_dockerfiles_are_built_after_a_yes_to_exactly_them(folder, own_state):
    environment = with_dockerfile(folder)
    with pytest.raises(ConsentNeeded, match=r"Docker to build .*Dockerfile without .*look at them first"):
        SuiteBenchmark(folder, Builds())
    assert opened(folder).tasks(Split.SEARCH)  # to look at it needs no yes
    assert len(dgm.trust(folder)) == 1
    SuiteBenchmark(folder, Builds())
    for change in (environment / "more.txt", environment / "Dockerfile"):
        change.write_text("FROM dgm/python\nWORKDIR /app\nRUN true\n")
        with pytest.raises(ConsentNeeded):
            SuiteBenchmark(folder, Builds())
        dgm.trust(folder)
        SuiteBenchmark(folder, Builds())


@pytest.mark.parametrize(
    "line", ["RUN pip install x", "RUN a && \\\n apt-get install y", "ADD https://a.b/c /c"]
)
def test_a_network_is_asked_for_where_one_seems_to_be_needed(folder, own_state, line):
    with_dockerfile(folder, line + "\n")
    with pytest.raises(ConsentNeeded, match="with a network"):
        SuiteBenchmark(folder, Builds())
    dgm.trust(folder)
    engine = Builds()
    SuiteBenchmark(folder, engine).workspace(SLUG)
    dgm.trust(folder, network=True)
    SuiteBenchmark(folder, engine).workspace(SLUG)
    assert [row[2] for row in engine.asked[::2]] == [False, True]


def test_images_are_built_from_the_environment_alone_when_a_task_is_worked_on(folder):
    with_dockerfile(folder)
    dgm.trust(folder)
    engine = Builds()
    suite = SuiteBenchmark(folder, engine)
    assert engine.asked == []
    assert suite.workspace(SLUG) == InImage()
    (files, built, network), (image, workdir, held) = engine.asked
    assert (files, network, image, workdir) == (["Dockerfile"], False, built, "/app")
    assert suite.task(SLUG).image == f"docker:{held}"


def test_named_images_are_checked_before_anything_is_paid_for(folder):
    with_dockerfile(folder)
    dgm.trust(folder)
    edit(folder, WORDS, "[tests]", 'image = "docker:acme/words:1"\n[tests]')
    engine = Builds()
    suite = SuiteBenchmark(folder, engine)
    for _ in range(2):
        check_images(MixedBenchmark([suite, SuiteBenchmark(HANDMADE, engine)]))
    assert engine.asked == [("check", "acme/words:1")]


def test_engine_without_images_is_refused_when_the_suite_is_opened(folder):
    class Bubblewrap(NoEngine):
        name = "bubblewrap"

    (folder / "tasks" / SLUG / "Dockerfile").write_text("FROM dgm/python\n")
    with pytest.raises(UserError, match=r"slugs-keep-their-signs: works in an image of Docker's"):
        SuiteBenchmark(folder, Bubblewrap())


@pytest.mark.parametrize(
    "name", ["workspace/slug.py", "workspace/README.md", "tests/check.py", "task.toml", "problem.md"]
)
def test_version_follows_whatever_can_change_a_verdict(folder, name):
    before = opened(folder).version
    file = folder / "tasks" / SLUG / name
    file.write_text((file.read_text() if file.exists() else "") + "\n")
    assert opened(folder).version != before


@pytest.mark.parametrize("name", ["solution/solve.sh", "solution/notes.txt", "README.md"])
def test_version_does_not_follow_solutions(folder, name):
    before = opened(folder).version
    (folder / "tasks" / SLUG / name).write_text("another\n")
    assert opened(folder).version == before


def test_missing_reference_is_said_when_it_is_asked_for(folder):
    with pytest.raises(UserError, match=r"solution\.patch: missing, so that the task cannot be verified"):
        opened(folder).reference(SLUG)


@pytest.mark.parametrize("name", ["a/b", "a+b", "a:b", ""])
def test_name_that_would_confuse_is_refused(folder, name):
    file = folder / "suite.toml"
    file.write_text(file.read_text().replace('"handmade"', f'"{name}"'))
    with pytest.raises(UserError, match=r"suite\.toml:?1?: name: .* without '/', '\+' and ':'"):
        opened(folder)


def test_problem_that_is_no_text_is_told(folder):
    (folder / "tasks" / SLUG / "problem.md").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"problem\.md: not UTF-8"):
        opened(folder).task(SLUG)
