"""``dgm.doctor``, ``dgm.settings``, and the command that shows both: names of keys, never keys, and no paid call."""

import json

import pytest

import dgm
from dgm.api.machine import check_providers, remove_runs
from dgm.cli.main import main
from dgm.config import Settings, resolve
from dgm.config.listing import NAME, list_settings
from dgm.errors import UserError
from dgm.models.auto import USUAL, probe_servers
from tests.support.runs.made import make_run
from tests.unit.models.test_local_servers import MODELS, server

KEY = "sk-planted-0123456789abcdef"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_COMPATIBLE_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def rows(known=lambda provider: None, servers=None):
    answering = servers or {}
    found = check_providers(lambda urls: {url: answering[url] for url in urls if url in answering}, known)
    return {row.check: (row.ok, row.detail) for row in found}


def run(capsys, *words, code=0):
    with pytest.raises(SystemExit) as ended:
        main(["doctor", *words])
    assert (ended.value.code or 0) == code
    return capsys.readouterr()


def test_bare_machine_lacks_keys_and_servers_and_chooses_offline():
    found = rows()
    assert not found["key: OPENAI_API_KEY"][0]
    assert not found["model server: Ollama"][0]
    assert found["model chosen by auto"][0]
    assert found["model chosen by auto"][1].startswith("offline")


def test_set_key_is_named_and_never_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = rows()
    assert found["key: OPENAI_API_KEY"][0]
    assert found["model chosen by auto"][1].startswith("openai/")
    assert found["model chosen by auto"][1] != rows(lambda provider: True)["model chosen by auto"][1]
    assert KEY not in str(found)


def test_a_provider_that_the_user_declined_is_not_chosen(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert rows(lambda provider: False)["model chosen by auto"][1].startswith("offline")


def test_key_that_cannot_be_one_is_found_without_showing_it(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-planted two-words")
    ok, detail = rows()["key: ANTHROPIC_API_KEY"]
    assert not ok
    assert "planted" not in detail


def test_address_that_is_none_makes_the_choice_fail(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "nonsense")
    ok, detail = rows()["model chosen by auto"]
    assert not ok
    assert "OPENAI_BASE_URL = 'nonsense'" in detail


def test_servers_that_answer_are_listed_with_some_models():
    found = rows(servers={USUAL[2].base_url: ("a", "b", "c", "d", "e")})
    assert found["model server: vLLM"] == (True, f"{USUAL[2].base_url}: a, b, c and 2 more")
    assert found["model chosen by auto"][1].startswith("openai-compatible/a: ")


def test_real_server_is_asked_for_its_list_and_nothing_else():
    with server(json.dumps(MODELS).encode()) as (url, asked):
        check_providers(lambda urls: probe_servers([url]), lambda provider: None)
    assert set(asked) == {"/v1/models"}


@pytest.mark.starts_processes
def test_without_git_no_search_can_run(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    view = dgm.doctor("offline")
    checks = {row.check: row for row in view.checks}
    assert (checks["git"].ok, checks["git"].required) == (False, True)
    assert checks["model offline"].ok
    assert not view.ok
    text = run(capsys, code=1).out
    assert "NO  git " in text
    assert "--  keys " in text


def test_every_setting_can_be_set_and_means_something():
    found = list_settings()
    assert len({row.name for row in found}) == len(found) > 100
    assert all(row.meaning and row.type for row in found)
    plain = [row for row in found if NAME not in row.name and row.default is not None]
    given = {
        row.name: row.default for row in plain if row.type != "table" and not row.name.startswith("mining.")
    }
    assert resolve(None, [], given) == Settings()


@pytest.mark.parametrize(
    ("name", "type_", "default", "choices"),
    [
        ("workers", "whole number from 1 to 4096", 2, ()),
        ("policy.alpha", "number above 0 below 1", 0.6, ()),
        ("gates.flips", "true | false", False, ("true", "false")),
        ("gates.on_timeout", "reject | accept", None, ("reject", "accept")),
        ("limits.usd", "number above 0", None, ()),
        ("models.aliases", "table", {}, ()),
        (f"models.prices.{NAME}.input", "number from 0", None, ()),
    ],
)
def test_types_and_defaults_are_those_of_the_record(name, type_, default, choices):
    (row,) = [row for row in dgm.settings(name).settings if row.name == name]
    assert (row.type, row.default, row.choices) == (type_, default, choices)
    assert row.required == name.endswith(".input")


def test_settings_are_found_by_name_then_by_meaning(capsys):
    assert [row.name for row in dgm.settings("limits.*_usd").settings] == ["limits.child_usd"]
    assert "gates.novelty" in [row.name for row in dgm.settings("near copy of another").settings]
    assert "DGM_ARCHIVE" in [row.name for row in dgm.settings().variables]
    assert run(capsys, "--settings", "limits.calls").out.startswith(
        "[limits]  Bounds on a single action.\n  limits.calls  whole number from 1, default 80\n"
    )
    assert len(json.loads(run(capsys, "--settings", "--json").out)["settings"]) > 100


def test_a_setting_that_does_not_exist_is_refused_with_the_nearest_names():
    with pytest.raises(UserError, match=r"'limts\.calls' \(nearest: limits\.calls, "):
        dgm.settings("limts.calls")
    with pytest.raises(UserError, match=r"'workrs' \(nearest: workers"):
        dgm.settings("workrs")


@pytest.mark.parametrize(
    "words", [("first",), ("--set", "a=b"), ("--clean", "none"), ("--clean", "--build"), ("--colour",)]
)
def test_bad_input_is_one_line(capsys, words):
    assert run(capsys, *words, code=2).err.count("\n") == 1


@pytest.mark.starts_processes
def test_a_run_is_removed_only_after_a_yes(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    run_folder = make_run(tmp_path / "first", verdicts=["+"])
    assert run(capsys, "--clean", "first", code=2).err.endswith("a script removes its folder\n")
    assert remove_runs("first", confirm=lambda sizes: False).runs == ()
    assert run_folder.exists()
    asked = []
    view = remove_runs("first", confirm=lambda sizes: asked.append(sizes) or True)
    assert [(row.run, row.bytes) for row in view.runs] == [("first", asked[0][run_folder])]
    assert not run_folder.exists()
