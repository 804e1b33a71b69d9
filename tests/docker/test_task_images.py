"""Tasks that bring their own image: built by the engine, worked on where the image has them, graded there."""

import asyncio
import shutil
from pathlib import Path

import pytest

import dgm
from dgm.archive.repository import patch as patch_between
from dgm.benchmarks.harbor import import_harbor
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import verify
from dgm.domain import Entry, TaskId, Verdict
from dgm.errors import UserError
from dgm.protocols import InImage
from dgm.sandboxes.choose import choose

pytestmark = pytest.mark.docker

HARBOR = Path(__file__).parents[1] / "e2e" / "suites" / "harbor"
HANDMADE = HARBOR.with_name("handmade")
LABELS = {"dgm.run": "test-task-images"}
WORDS = TaskId("short-words-are-lost")
LIMIT, SALES = TaskId("limit-itself-is-left-out"), TaskId("sum-the-sales")


@pytest.fixture(scope="module")
def engine():
    try:
        return choose("docker")
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def suite(engine, tmp_path_factory):
    target = tmp_path_factory.mktemp("suite") / "little"
    import_harbor(HARBOR, target)
    dgm.trust(target)
    return SuiteBenchmark(target, engine)


@pytest.mark.parametrize("task", [LIMIT, SALES])
def test_imported_task_is_sound_in_its_own_image(suite, task):
    assert suite.workspace(task) == InImage()
    assert asyncio.run(verify(suite, task, LABELS)) == []


def test_patch_on_a_workspace_in_an_image_is_graded(suite):
    before = {"limits.py": Entry((HARBOR / LIMIT / "environment" / "limits.py").read_bytes())}
    text = "def reaches(number, limit):\n    return limit <= number\n"
    right = patch_between(before, {"limits.py": Entry(text.encode())})
    wrong = patch_between(before, {"limits.py": Entry(b"def reaches(*_):\n    return True\n")})
    assert asyncio.run(suite.grade(LIMIT, right, LABELS)).verdict is Verdict.RESOLVED
    graded = asyncio.run(suite.grade(LIMIT, wrong, LABELS))
    assert (graded.verdict, graded.reason) == (Verdict.UNRESOLVED, "reward 0, 1 is needed")


def test_files_of_an_image_are_put_back_from_it(engine, tmp_path):
    harbor = shutil.copytree(HARBOR / LIMIT, tmp_path / "harbor" / LIMIT)
    (harbor / "environment" / "conftest.py").write_text("mine = 1\n")
    (harbor / "environment" / "Dockerfile").write_text("FROM dgm/python\nWORKDIR /app\nCOPY *.py ./\n")
    (harbor / "tests" / "test.sh").write_text("grep -c mine conftest.py > /logs/verifier/reward.txt\n")
    import_harbor(tmp_path / "harbor", tmp_path / "suite")
    dgm.trust(tmp_path / "suite")
    suite = SuiteBenchmark(tmp_path / "suite", engine)
    patch = patch_between({"conftest.py": Entry(b"mine = 1\n")}, {"conftest.py": Entry(b"yours = 1\n")})
    assert asyncio.run(suite.grade(LIMIT, patch, LABELS)).reason == "reward 1"


@pytest.mark.parametrize(
    ("dockerfile", "message"),
    [
        ("FROM dgm/python\nWORKDIR /app\nRUN exit 3\n", r"cannot be built: .*non-zero code: 3.*dgm\.trust\(SUITE, net"),
        ("FROM no.such.registry.invalid/x:1\nWORKDIR /app\n", "the engine has no such image and no registry offers it"),
        ("WORKDIR /app\n", "has no FROM line"),
        ("FROM dgm/python\nWORKDIR /app\nCOPY nothing.txt .\n", "cannot be built"),
    ],
)  # fmt: skip
def test_dockerfile_that_cannot_be_built_is_one_line(engine, tmp_path, dockerfile, message):
    harbor = shutil.copytree(HARBOR / LIMIT, tmp_path / "harbor" / LIMIT)
    (harbor / "environment" / "Dockerfile").write_text(dockerfile)
    import_harbor(tmp_path / "harbor", tmp_path / "suite")
    dgm.trust(tmp_path / "suite")
    with pytest.raises(UserError, match=message) as caught:
        SuiteBenchmark(tmp_path / "suite", engine).workspace(LIMIT)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("removed", "lacks"),
    [
        ("/usr/bin/git /usr/bin/python3 /usr/bin/find", "python3, git, find"),
        ("/bin/sh /usr/bin/sh", "/bin/sh"),
    ],
)
def test_image_that_lacks_a_program_is_one_line(engine, tmp_path, removed, lacks):
    suite = SuiteBenchmark(with_image(tmp_path, f"FROM dgm/python\nRUN rm -f {removed}\n"), engine)
    with pytest.raises(
        UserError, match=rf"^the image dgm/task:\w+ lacks {lacks}: sandboxes need sh, git, .*$"
    ):
        suite.workspace(WORDS)


def test_task_is_graded_in_an_image_without_bash(engine, tmp_path):
    suite = SuiteBenchmark(
        with_image(tmp_path, "FROM dgm/python\nRUN rm -f /bin/bash /usr/bin/bash\n"), engine
    )
    assert asyncio.run(suite.grade(WORDS, suite.reference(WORDS), LABELS)).verdict is Verdict.RESOLVED


def with_image(tmp_path, dockerfile):
    """Return a suite whose task has a folder as its workspace, and works in an image of its own."""
    folder = shutil.copytree(HANDMADE, tmp_path / "suite")
    (folder / "tasks" / WORDS / "Dockerfile").write_text(dockerfile)
    dgm.trust(folder)
    return folder
