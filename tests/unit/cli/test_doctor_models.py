"""What ``dgm doctor`` says about models: names of keys, never keys; and it asks for no money."""

import json

import pytest

from dgm.models import local_servers
from dgm.models.local_servers import USUAL
from dgm.sessions.machine import model_rows
from tests.unit.models.test_local_servers import MODELS, server

KEY = "sk-planted-0123456789abcdef"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_COMPATIBLE_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def rows(known=lambda provider: None, servers=None):
    answering = servers or {}
    found = model_rows(lambda urls: {url: answering[url] for url in urls if url in answering}, known)
    return {name: (ok, detail) for name, ok, detail in found}


def test_bare_machine_says_what_is_missing_and_chooses_offline():
    found = rows()
    assert found["key: OPENAI_API_KEY"] == (False, "not set; needed for openai/… only")
    assert found["model server: Ollama"] == (False, f"{USUAL[0].base_url}: does not answer")
    assert found["model chosen by auto"][0]
    assert found["model chosen by auto"][1].startswith("offline")


def test_set_key_is_named_and_never_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = rows()
    assert found["key: OPENAI_API_KEY"] == (True, "set, for openai/…")
    ok, why = found["model chosen by auto"]
    assert ok
    assert why.startswith("openai/")
    assert why.endswith("asks you before it is used for the first time")
    assert KEY not in str(found)


def test_answer_of_the_user_counts(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert rows(lambda provider: True)["model chosen by auto"][1].endswith("OPENAI_API_KEY is set")
    assert rows(lambda provider: False)["model chosen by auto"][1].startswith("offline")


def test_key_that_cannot_be_one_is_found_without_showing_it(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-planted two-words")
    ok, detail = rows()["key: ANTHROPIC_API_KEY"]
    assert not ok
    assert "ANTHROPIC_API_KEY" in detail
    assert "planted" not in detail


def test_address_that_is_none_makes_the_choice_fail(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "nonsense")
    assert rows()["model chosen by auto"] == (
        False,
        "OPENAI_BASE_URL = 'nonsense': expected an address such as http://127.0.0.1:8000/v1",
    )


def test_servers_that_answer_are_listed_with_some_models():
    found = rows(servers={USUAL[2].base_url: ("a", "b", "c", "d", "e")})
    assert found["model server: vLLM"] == (True, f"{USUAL[2].base_url}: a, b, c and 2 more")
    assert found["model chosen by auto"][1] == f"openai-compatible/a: vLLM answers at {USUAL[2].base_url}"


def test_real_server_is_asked_for_its_list_and_nothing_else():
    with server(json.dumps(MODELS).encode()) as (url, asked):
        model_rows(lambda urls: local_servers.probe([url]), lambda provider: None)
    assert set(asked) == {"/v1/models"}


def test_price_table_is_dated():
    ok, detail = rows()["model prices"]
    assert ok
    assert "as of 20" in detail
