"""A real run packed, unpacked, verified, read from the file, and gone on with."""

import json

import pytest

from tests.e2e.conftest import EVALUATIONS
from tests.support.program import copy_of_run

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def packed(dgm, searched, tmp_path_factory):
    """The finished run as a file."""
    file = tmp_path_factory.mktemp("packed") / "small.dgm"
    made = dgm.json("archive", "pack", "small", file)
    assert made["counts"]["agents"] == dgm.json("status", "small")["agents"]
    assert made["bytes"] == file.stat().st_size
    return file


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """No test fills the user's own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_reading_commands_take_the_file(dgm, searched, packed, tmp_path):
    for words in (
        ("show",),
        ("status",),
        ("show", "--lineage"),
        ("show", "0"),
        ("show", "--events"),
        ("report",),
    ):
        command, *rest = words
        of_file, of_run = (dgm(command, given, *rest).stdout.splitlines() for given in (packed, "small"))
        if command == "status":
            # Its last line says what time it is.
            assert of_file.pop().startswith("last event") and of_run.pop().startswith("last event")
        assert of_file == of_run
    dgm("export", packed, "1", tmp_path / "out")
    assert (tmp_path / "out" / "agent.toml").is_file()


def test_writing_commands_say_to_unpack_it(dgm, packed):
    for words in (("resume", packed), ("report", packed, "--holdout")):
        done = dgm(*words, code=2)
        assert f"unpack it first: dgm archive unpack {packed}" in done.stderr


def test_an_unpacked_run_goes_on(dgm, searched, packed):
    unpacked = dgm.json("archive", "unpack", packed, dgm.archive / "unpacked")
    assert unpacked["run"] == "unpacked"
    assert unpacked["addresses"] == []
    summary = dgm.json("resume", "unpacked", "--max-evaluations", EVALUATIONS + 1)
    assert summary["evaluations"]["graded"] == EVALUATIONS + 1
    checked = dgm.json("archive", "verify", "unpacked")["checked"]
    assert checked["exchanges"] == summary["spend"]["calls"]


def test_verify_counts_or_names_the_first_thing_wrong(dgm, searched, packed, tmp_path):
    by_name, by_file = (dgm.json("archive", "verify", name)["checked"] for name in ("small", packed))
    assert {key: by_file[key] for key in ("events", "agents", "exchanges")} == {
        key: by_name[key] for key in ("events", "agents", "exchanges")
    }
    bad = tmp_path / "bad.dgm"
    data = packed.read_bytes()
    bad.write_bytes(data[: len(data) // 2] + b"\0\0\0\0" + data[len(data) // 2 + 4 :])
    said = dgm("archive", "verify", bad, code=2).stderr
    assert said.startswith(f"dgm: {bad}: ")
    # What notices it depends on where it fell: a member's content, a header or, most often, the xz stream.
    assert "damaged" in said or "is not what" in said


def test_unpacking_says_where_the_settings_would_send_keys(dgm, searched, tmp_path):
    copy_of_run(dgm.archive / "small", tmp_path / "theirs")
    frozen = tmp_path / "theirs" / "run.json"
    body = json.loads(frozen.read_text())
    body["config"]["settings"]["providers"] = {"openai": {"base_url": "https://models.example/v1"}}
    frozen.write_text(json.dumps(body))
    dgm("archive", "pack", tmp_path / "theirs", tmp_path / "theirs.dgm")
    said = dgm("archive", "unpack", tmp_path / "theirs.dgm", tmp_path / "mine").stdout
    assert "before you resume it" in said
    assert "https://models.example/v1" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["archive", "pack", "small", "{packed}"], "already exists"),
        (["archive", "pack", "smal", "new.dgm"], "did you mean 'small'?"),
        (["archive", "pack", "small", "new.zip"], "ends in .dgm"),
        (["archive", "unpack", "{packed}"], "already exists"),
        (["archive", "unpack", "absent.dgm"], "no run 'absent.dgm'"),
        (["archive", "verify", "absent.dgm"], "no run 'absent.dgm'"),
        (["archive", "unpack", "small"], "is a run, not a packed one"),
        (["archive", "pakc"], "No such command"),
        (["tree", "absent.dgm"], "no run"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(dgm, searched, packed, words, message, tmp_path):
    done = dgm(*(word.format(packed=packed) for word in words), code=2, cwd=tmp_path)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "new.zip").exists()
