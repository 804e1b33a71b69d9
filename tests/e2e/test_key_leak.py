"""A provider's key is nowhere: not in a run's files, in what is printed or logged, or in what is published of it."""

import base64
import json
import lzma
import subprocess
import sys
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from dgm.messages import RequestRefused
from tests.support.hosted import ANSWERED, KEY, PROVIDERS, count, rows
from tests.support.wire_server import Kind, Offline, Rule, Script, WireServer

pytestmark = pytest.mark.sandbox

SNOOP = Path(__file__).parent / "agents" / "snoop"
MARK = b"SNOOPED"
"""What the agent begins its findings with: where that is found, a key would be."""
SECRETS = {
    KEY.encode(),
    KEY[:20].encode(),
    KEY[8:22].encode(),
    KEY[-14:].encode(),
    base64.b64encode(KEY.encode()),
}
DEBUG = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, filename=sys.argv.pop(1))
from dgm.cli.main import main
main()
"""
FAULTS = (Kind.ERROR_500, Kind.RESET, Kind.TRUNCATED, Kind.MALFORMED, Kind.HTML, Kind.ERROR_EVENT)


class Tattling:
    """The offline model behind a provider that now and then says its client's key aloud, as some have."""

    def __init__(self):
        self.model = Offline()
        self.asked = 0

    async def answer(self, request):
        self.asked += 1
        if self.asked % 4 == 0:
            raise RequestRefused(
                "invalid_value", f"The key {KEY} may not say that; key={KEY[:20]} {KEY[-16:]}."
            )
        return await self.model.answer(request)


def contents(folder):
    """Everything that a run's folder holds, unpacked: where, and the bytes."""
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            yield f"file {path.relative_to(folder)}", data
    for name, packed in rows(folder, "select sha256, zlib from blobs"):
        yield f"trace {name}", zlib.decompress(packed)
    yield "log", repr(rows(folder, "select * from events")).encode()
    objects = ["git", "-C", folder / "agents.git", "cat-file", "--batch", "--batch-all-objects"]
    yield "git objects", subprocess.run(objects, capture_output=True, check=True).stdout


def leaks(found):
    return [(where, secret) for where, data in found for secret in SECRETS if secret in data]


@pytest.fixture
def program(dgm, tmp_path):
    """The program with keys, its vendors' packages and everything else as talkative as they can be."""
    talkative = {"OPENAI_LOG": "debug", "ANTHROPIC_LOG": "debug"}
    return replace(dgm, environment={**talkative, **{each.key_env: KEY for each in PROVIDERS.values()}})


def run_with_debug_log(program, log, *command):
    """The program inside another one that logs everything."""
    done = subprocess.run(
        [sys.executable, "-c", DEBUG, log, *command], env=program.variables, capture_output=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def search(provider, server, name, *more):
    return [
        *("run", "--name", name, "--set", "sandbox=bubblewrap", "--agent", str(SNOOP), "--workers", "1"),
        *("--max-evaluations", "2", *provider.words(server.url), *more),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openai", pytest.param("anthropic", marks=pytest.mark.sampled)])
def test_a_planted_key_is_found_nowhere(program, name, tmp_path):
    provider, run = PROVIDERS[name], program.archive / f"leak-{name}"
    script = Script((Rule(FAULTS, every=4),))
    with WireServer(key=KEY, models=(provider.own_name,), brain=Tattling(), script=script) as server:
        code, said = run_with_debug_log(program, tmp_path / "debug.log", *search(provider, server, run.name))
        assert code == 0, said[-3000:]
        assert server.faults
        server.app.config = replace(server.app.config, key=KEY + "-renewed")
        wrong, more = run_with_debug_log(
            program, tmp_path / "wrong.log", "resume", run.name, "--max-evaluations", "9"
        )
        assert wrong == 2
    looks = (["status"], ["show"], ["show", 0], ["show", "--events"], ["report"], ["show", "--lineage"])
    looked = [program(words[0], run.name, *words[1:]).stdout.encode() for words in looks]
    packed, unpacked = tmp_path / "leak.dgm", tmp_path / "unpacked"
    program("export", run.name, packed)
    program("export", packed, f"{unpacked}/")

    places = {
        "run": list(contents(run)),
        "unpacked": list(contents(unpacked)),
        "packed": [("packed", lzma.decompress(packed.read_bytes()))],
        "logs": [(path.name, path.read_bytes()) for path in tmp_path.glob("*.log")],
        "output": [("output", text) for text in (said, more, *looked)],
    }
    for place, found in places.items():
        assert leaks(found) == [], place
    told = b"\n".join(data for _, data in places["run"])
    assert b"The key *** may not say that" in told, "an agent is told what its provider says, without the key"
    assert b"DEBUG" in places["logs"][0][1]
    seen = Counter(where.partition(" ")[0] for where, data in places["run"] if MARK in data)
    assert seen["trace"] >= 3, "the agent's findings are in the traces"
    assert seen["git"] == 1, "and in its children"


REFUSED = {
    (404, "model_not_found"): (
        "the model 'gemini-4-pro'",
        "the model 'claude-opus-5-5'",
        "the model 'mistral-large-4'",
    ),
    (404, "unknown_endpoint"): ("POST /v1/embeddings", "GET /v1/files"),
    (400, ""): ("web_search", "mcp", "web_search_20250305", "image_url", "image", "messages"),
}
"""What the agent is not given: status, code (empty: any), and what the messages name."""


def test_what_an_agent_was_not_given_is_refused_and_recorded(program):
    provider, run = PROVIDERS["openai"], program.archive / "refused"
    with WireServer(key=KEY, models=(provider.own_name,), brain=Offline()) as server:
        program(*search(provider, server, run.name, "--max-evaluations", "1"))
        asked = [record.body for record in server.requests if record.method == "POST"]
        assert len(asked) == server.answered == count(run, ANSWERED)
    assert {body["model"] for body in asked} == {provider.own_name}
    assert "example.org" not in str([body.get("tools") for body in asked])
    actions = rows(run, "select distinct action from events where kind = 'call_refused'")
    log = rows(run, "select body from events where kind = 'call_refused' and action = 1 order by seq")
    told = [json.loads(str(body)) for (body,) in log]
    assert (1,) in actions
    assert len(told) == sum(map(len, REFUSED.values()))
    for (status, code), messages in REFUSED.items():
        for message in messages:
            assert any(
                (event["status"], code or event["code"]) == (status, event["code"])
                and message in event["message"]
                for event in told
            ), (message, told)
