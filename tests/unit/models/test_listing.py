"""Sizes in the lists of models that servers give."""

import asyncio

import pytest

from dgm.models.abilities import Abilities
from dgm.models.check import read_listed_sizes
from tests.support.models.connecting import KEY, clear_environment, connect
from tests.support.models.recording_server import recording, said

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    clear_environment(monkeypatch)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def sizes(connection):
    async def asking():
        try:
            return await read_listed_sizes(connection, "m")
        finally:
            await connection.close()

    return asyncio.run(asking())


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
    with recording(lambda _: said({"data": [{"id": "other", "max_model_len": 1}, {"id": "m", **entry}]})) as (
        url,
        _,
    ):
        connection = connect("openai-compatible/m", compatible={"base_url": url})
        assert sizes(connection) == Abilities(context=context, max_output=output)
