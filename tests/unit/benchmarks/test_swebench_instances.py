"""Instances in SWE-bench's format: what is read, and what is said of what cannot be."""

import asyncio
import json
import subprocess
import sys

import pytest

from dgm.benchmarks import swebench_rows
from dgm.benchmarks.formats import BenchmarkContext
from dgm.benchmarks.swebench import open_swebench
from dgm.benchmarks.swebench_images import Store, ensure, tag_of
from dgm.benchmarks.swebench_rows import load
from dgm.config import BenchmarksSettings
from dgm.domain import Split, Verdict
from dgm.errors import Infrastructure, UserError
from dgm.protocols import InImage

REPOS = ("django/django", "sympy/sympy", "psf/requests", "sphinx-doc/sphinx")
IMAGE = "swebench/sweb.eval.x86_64.django_1776_django-1:latest"
SCRIPT = ": '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\n"


def row(number=1, repo="django/django", **given):
    base = {
        "instance_id": f"{repo.replace('/', '__')}-{number}",
        "repo": repo,
        "version": "1.0",
        "base_commit": "a" * 40,
        "problem_statement": f"Thing {number} is broken.\n",
        "patch": "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n",
        "test_patch": "diff --git a/tests/t.py b/tests/t.py\n--- a/tests/t.py\n+++ b/tests/t.py\n@@ -1 +1 @@\n-a\n+b\n",
        "FAIL_TO_PASS": ["tests.t"],
        "PASS_TO_PASS": [],
        "image": IMAGE,
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "eval_script": SCRIPT,
        "hints_text": "ignored",
    }
    return {key: value for key, value in {**base, **given}.items() if value is not ...}


def write(folder, rows, name="instances.jsonl"):
    file = folder / name
    lines = [json.dumps(each) for each in rows]
    file.write_text("[" + ",\n".join(lines) + "]" if name.endswith(".json") else "\n".join(lines) + "\n")
    return file


class Looking:
    name = "none"

    def open(self, spec):
        raise AssertionError("nothing is run here")


@pytest.mark.parametrize("name", ["instances.json", "instances.jsonl"])
@pytest.mark.parametrize("tests", [["t.one", "t.two"], '["t.one", "t.two"]'])
def test_lists_and_json_texts_are_read_alike(tmp_path, name, tests):
    found = load(str(write(tmp_path, [row(FAIL_TO_PASS=tests, PASS_TO_PASS="[]")], name)))
    instance = found["django__django-1"]
    assert instance.fail_to_pass == ("t.one", "t.two")
    assert instance.pass_to_pass == ()
    assert instance.problem == "Thing 1 is broken.\n"


