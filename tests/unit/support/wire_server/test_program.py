"""The server as a program, and the application behind other sockets."""

import asyncio
import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.support import wire_conversations as talk
from tests.support.wire_server import Config, Echo, Kind, WireServer, wire_app
from tests.support.wire_server.__main__ import main

pytestmark = pytest.mark.slow

CHAT = "/v1/chat/completions"
ROOT = Path(__file__).parents[4]


@pytest.mark.starts_processes
def test_the_program_serves_until_it_is_told_to_stop(tmp_path):
    script, log = tmp_path / "faults.toml", tmp_path / "requests.jsonl"
    script.write_text('[[fault]]\nkind = "error_500"\ncalls = [1]\n')
    command = [sys.executable, "-m", "tests.support.wire_server", "--key", "k", "--brain", "echo"]
    command += ["--price", f"{talk.GPT}=1000000,0", "--script", str(script), "--log", str(log)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
        try:
            url = program.stdout.readline().strip()
            headers = {"authorization": "Bearer k"}
            statuses = [
                httpx2.post(url + CHAT, json=talk.small(CHAT), headers=headers).status_code for _ in range(2)
            ]
        finally:
            program.send_signal(signal.SIGTERM)
        last = program.stdout.read()
    assert statuses == [500, 200]
    assert program.returncode == 0
    assert last == "answered=1 spent_usd=1.000000 error_500=1\n"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["status"], line["fault"]) for line in lines] == [(500, "error_500"), (200, None)]
    assert lines[1]["reply"]["text"] == "hello"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--price", "m=1"], "expected MODEL=IN,OUT"),
        (["--script", "/does/not/exist.toml"], "exist.toml"),
    ],
)
def test_bad_arguments_are_one_clear_line(capsys, arguments, told):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_it_listens_on_a_unix_socket(tmp_path):
    path = tmp_path / "wire.sock"
    with WireServer(uds=path) as server:
        transport = httpx2.HTTPTransport(uds=str(path))
        with httpx2.Client(transport=transport, base_url=server.url) as client:
            answer = client.post(CHAT, json=talk.small(CHAT), headers={"authorization": f"Bearer {talk.KEY}"})
        assert answer.json()["choices"][0]["message"]["content"] == "hello"
    assert not path.exists()


def test_the_bare_application_answers():
    app = wire_app(Config(key="k"))

    async def asked():
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.post(CHAT, json=talk.small(CHAT), headers={"authorization": "Bearer k"})

    assert asyncio.run(asked()).status_code == 200
    assert app.answered == 1


class Waiting(Echo):
    """Answers when it is let go."""

    def __init__(self):
        self.go = asyncio.Event()

    async def answer(self, request):
        await self.go.wait()
        return await super().answer(request)


def test_more_calls_at_once_than_allowed_are_too_many():
    async def asked():
        brain = Waiting()
        app = wire_app(Config(brain=brain, concurrency=2))
        key = {"authorization": f"Bearer {talk.KEY}"}
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url="http://x", headers=key
        ) as client:
            calls = [asyncio.create_task(client.post(CHAT, json=talk.small(CHAT))) for _ in range(4)]
            refused = [await first for first in itertools.islice(asyncio.as_completed(calls, timeout=60), 2)]
            assert [answer.status_code for answer in refused] == [429, 429]
            brain.go.set()
            return app, sorted([answer.status_code for answer in await asyncio.gather(*calls)])

    app, statuses = asyncio.run(asked())
    assert statuses == [200, 200, 429, 429]
    assert app.faults == {Kind.RATE_LIMIT: 2}


def test_addresses_that_are_none_are_refused():
    with WireServer() as server:
        assert talk.raw(server, "/v1/embeddings", {}).status_code == 404
        key = {"authorization": f"Bearer {talk.KEY}"}
        assert httpx2.get(server.url + CHAT, headers=key).status_code == 405
        assert httpx2.post(server.url + CHAT, content=b"{", headers=key).status_code == 400


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (CHAT, {"tools": [{"type": "function", "function": {"name": "f", "parameters": [1]}}]}),
        (CHAT, {"messages": [{"role": "assistant", "content": None, "tool_calls": [1]}]}),
        ("/v1/responses", {"include": 7}),
        (
            "/v1/responses",
            {"input": [{"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": 4}]},
        ),
        ("/v1/messages", {"output_config": [1]}),
        ("/v1/messages", {"tools": 5}),
        ("/v1/messages", {"messages": [{"role": ["user"], "content": 5}]}),
        ("/v1/messages/count_tokens", {"model": talk.CLAUDE, "messages": 3}),
    ],
)
def test_a_field_of_another_type_is_the_clients_mistake(path, more):
    with WireServer() as server:
        body = {**(talk.small(path) if "count" not in path else {}), **more}
        answer = talk.raw(
            server, path, body, headers={"anthropic-version": "2023-06-01"} if "count" in path else {}
        )
    assert answer.status_code == 400
