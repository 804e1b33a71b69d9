"""What programs of the command line send, in short, is answered behind a model of each protocol.

Each file of ``programs`` holds the second or third request of a real program, recorded before a server without dgm and
reduced to what a gateway may stumble over; the calls that its model makes; and what is left out on the way.
"""

import asyncio
import json
from pathlib import Path

import pytest

from dgm.messages import WireProtocol, WireReply
from tests.support.gateway.bench import ACTION, MemoryJournal, client, gateway
from tests.support.gateway.wire_provider import USAGE, Provider

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.json"))
ARGUMENTS = {"input": "ls"}


def load(program):
    return json.loads((FOLDER / f"{program}.json").read_text())


def reply_calling(protocol, name):
    """A whole answer that calls a tool, in a protocol's words."""
    written = json.dumps(ARGUMENTS)
    match protocol:
        case WireProtocol.CHAT:
            call = {"id": "call_9", "type": "function", "function": {"name": name, "arguments": written}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            return {
                "id": "c1",
                "object": "chat.completion",
                "created": 1,
                "model": "own",
                "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            }
        case WireProtocol.MESSAGES:
            return {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "own",
                "content": [{"type": "tool_use", "id": "call_9", "name": name, "input": ARGUMENTS}],
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": {"input_tokens": 10, "output_tokens": 5},
            }
        case _:
            item = {"id": "fc_1", "type": "function_call", "call_id": "call_9", "status": "completed"}
            return {
                "id": "resp_1",
                "object": "response",
                "created_at": 1,
                "status": "completed",
                "model": "own",
                "output": [{**item, "name": name, "arguments": written}],
                "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
            }


def calling(protocol, name):
    async def answer(_request, _delivery):
        return WireReply(protocol, json.dumps(reply_calling(protocol, name)).encode(), False, USAGE)

    return answer


def replay(folder, program, protocol, name):
    """The status and body of the answer, the request as the provider got it, and the notes."""

    async def scenario():
        journal, provider = MemoryJournal(), Provider(calling(protocol, name), protocol=protocol)
        async with gateway(folder, provider, journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    answers = [
                        await http.post(
                            program["path"],
                            json={**program["body"], "stream": False},
                            headers=program["headers"],
                        )
                        for _ in range(2)
                    ]
                return answers[0], provider.asked[0], journal

    return asyncio.run(asyncio.wait_for(scenario(), 60))


CASES = [(program, protocol) for program in PROGRAMS for protocol in WireProtocol]


def calls_in(answer):
    """The calls of an answer, without ids."""
    chosen = [
        call["function"] for each in answer.get("choices", ()) for call in each["message"]["tool_calls"]
    ]
    items = [*answer.get("output", ()), *answer.get("content", ()), *chosen]
    keys = ("type", "name", "namespace")
    return [{key: item[key] for key in keys if key in item} for item in items if "name" in item]


@pytest.mark.parametrize(("name", "protocol"), CASES)
def test_program_is_answered_in_the_form_of_its_tools_and_what_is_left_out_is_noted_once(
    tmp_path, name, protocol
):
    program = load(name)
    # aider has no tools.
    for number, (tool, call) in enumerate((program["calls"] or {"edit": {"name": "edit"}}).items()):
        answer, sent, journal = replay(tmp_path / str(number), program, protocol, tool)
        assert answer.status_code == 200, answer.text
        notes = [", ".join(program["left_out"][protocol])]
        assert [(status, code, words) for _, _, status, code, words in journal.refused] == [
            (200, "left_out", words) for words in notes if words
        ]
        # The record is of what was passed on.
        assert next(iter(journal.paid.values())).request == sent
        assert "web_search" not in json.dumps(sent.body)
        if not program["path"].startswith(f"/{protocol}"):
            assert calls_in(answer.json()) == [call]
            assert not program["calls"] or f'"{tool}"' in json.dumps(sent.body["tools"])


@pytest.mark.parametrize("protocol", [WireProtocol.CHAT, WireProtocol.MESSAGES])
def test_free_text_of_a_call_is_the_functions_only_text(tmp_path, protocol):
    program = load("codex_named")
    answer, sent, _ = replay(tmp_path / "g", program, protocol, "exec")
    (item,) = (item for item in answer.json()["output"] if item["type"] == "custom_tool_call")
    assert item["input"] == ARGUMENTS["input"]
    written = json.dumps(sent.body)
    assert "start: /.+/" in written
    assert "await tools.exec_command" in written
