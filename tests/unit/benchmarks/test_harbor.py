"""Tasks in Harbor's layout become a suite; what cannot come along is said."""

import os
import re
import shutil
from pathlib import Path

import pytest

from dgm.benchmarks.dockerfiles import read_dockerfile
from dgm.benchmarks.harbor import import_harbor
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.domain import Split, TaskId
from dgm.errors import UserError
from tests.support.suite_on_disk import NoEngine

HARBOR = Path(__file__).parents[2] / "e2e" / "suites" / "harbor"
LIMIT, GREET, SALES = "limit-itself-is-left-out", "greet-politely", "sum-the-sales"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(HARBOR, tmp_path / "harbor")


def edit(folder, task, name, old, new):
    file = folder / task / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def imported(folder, tmp_path, image="python", **more):
    done = import_harbor(folder, tmp_path / "suite", image, **more)
    return done, SuiteBenchmark(tmp_path / "suite", NoEngine())


def test_tasks_become_a_suite_with_a_holdout(folder, tmp_path):
    done, suite = imported(folder, tmp_path)
    assert done.tasks == [GREET, LIMIT, SALES]
    assert (len(suite.tasks(Split.SEARCH)), len(suite.tasks(Split.HOLDOUT))) == (2, 1)
    assert suite.name == "suite"


def test_which_tasks_are_held_out_depends_on_their_names_alone(folder, tmp_path):
    _, suite = imported(folder, tmp_path)
    held = [task.id for task in suite.tasks(Split.HOLDOUT)]
    edit(folder, LIMIT, "instruction.md", "Mend it", "Please mend it")
    import_harbor(folder, tmp_path / "again", "python")
    assert [t.id for t in SuiteBenchmark(tmp_path / "again", NoEngine()).tasks(Split.HOLDOUT)] == held


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (1.0, 3)])
def test_share_of_the_holdout_is_a_choice(folder, tmp_path, share, count):
    _, suite = imported(folder, tmp_path, holdout=share)
    assert len(suite.tasks(Split.HOLDOUT)) == count


def test_what_the_dockerfile_copies_is_the_workspace(folder, tmp_path):
    _, suite = imported(folder, tmp_path)
    assert list(suite.workspace(TaskId(LIMIT))) == ["limits.py"]
    assert list(suite.workspace(TaskId(SALES))) == ["data/sales.csv"]
    assert list(suite.workspace(TaskId(GREET))) == ["greet.sh"]


def test_limits_and_resources_come_along(folder, tmp_path):
    _, suite = imported(folder, tmp_path)
    record = suite.record(TaskId(LIMIT))
    assert (record.limits.timeout_s, record.limits.test_timeout_s) == (60.0, 30.0)
    assert (record.tests.runner, record.tests.memory_mb, record.tests.disk_mb) == ("reward", 1024, 1024)
    assert record.tags == ("python", "little")


def test_paths_follow_the_workdir_and_are_named(folder, tmp_path):
    done, suite = imported(folder, tmp_path)
    task = suite.task(TaskId(LIMIT))
    assert task.workdir == "/work/app"
    assert "/work/app/limits.py" in task.prompt
    assert b"cd /work/app" in suite.hidden_tests(TaskId(LIMIT))["test.sh"].data
    assert done.remarks[LIMIT] == [
        "the path /app became /work/app in instruction.md, solution/solve.sh, tests/test.sh, tests/test_limits.py"
    ]


def test_without_an_image_the_tasks_keep_their_own(folder, tmp_path):
    done, suite = imported(folder, tmp_path, image="")
    task = suite.task(TaskId(LIMIT))
    assert task.workdir == "/app"
    assert task.image.startswith("docker:dgm/task-workspace:")
    assert done.remarks[LIMIT] == ["its image stands on dgm/python, and is built by Docker when it is needed"]


def test_ready_image_is_taken_by_its_name(folder, tmp_path):
    shutil.rmtree(folder / LIMIT / "environment")
    edit(folder, LIMIT, "task.toml", "[environment]", '[environment]\ndocker_image = "acme/clamp:1"')
    done, suite = imported(folder, tmp_path, image="")
    assert suite.record(TaskId(LIMIT)).limits.image == "docker:acme/clamp:1"
    assert "does not say where agents work; /app was taken" in done.remarks[LIMIT][-1]


