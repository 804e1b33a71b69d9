"""What an agent may ask of a provider: what passes arrives as it was, the rest is left out or refused; no key leaks."""

import base64
import json
import logging

import pytest

from tests.support.gateway.requests import load_passing
from tests.support.pins.agents import PATHS, TOOLS, agent_of, answering, question, records, run, stage
from tests.support.pins.door import KEY, read_contents, read_notes
from tests.support.pins.provider import in_turn, play_either

pytestmark = pytest.mark.starts_processes

USER = {"role": "user", "content": "go"}
BASE = {
    "chat": {"messages": [USER]},
    "responses": {"input": "go"},
    "messages": {"messages": [USER], "max_tokens": 4000},
}
"""What is added to requests that name nothing but a field."""
SET = ("model", "store", "include", "stream", "stream_options")
SET += ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Keys that are dgm's to set."""
CHANGED = ("image as a result", "shell", "choice among some", "more thinking than one answer, between tools")
"""Requests of which a part is replaced by what a provider takes."""
URL = "https://a.example/x.png"
FAR = {"type": "mcp", "server_label": "s", "server_url": URL}


def turn(**part):
    return [{"role": "user", "content": [part]}]


REFUSED = {
    "chat": {
        "picture by address": {"messages": turn(type="image_url", image_url={"url": URL})},
        "stored file": {"messages": turn(type="file", file={"file_id": "file-1"})},
        "remote server": {"tools": [TOOLS["chat"], FAR]},
        "only a provider's tool": {"tools": [{"type": "code_interpreter"}]},
        "search": {"web_search_options": {}},
        "other server": {"api_base": "http://169.254.169.254"},
        "program": {"logits_processors": ["os.system"]},
        "schema by address": {
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"$ref": URL}}}]
        },
        "higher limit": {"options": {"num_predict": 99_999}},
        "dear service": {"service_tier": "priority"},
    },
    "responses": {
        "picture by address": {"input": turn(type="input_image", image_url=URL)},
        "stored file": {"input": turn(type="input_file", file_id="file-1")},
        "remote server": {"tools": [TOOLS["responses"], FAR]},
        "stored answer": {"previous_response_id": "resp_of_somebody"},
        "stored prompt": {"prompt": {"id": "pmpt_1"}},
        "conversation": {"conversation": "conv_1"},
        "background": {"background": True},
    },
    "messages": {
        "picture by address": {"messages": turn(type="image", source={"type": "url", "url": URL})},
        "remote server": {"mcp_servers": [{"type": "url", "url": URL, "name": "n"}]},
        "container": {"container": "container_1"},
        "beta mcp-client-2025-11-20": {},
        "beta files-api-2025-04-14": {},
        "beta message-batches-2024-09-24": {},
    },
}
SEARCH = {"chat": "web_search", "responses": "web_search", "messages": "web_search_20250305"}
HEADERS = {
    "cookie": "secret=1",
    "openai-organization": "org-1",
    "x-forwarded-for": "10.0.0.1",
    "anthropic-beta": "time-travel-2031-01-01,effort-2025-11-24",
}


def converse(folder, protocol, play, requests):
    """Return the answers to requests of one agent, each a body and headers, and what the provider was asked."""

    async def scenario():
        opened = stage(folder, protocol, play, limits={"calls": 1000})
        async with opened as (provider, door), agent_of(door) as agent:
            return [await agent.post(protocol, *request) for request in requests], provider.asked

    return run(scenario())


def asks_for(body):
    """Return the keys of a body that ask for something, but those that are dgm's to set."""
    return {
        key: value
        for key, value in body.items()
        if key not in SET and value not in (None, [], {}) and value is not False
    }


@pytest.mark.parametrize("protocol", PATHS)
def test_requests_of_real_programs_arrive_as_they_were(tmp_path, protocol):
    passing = load_passing(protocol)
    bodies = {name: {**BASE[protocol], **body, "stream": False} for name, body in passing.items()}
    plain = records(protocol, {**question(protocol), "model": "m"})
    requests = [(body, {}) for body in bodies.values()]
    answers, asked = converse(tmp_path / "run", protocol, lambda request: request.send(plain[0]), requests)
    statuses = [answer.status_code for answer in answers]
    assert dict(zip(bodies, statuses, strict=True)) == dict.fromkeys(bodies, 200)
    for (name, body), request in zip(bodies.items(), asked, strict=True):
        assert name in CHANGED or asks_for(request.body) == asks_for(body), name


