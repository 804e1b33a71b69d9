"""A real LiteLLM proxy between dgm and a provider, as docs/models.md says how to set it up."""

import asyncio
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from dgm.config import Settings
from dgm.models.providers import COMPATIBLE, open_connection
from tests.agents.environments import environment
from tests.support.models.connecting import post
from tests.support.wire_server import Echo, WireServer

pytestmark = [pytest.mark.minutes, pytest.mark.timeout(900)]

MASTER_KEY = "sk-litellm-test-0123456789"
START_S = 120.0
TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}
CONFIG = """
model_list:
  - model_name: by-openai
    litellm_params: {{model: openai/wire-test, api_base: {url}/v1, api_key: test-key}}
  - model_name: by-anthropic
    litellm_params: {{model: anthropic/wire-test, api_base: {url}, api_key: test-key}}
general_settings:
  master_key: {key}
"""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    """The base URL of a proxy in front of the test server."""
    programs = environment("litellm", "litellm[proxy]")
    folder = tmp_path_factory.mktemp("litellm")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with WireServer(brain=Echo(), models=("wire-test",)) as server, (folder / "log").open("wb") as log:
        (folder / "config.yaml").write_text(CONFIG.format(url=server.url, key=MASTER_KEY))
        command = [
            programs / "litellm",
            "--config",
            folder / "config.yaml",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**kept, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"},
        )
        try:
            await_start(process, f"http://127.0.0.1:{port}/health/liveliness", folder / "log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(30)


def await_start(process, url, log):
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the proxy did not start: {log.read_text()[-3000:]}")


@pytest.fixture
def connect(proxy, monkeypatch):
    monkeypatch.setenv("LITELLM_MASTER_KEY", MASTER_KEY)
    section = {"base_url": proxy, "key_env": "LITELLM_MASTER_KEY"}
    models = Settings.model_validate({"model": "offline", "models": {"compatible": section}}).models
    return lambda name: open_connection(COMPATIBLE, models, name)


def ask(connection, **body):
    return post(connection, "/chat/completions", body)


MODELS = ["by-openai", "by-anthropic"]


@pytest.mark.parametrize("model", MODELS)
def test_answer_with_its_usage_comes_through(connect, model):
    said = [{"role": "user", "content": "one word"}]
    response = ask(connect(model), model=model, messages=said, tools=[TOOL], max_tokens=50)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["choices"][0]["message"]["content"]
    assert answer["usage"]["prompt_tokens"] > 0


@pytest.mark.parametrize("model", MODELS)
def test_stream_comes_through(connect, model):
    said = [{"role": "user", "content": "one word"}]
    options = {"stream": True, "stream_options": {"include_usage": True}}
    response = ask(connect(model), model=model, messages=said, max_tokens=50, **options)
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    assert any(chunk.get("usage") for chunk in chunks)


def test_list_and_refusals_come_through(connect, monkeypatch):
    async def listing():
        connection = connect(MODELS[0])
        listed = await connection.get(connection.list_path)
        await connection.close()
        return json.loads(listed)["data"]

    assert {row["id"] for row in asyncio.run(listing())} == set(MODELS)
    unknown = ask(connect("nobody"), model="nobody", messages=[{"role": "user", "content": "x"}])
    assert unknown.status_code in {400, 404}
    monkeypatch.setenv("LITELLM_MASTER_KEY", "sk-litellm-wrong-0123456789")
    refused = ask(connect(MODELS[0]), model=MODELS[0], messages=[{"role": "user", "content": "x"}])
    assert refused.status_code in {400, 401, 403}
