"""Lists of models as servers give them, and base URLs that miss their end."""

import asyncio

import pytest

from dgm.models.check import ModelRow, is_unknown_path, list_models, read_row, suggest_url
from tests.support.models.connecting import KEY, clear_environment, connect
from tests.support.models.recording_server import Answer, recording, said

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    clear_environment(monkeypatch)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.parametrize(
    ("entry", "context", "output"),
    [
        ({"object": "model"}, None, None),
        ({"max_model_len": 40960}, 40960, None),
        ({"context_length": 200000, "top_provider": {"max_completion_tokens": 64000}}, 200000, 64000),
        ({"context_length": 8, "top_provider": None}, 8, None),
        ({"meta": {"n_ctx_train": 131072}}, 131072, None),
        ({"meta": {"n_ctx": 4096, "n_ctx_train": 131072}}, 4096, None),
        ({"max_input_tokens": 1000000, "max_tokens": 128000}, 1000000, 128000),
        ({"max_context_length": 32768, "loaded_context_length": 4096}, 4096, None),
        ({"context_window": 131072, "max_completion_tokens": 32768}, 131072, 32768),
        ({"max_model_len": "many", "context_length": True, "meta": [], "top_provider": 3}, None, None),
        ({"context_length": 0, "max_tokens": -1}, None, None),
    ],
)
def test_sizes_are_read_where_a_server_says_them(entry, context, output):
    assert read_row({"id": "m", **entry}) == ModelRow("m", context, output)


@pytest.mark.parametrize("entry", [None, "m", {}, {"id": 3}])
def test_entry_without_a_name_is_none(entry):
    assert read_row(entry) is None


def ask(function, connection):
    async def asking():
        try:
            return await function(connection)
        finally:
            await connection.close()

    return asyncio.run(asking())


def test_list_is_read_at_each_kind_of_provider():
    with recording(lambda _: said({"data": [{"id": "a", "max_tokens": 9}, {"id": 7}]})) as (url, asked):
        for name, sections in (
            ("openai/a", {"openai": {"base_url": f"{url}/v1"}}),
            ("openai-compatible/a", {"compatible": {"base_url": f"{url}/v1"}}),
            ("anthropic/a", {"anthropic": {"base_url": url}}),
        ):
            assert ask(list_models, connect(name, **sections)) == (ModelRow("a", None, 9),)
    assert [one.path for one in asked] == ["/v1/models"] * 3
    assert [one.method for one in asked] == ["GET"] * 3
    assert asked[2].query == "limit=1000"


@pytest.mark.parametrize(
    "answer",
    [
        said({}, 401),
        said({}, 403),
        said({}, 404),
        said({}, 500),
        said([]),
        said({"data": {}}),
        Answer(content=b"<html>", headers={"content-type": "text/html"}),
    ],
)
def test_no_list_is_none(answer):
    with recording(lambda _: answer) as (url, _):
        assert ask(list_models, connect("openai-compatible/a", compatible={"base_url": url})) is None


def only_below(prefix, kind="/models"):
    return lambda one: said({"data": []}) if one.path == prefix + kind else Answer(404, b"404 page not found")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("", "/v1"),
        ("/", "/v1"),
        ("/v1/chat/completions", "/v1"),
        ("/api", "/api/v1"),
        ("/wrong", "/v1"),
        ("", "/api/v1"),
        ("/v1", "/openai/v1"),
    ],
)
def test_base_url_that_was_meant_is_proposed(given, meant):
    with recording(only_below(meant)) as (url, _):
        connection = connect("openai-compatible/a", compatible={"base_url": url + given})
        assert ask(suggest_url, connection) == url + meant


@pytest.mark.parametrize(
    ("given", "meant"), [("/v1/messages", ""), ("/wrong", ""), ("/api", "/api/anthropic")]
)
def test_base_url_of_messages_is_proposed_without_its_version(given, meant):
    with recording(only_below(f"{meant}/v1")) as (url, _):
        assert ask(suggest_url, connect("anthropic/a", anthropic={"base_url": url + given})) == url + meant


def test_nothing_is_proposed_where_nothing_answers():
    with recording(lambda _: Answer(404, b"")) as (url, _):
        assert ask(suggest_url, connect("openai-compatible/a", compatible={"base_url": f"{url}/x"})) is None


@pytest.mark.parametrize(
    ("answer", "unknown"),
    [
        (Answer(404, b"404 page not found"), True),
        (said({"detail": "Not Found"}, 404), True),
        (said({"error": {"message": "Invalid URL (POST /chat/completions)"}}, 404), True),
        (said({"detail": "Method Not Allowed"}, 405), True),
        (said({"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}, 404), False),
        (said({"type": "error", "error": {"type": "not_found_error", "message": "model: m"}}, 404), False),
        (said({"detail": "Not Found"}, 400), False),
    ],
)
def test_unknown_path_is_told_from_an_unknown_model(answer, unknown):
    async def post(connection):
        return await connection.post("/chat/completions", {"model": "m"}, stream=False, headers={})

    with recording(lambda _: answer) as (url, _):
        response = ask(post, connect("openai-compatible/a", compatible={"base_url": url}))
    assert is_unknown_path(response) is unknown