def test_workdir_of_the_task_wins_over_that_of_its_dockerfile(folder, tmp_path):
    edit(folder, LIMIT, "task.toml", "[environment]", '[environment]\nworkdir = "/srv/clamp"')
    edit(folder, LIMIT, "environment/Dockerfile", "COPY limits.py ./", "COPY limits.py /srv/clamp/")
    _, suite = imported(folder, tmp_path)
    assert suite.task(TaskId(LIMIT)).workdir == "/work/srv-clamp"
    assert list(suite.workspace(TaskId(LIMIT))) == ["limits.py"]


@pytest.mark.parametrize(
    ("name", "old", "new", "remark"),
    [
        ("task.toml", "[environment]", "[environment]\nallow_internet = true", "it may use the internet"),
        ("task.toml", "[environment]", '[environment]\nnetwork_mode = "allowlist"', "it may use the internet"),
        ("task.toml", "[agent]", '[agent]\nuser = "root"', "[agent] wants root; it is run as an ordinary user"),
        ("task.toml", "[environment]", "[environment]\nmcp_servers = []",
         "[environment] mcp_servers is not carried over"),
        ("task.toml", "[agent]", '[agent]\nspeed = "high"', "[agent] speed is not carried over"),
        ("task.toml", "[verifier]", '[verifier]\nenv = { KEY = "${KEY}" }', "[verifier] env KEY = '${KEY}' comes from"),
        ("task.toml", 'storage = "1G"', 'storage = "10G"', "storage of 10240 MB became 2048"),
        ("tests/test.sh", "cd /app", "cd /app\npip install pytest", "tests/test.sh:3 installs something"),
        ("environment/Dockerfile", "WORKDIR", "RUN apt-get update && \\\n    apt-get install -y jq\nWORKDIR",
         "the Dockerfile's line is not carried over: RUN apt-get update && apt-get install -y jq"),
        ("environment/Dockerfile", "COPY limits.py ./", "COPY limits.py /etc/",
         "the Dockerfile's line is not carried over: COPY limits.py /etc/"),
        ("environment/Dockerfile", "WORKDIR /app", "ENV A=1", "the Dockerfile's line is not carried over: ENV A=1"),
        ("environment/Dockerfile", "WORKDIR /app", "", "its Dockerfile names no WORKDIR; /app was taken"),
        ("instruction.md", "Mend it.", "Log to /var/log/clamp.log.", "the instruction names /var/log/clamp.log"),
    ],
)  # fmt: skip
def test_what_does_not_come_along_is_said(folder, tmp_path, name, old, new, remark):
    edit(folder, LIMIT, name, old, new)
    done, _ = imported(folder, tmp_path)
    assert any(remark in said for said in done.remarks[LIMIT]), done.remarks[LIMIT]


def test_missing_solution_is_said(folder, tmp_path):
    shutil.rmtree(folder / LIMIT / "solution")
    done, suite = imported(folder, tmp_path)
    assert done.remarks[LIMIT][0] == "it has no solution/solve.sh, so that it cannot be verified"
    assert suite.task(TaskId(LIMIT)).id == LIMIT


def test_plain_variables_come_along(folder, tmp_path):
    edit(folder, LIMIT, "task.toml", "[verifier]", '[verifier]\nenv = { LEVEL = "3" }')
    _, suite = imported(folder, tmp_path)
    assert suite.record(TaskId(LIMIT)).tests.env == (("LEVEL", "3"),)


COMPOSE = "services:\n  main:\n    build: .\n  database:\n    image: postgres\n"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda task: (task / "environment/docker-compose.yaml").write_text(COMPOSE),
         r"several containers \(main, database\)"),
        (lambda task: (task / "steps").mkdir(), "several steps"),
        (lambda task: (task / "tests" / "Dockerfile").write_text("FROM x\n"), "tests that run in a container"),
        (lambda task: (task / "task.toml").write_text('[verifier]\nenvironment_mode = "separate"\n'),
         "tests that run in a container of their own"),
        (lambda task: (task / "environment/Dockerfile").write_text("FROM x\nWORKDIR $HOME/a\n"),
         r"WORKDIR is not known without a build: /\$HOME/a"),
        (lambda task: (task / "instruction.md").unlink(), r"has no instruction\.md"),
        (lambda task: (task / "tests" / "test.sh").unlink(), r"has no tests/test\.sh"),
        (lambda task: (task / "task.toml").rename(task / "task.yaml"), r"older layout \(task\.yaml\)"),
        (lambda task: (task / "task.toml").write_text("[environment]\ngpus = 1\n"), "needs a GPU"),
        (lambda task: (task / "task.toml").write_text('[environment]\nos = "windows"\n'), "needs windows"),
    ],
)  # fmt: skip
def test_task_that_does_not_fit_is_skipped_with_the_reason(folder, tmp_path, spoil, why):
    spoil(folder / LIMIT)
    done, _ = imported(folder, tmp_path)
    assert done.tasks == [GREET, SALES]
    assert re.search(why, done.skipped[LIMIT])
    assert not (tmp_path / "suite" / "tasks" / LIMIT).exists()