def test_jsonl_may_be_called_json(tmp_path):
    file = write(tmp_path, [row(1), row(2)])
    assert len(load(str(file.rename(tmp_path / "x.json")))) == 2


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([row(patch=...)], "instances.jsonl:1: instance 'django__django-1': the field 'patch' is missing"),
        (
            [row(1), row(2, FAIL_TO_PASS=..., FAIL_TO_PAS=[])],
            ":2: instance 'django__django-2': the field 'FAIL_TO_PASS' is missing (did you mean 'FAIL_TO_PAS'?)",
        ),
        ([row(instance_id=...)], ":1: the field 'instance_id' is missing"),
        ([row(instance_id="../x")], "instance_id = '../x': "),
        ([row(repo="../django", instance_id="a-1")], "repo = '../django': "),
        ([row(FAIL_TO_PASS=[])], "FAIL_TO_PASS = '[]': "),
        ([row(FAIL_TO_PASS="[oops")], "FAIL_TO_PASS = '[oops': is neither a list nor JSON text"),
        ([row(PASS_TO_PASS=[[1]])], "PASS_TO_PASS = '[[1]]': "),
        ([row(base_commit=[5])], "base_commit = '[5]': "),
        ([row(eval_type="other")], "eval_type = 'other': "),
        ([row(), row()], ":2: instance 'django__django-1' is there twice"),
        ([5], ":1: int where an instance"),
        ([row(eval_script=...)], "the field 'eval_script' is missing (rows of swebench 5 have one)"),
        ([row(log_parser=None)], "the field 'log_parser' is missing (rows of swebench 5 have one)"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_with_its_place(tmp_path, rows, problem):
    with pytest.raises(UserError) as caught:
        load(str(write(tmp_path, rows)))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.jsonl", json.dumps(row()).encode() + b"\n{broken\n", "x.jsonl:2: not JSON"),
        ("x.json", b"[1,\n2,\n", "x.json:3: not JSON"),
        ("x.jsonl", b"\xff\xfe{}\n", "x.jsonl:1: not"),
        ("x.jsonl", b"", "no instance in it"),
        ("x.csv", b"a,b", "expected a file that ends in .json, .jsonl"),
        ("x.parquet", b"no", "Parquet"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path, name, content, problem):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UserError, match=problem):
        load(str(file))


def test_a_missing_file_or_data_set_is_told():
    with pytest.raises(UserError, match="did you mean 'verified'"):
        load("verifed")
    with pytest.raises(UserError, match=r"neither such a data set nor such a file$"):
        load("nowhere.jsonl")


@pytest.mark.parametrize(
    "fields",
    [
        {"test_cmd": "pytest -rA"},
        {"install_config": {"test_cmd": ["pytest -rA"], "log_parser": "parse_log_pytest"}, "log_parser": ...},
    ],
)
def test_a_test_command_stands_for_a_script(tmp_path, fields):
    new = "--- /dev/null\n+++ b/tests/new file.py\n@@ -0,0 +1 @@\n+x\n"
    given = row(eval_script=..., eval_type=..., image=..., docker_image="my:1", **fields)
    given["test_patch"] += new
    instance = load(str(write(tmp_path, [given])))["django__django-1"]
    assert (instance.image, instance.log_parser, instance.eval_type) == (
        "my:1",
        "parse_log_pytest",
        "pass_and_fail",
    )
    commit = instance.base_commit
    assert (
        f"git checkout {commit} tests/t.py\nrm -f 'tests/new file.py'\ngit apply -v" in instance.eval_script
    )
    assert "Start Test Output'\npytest -rA\n: '>>>>> End" in instance.eval_script


def test_a_data_set_that_was_fetched_is_read_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    swebench_rows.cached("lite").write_text(json.dumps(row()) + "\n")
    assert list(load("lite")) == ["django__django-1"]


def test_a_data_set_that_an_earlier_version_fetched_is_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    swebench_rows.cached("lite").write_text(json.dumps(row(eval_script=...)) + "\n")
    with pytest.raises(
        UserError, match=r"rows of swebench 5 have one\); remove .*lite.jsonl to fetch it again"
    ):
        load("lite")


def test_a_data_set_needs_a_package_or_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"pip install 'dgm\[swebench\]', or give a file"):
        load("verified")
    assert list(swebench_rows.cached("x").parent.iterdir()) == []


def test_a_silent_hub_is_told_in_one_line(tmp_path, monkeypatch):
    class Datasets:
        @staticmethod
        def load_dataset(name, split):
            raise ConnectionError(f"cannot reach {name}\nmore")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "datasets", Datasets)
    with pytest.raises(UserError, match=r"cannot be fetched from Hugging Face .*SWE-bench_Verified"):
        load("verified")


def test_tasks_show_nothing_of_the_grading(tmp_path):
    file = write(
        tmp_path, [row(problem_statement="It breaks.", test_patch="SECRET-TEST", patch="SECRET-FIX\n")]
    )
    opened = open_swebench(BenchmarkContext(f"swebench:{file}", Looking(), BenchmarksSettings()))
    (task,) = opened.tasks(Split.SEARCH)
    assert task.prompt.startswith("It breaks.")
    assert "SECRET" not in repr(task)
    assert (task.workdir, task.tags) == ("/testbed", ("django/django",))
    assert task.image.startswith("docker:dgm/instance:")
    assert opened.tasks(Split.HOLDOUT) == []
    assert opened.reference(task.id) == b"SECRET-FIX\n"


def test_the_version_follows_what_can_change_a_verdict(tmp_path):
    def version(**given):
        file = write(tmp_path, [row(**given)])
        return open_swebench(BenchmarkContext(f"swebench:{file}", Looking(), BenchmarksSettings())).version

    first = version()
    assert version(hints_text="other") == first
    assert version(FAIL_TO_PASS='["tests.t"]') == first
    assert version(test_patch="other") != first
    assert version(PASS_TO_PASS=["a"]) != first


def test_bubblewrap_is_refused(tmp_path):
    class Bubblewrap(Looking):
        name = "bubblewrap"

    with pytest.raises(UserError, match="start Docker, and set sandbox to docker"):
        open_swebench(
            BenchmarkContext(f"swebench:{write(tmp_path, [row()])}", Bubblewrap(), BenchmarksSettings())
        )


def test_an_unknown_task_is_told_with_a_suggestion(tmp_path):
    opened = open_swebench(
        BenchmarkContext(f"swebench:{write(tmp_path, [row()])}", Looking(), BenchmarksSettings())
    )
    with pytest.raises(UserError, match="did you mean 'django__django-1'"):
        opened.task("django__django-2")