@pytest.mark.parametrize("protocol", PATHS)
def test_what_reaches_further_than_the_model_is_refused(tmp_path, protocol):
    cases = REFUSED[protocol]
    betas = [{"anthropic-beta": name.removeprefix("beta ")} if "beta " in name else {} for name in cases]
    requests = [(question(protocol, **body), beta) for body, beta in zip(cases.values(), betas, strict=True)]
    answers, asked = converse(tmp_path / "run", protocol, answering(protocol), requests)
    statuses = [answer.status_code for answer in answers]
    assert dict(zip(cases, statuses, strict=True)) == dict.fromkeys(cases, 400)
    assert asked == []
    assert [status for status, _ in read_notes(tmp_path / "run")] == [400] * len(cases)


@pytest.mark.parametrize("protocol", PATHS)
def test_what_is_no_part_of_the_question_is_left_out_and_named(tmp_path, protocol):
    plain, search = question(protocol), {"type": SEARCH[protocol], "name": "web_search"}
    more = {"brilliance": 4, "tools": [search, TOOLS[protocol]]}
    requests = [(plain, {}), ({**plain, **more}, HEADERS)]
    answers, (usual, asked) = converse(tmp_path / "run", protocol, answering(protocol), requests)
    assert [answer.status_code for answer in answers] == [200, 200]
    assert asked.body == usual.body
    assert set(HEADERS) & set(asked.headers) <= {"anthropic-beta"}
    ((status, message),) = read_notes(tmp_path / "run")
    assert status == 200
    assert "brilliance" in message
    assert SEARCH[protocol] in message
    if protocol == "messages":
        assert asked.headers["anthropic-beta"] == "effort-2025-11-24"
        assert "time-travel-2031-01-01" in message


@pytest.mark.parametrize("protocol", PATHS)
def test_a_key_that_a_provider_repeats_is_nowhere(tmp_path, protocol, caplog, capfd, monkeypatch):
    """In answers, streamed and whole, and in refusals: not for the agent, not in the run's files, not in the log."""
    monkeypatch.setenv("OPENAI_LOG", "debug")
    caplog.set_level(logging.DEBUG)
    error = {"type": "invalid_request_error", "message": f"The key {KEY} may not do that", "code": "odd"}
    refusal = json.dumps({"type": "error", "error": error}).encode()

    async def tell(asked):
        logging.getLogger("library").debug("a library logs what it sends: %s", asked.headers)
        content = [one.replace(b"I look at", f"{KEY} at".encode()) for one in records(protocol, asked.body)]
        await play_either(asked, content)

    play = in_turn(
        lambda asked: asked.send(refusal, status=400),
        tell,
        lambda asked: asked.send(f"<html>{KEY}</html>".encode(), status=500, kind="text/html"),
        tell,
    )
    kinds = ("refused", "streamed", "whole")
    requests = [(question(protocol, kind, stream=kind == "streamed"), {}) for kind in kinds]
    answers, asked = converse(tmp_path / "run", protocol, play, requests)
    assert [answer.status_code for answer in answers] == [400, 200, 200]
    assert "***" in answers[0].text
    assert all("*** at" in answer.text for answer in answers[1:])
    assert all(KEY in str(request.headers) for request in asked)
    printed = capfd.readouterr()
    places = {
        "agent": [answer.content for answer in answers],
        "files": list(read_contents(tmp_path / "run")),
        "log": [caplog.text.encode(), printed.out.encode(), printed.err.encode()],
    }
    secrets = (KEY.encode(), KEY[8:30].encode(), base64.b64encode(KEY.encode()))
    for place, contents in places.items():
        assert [data for data in contents if any(secret in data for secret in secrets)] == [], place
    assert any(b"may not do that" in data for data in places["files"])
    assert b"DEBUG" in places["log"][0]