def test_compose_of_one_service_is_no_obstacle(folder, tmp_path):
    file = folder / LIMIT / "environment" / "docker-compose.yaml"
    file.write_text("services:\n  main:\n    build:\n      context: .\n    environment:\n      - A=1\n")
    done, _ = imported(folder, tmp_path)
    assert LIMIT in done.tasks


def test_one_task_alone_can_be_imported(folder, tmp_path):
    done, _ = imported(folder / LIMIT, tmp_path)
    assert done.tasks == [LIMIT]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda folder: [shutil.rmtree(task) for task in folder.iterdir()], "no task in it"),
        (lambda folder: (folder / "suite.toml").write_text(""), "is a suite of dgm's own already"),
        (shutil.rmtree, "no such folder"),
        (lambda folder: [(task / "steps").mkdir() for task in folder.iterdir()], "none of 3 tasks can be imported"),
        (lambda folder: (folder / SALES / "task.toml").write_text("= ="), r"task\.toml: not valid TOML"),
        (lambda folder: (folder / LIMIT / "task.toml").write_text("agent = 3"), "agent = 3: "),
        (lambda folder: (folder / SALES / "task.toml").write_text("verifier = 3"), "verifier = 3: "),
    ],
)  # fmt: skip
def test_folder_that_cannot_be_imported_leaves_nothing(folder, tmp_path, spoil, why):
    spoil(folder)
    with pytest.raises(UserError, match=why):
        imported(folder, tmp_path)
    assert not (tmp_path / "suite").exists()


def test_target_in_use_is_left_alone(folder, tmp_path):
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "mine").write_text("x")
    with pytest.raises(UserError, match="is there already"):
        imported(folder, tmp_path)
    assert (tmp_path / "suite" / "mine").read_text() == "x"


def test_dockerfile_is_read_stage_by_stage(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("a")
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "Dockerfile").write_text(
        "# comment\nFROM golang AS build\nWORKDIR /x\nCOPY . .\nFROM --platform=linux/amd64 debian:12\n"
        "WORKDIR /app\nWORKDIR code\nCOPY src lib\nCOPY b.txt c.txt\nCOPY --chown=1:1 [\"b.txt\", \"./\"]\n"
        "COPY --from=build /x/y .\nADD https://example.org/z .\n"
    )  # fmt: skip
    read = read_dockerfile(tmp_path / "Dockerfile")
    assert read.bases == ("golang", "debian:12")
    assert read.workdir == "/app/code"
    assert sorted(read.workspace) == ["b.txt", "c.txt", "lib/a.py"]
    assert read.left_out == ("COPY --from=build /x/y .", "ADD https://example.org/z .")


def test_variables_of_a_dockerfile_are_expanded_and_heredocs_are_no_instructions(tmp_path):
    (tmp_path / "a.py").write_text("a")
    (tmp_path / "Dockerfile").write_text(
        "FROM x\nARG NAME=shop\nENV APP_HOME=/srv/${NAME}\nENV SUB lib\nWORKDIR $APP_HOME\nCOPY a.py $SUB/\n"
        "COPY <<EOF ./b.py\nWORKDIR /no\nEOF\nRUN <<EOF\npip install x\nEOF\nWORKDIR ${MORE:-src}\n"
    )
    read = read_dockerfile(tmp_path / "Dockerfile", "/srv/shop")
    assert (read.workdir, list(read.workspace)) == ("/srv/shop", ["lib/a.py"])
    assert read_dockerfile(tmp_path / "Dockerfile").workdir == "/srv/shop/src"
    assert read.left_out[2:] == ("COPY <<EOF ./b.py", "RUN <<EOF pip install x")


def test_dockerfile_copies_nothing_from_outside_its_folder(tmp_path):
    (tmp_path / "secret").write_text("s")
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "Dockerfile").write_text("FROM x\nWORKDIR /app\nCOPY ../secret .\n")
    read = read_dockerfile(tmp_path / "env" / "Dockerfile")
    assert (read.workspace, read.left_out) == ({}, ("COPY ../secret .",))
    (tmp_path / "env" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match=r"env/link: leads out of .*env"):
        read_dockerfile(tmp_path / "env" / "Dockerfile")