class Shelf(Store):
    """A store of images in memory."""

    def __init__(self, *here, offers=()):
        self.here, self.offers, self.pulled, self.prepared = set(here), set(offers), [], []

    def has(self, reference):
        return reference in self.here

    def offered(self, reference):
        return reference in self.offers

    def pull(self, reference, progress=None):
        self.pulled.append(reference)
        self.here.add(reference)

    def prepare(self, reference, tag):
        self.prepared.append(reference)
        new = tag not in self.here
        self.here.add(tag)
        return new

    def disk_bytes(self):
        return 0

    def collect(self, limit_bytes, spared=()):
        return []


@pytest.fixture
def instance(tmp_path):
    return load(str(write(tmp_path, [row()])))["django__django-1"]


def test_images_are_chosen_by_instance_then_repository_then_for_all(instance):
    images = {"*": "any:1", "django/django": "repo:1", "django__django-1": "own:1"}
    for key, reference in (("django__django-1", "own:1"), ("django/django", "repo:1"), ("*", "any:1")):
        shelf = Shelf("own:1", "repo:1", "any:1")
        ensure(instance, images, shelf)
        assert shelf.prepared == [reference]
        del images[key]


def test_published_images_are_pulled_once(instance):
    shelf = Shelf(offers={IMAGE})
    ensure(instance, {}, shelf)
    ensure(instance, {}, shelf)
    assert shelf.pulled == [IMAGE]


def test_a_prepared_image_does_without_what_it_was_made_from(instance):
    shelf = Shelf(tag_of(instance, {}))
    ensure(instance, {}, shelf)
    assert shelf.pulled == []


def test_an_image_that_cannot_be_had_says_what_to_do(instance):
    with pytest.raises(
        Infrastructure, match=r"its image gone:1 is neither here .*benchmarks\.swebench\.images"
    ):
        ensure(instance, {"*": "gone:1"}, Shelf())


def test_an_instance_without_an_image_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"django__django-1: no image: .*benchmarks\.swebench\.images"):
        open_swebench(
            BenchmarkContext(f"swebench:{write(tmp_path, [row(image=...)])}", Looking(), BenchmarksSettings())
        )


def test_a_mapping_with_a_typo_is_told(tmp_path):
    settings = BenchmarksSettings.model_validate({"swebench": {"images": {"django/djang": "x:1"}}})
    with pytest.raises(UserError, match=r"'django/djang' is no instance.*did you mean 'django/django'"):
        open_swebench(BenchmarkContext(f"swebench:{write(tmp_path, [row()])}", Looking(), settings))


class Docker(Looking):
    """An engine whose registry offers the one instance's image."""

    name = "docker"

    def __init__(self):
        self.instances = Shelf(offers={IMAGE})


def open_one(tmp_path, **fields):
    settings = BenchmarksSettings.model_validate({"swebench": {"agent_s": 60, "tests_s": 90}})
    return open_swebench(BenchmarkContext(f"swebench:{write(tmp_path, [row(**fields)])}", Docker(), settings))


@pytest.mark.starts_processes
def test_the_workspace_stands_in_the_image(tmp_path):
    pytest.importorskip("swebench")
    opened = open_one(tmp_path)
    assert opened.workspace("django__django-1") == InImage()
    exam = opened.exam("django__django-1")
    assert exam.spec.filled == {"/testbed": "/opt/dgm/work"}
    assert (opened.task("django__django-1").timeout_s, exam.timeout_s) == (60, 90)


def test_an_empty_patch_pulls_no_image(tmp_path):
    opened = open_one(tmp_path)
    graded = asyncio.run(opened.grade("django__django-1", b"\n", {}))
    assert (graded.verdict, graded.reason) == (Verdict.UNRESOLVED, "empty patch")
    assert opened._engine.instances.pulled == []


@pytest.mark.starts_processes
def test_what_nobody_could_grade_is_refused_before_an_agent_works_on_it(tmp_path):
    with pytest.raises(UserError, match="no log parser 'nope'"):
        open_one(tmp_path, log_parser="nope").workspace("django__django-1")


@pytest.mark.starts_processes
def test_tasks_are_listed_without_importing_the_package(tmp_path):
    rows = [
        row(n, repo, PASS_TO_PASS=json.dumps([f"tests.t{i}" for i in range(150)]))
        for n in range(4)
        for repo in REPOS
    ]
    file = write(tmp_path, rows)
    program = (
        "import sys; from dgm.benchmarks.opening import open_suite; from dgm.domain import Split; "
        f"tasks = open_suite('swebench:{file}', type('E', (), {{'name': 'none'}})()).tasks(Split.SEARCH); "
        "print(len(tasks), sorted({'swebench', 'datasets', 'docker', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "16 []\n"