@pytest.mark.parametrize(
    "lines",
    [
        "COPY x /app/../../canary",
        "COPY x ../../canary",
        "COPY x //etc/canary",
        "COPY x /app/..",
        "WORKDIR /app/../../b\nCOPY x /app/canary",
    ],
)
def test_copies_out_of_the_workdir_are_left_out(tmp_path, lines):
    (tmp_path / "x").write_text("x")
    (tmp_path / "Dockerfile").write_text(f"FROM x\nWORKDIR /app\n{lines}\n")
    read = read_dockerfile(tmp_path / "Dockerfile")
    assert (read.workspace, read.left_out) == ({}, (lines.splitlines()[-1],))


@pytest.mark.parametrize("second", ["COPY x /app/out/canary", "COPY x /app/folder", "COPY folder /app/in/a"])
def test_copies_through_a_copied_link_or_over_a_folder_are_left_out(tmp_path, second):
    (tmp_path / "folder" / "folder").mkdir(parents=True)
    (tmp_path / "folder" / "out").symlink_to("in")
    (tmp_path / "folder" / "in").write_text("")
    (tmp_path / "folder" / "folder" / "y").write_text("y")
    (tmp_path / "x").write_text("x")
    (tmp_path / "Dockerfile").write_text(f"FROM x\nWORKDIR /app\nCOPY folder /app/\n{second}\n")
    read = read_dockerfile(tmp_path / "Dockerfile")
    assert (list(read.workspace), read.left_out) == (["folder/y", "in", "out"], (second,))


@pytest.mark.parametrize(
    "name", ["instruction.md", "tests/secret.txt", "solution/secret", "environment/link"]
)
def test_task_with_a_link_to_the_host_is_skipped_with_its_name(folder, tmp_path, name):
    (tmp_path / "secret").write_text("of the host")
    (folder / LIMIT / name).unlink(missing_ok=True)
    (folder / LIMIT / name).symlink_to(tmp_path / "secret")
    done, _ = imported(folder, tmp_path)
    assert done.tasks == [GREET, SALES]
    assert f"{LIMIT}/{name}: leads out of" in done.skipped[LIMIT]


@pytest.mark.parametrize(
    ("section", "line", "why"),
    [
        ("environment", 'env = ["A=1"]', r'environment\.env = \["A=1"\]: '),
        ("solution", "env = 5", r"solution\.env = 5: "),
        ("environment", 'cpus = "two"', r'environment\.cpus = "two": '),
        ("environment", "cpus = 1e300", r"environment\.cpus = 1e\+300: "),
        ("environment", "cpus = 0", r"environment\.cpus = 0: "),
        ("environment", "memory_mb = nan", r"environment\.memory_mb = nan: "),
        ("environment", 'memory = "1.5.2G"', r'environment\.memory = "1\.5\.2G": '),
        ("environment", 'memory = "999999999G"', r'environment\.memory = "999999999G": '),
        ("environment", "storage = [1]", r"environment\.storage = \[1\]: "),
        ("environment", "docker_image = 5", r"environment\.docker_image = 5: "),
        ("environment", 'workdir = "app"', r'environment\.workdir = "app": '),
        ("agent", 'timeout_sec = "long"', r'agent\.timeout_sec = "long": '),
    ],
)
def test_a_setting_of_a_wrong_shape_is_one_line(folder, tmp_path, section, line, why):
    (folder / LIMIT / "task.toml").write_text(f"[{section}]\n{line}\n")
    with pytest.raises(UserError, match=rf"task\.toml: {why}") as told:
        imported(folder, tmp_path)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "suite").exists()


def test_task_with_a_pipe_is_skipped(folder, tmp_path):
    os.mkfifo(folder / SALES / "tests" / "pipe")
    done, _ = imported(folder, tmp_path)
    assert "tests/pipe: neither a file nor a folder" in done.skipped[SALES]


def test_letters_of_every_script_come_along(folder, tmp_path):
    edit(folder, LIMIT, "task.toml", 'tags = ["little"]', 'tags = ["\U0001f600", "ä"]')
    _, suite = imported(folder, tmp_path)
    assert suite.record(TaskId(LIMIT)).tags == ("python", "\U0001f600", "ä")
