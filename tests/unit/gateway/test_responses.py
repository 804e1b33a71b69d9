"""Responses: items become turns, answers are read by the vendor's own client, plain and streamed."""

from dgm.messages import Message, Role
from dgm.wires import RESPONSES
from tests.support.gateway import wire_bench
from tests.support.gateway.wire_bench import CALLED, SCHEMA

TOOL = {"type": "function", "name": "bash", "description": "Run it.", "parameters": SCHEMA, "strict": True}
LS, PWD = CALLED.calls


def parse(**body):
    return wire_bench.parse(RESPONSES, {"input": "go", **body})


def call(tool_call):
    return {
        "type": "function_call",
        "call_id": tool_call.id,
        "name": tool_call.name,
        "arguments": tool_call.arguments,
    }


def output(call_id, told):
    return {"type": "function_call_output", "call_id": call_id, "output": told}


def test_every_wish_for_the_model_is_carried():
    asked = parse(
        model="m",
        instructions="Be brief.",
        tools=[TOOL],
        tool_choice={"type": "function", "name": "bash"},
        parallel_tool_calls=False,
        top_p=0.5,
        temperature=0.25,
        reasoning={"effort": "high", "summary": "auto"},
        max_output_tokens=99,
        previous_response_id="resp_7_1",
    )
    request = asked.request
    assert request.messages == (Message(Role.SYSTEM, "Be brief."), Message(Role.USER, "go"))
    assert (request.model, request.tool_choice, request.parallel) == ("m", "tool:bash", False)
    assert (request.top_p, request.temperature, request.effort, request.max_output_tokens) == (
        0.5,
        0.25,
        "high",
        99,
    )
    assert (asked.previous, asked.preface) == ("resp_7_1", 1)


def test_items_between_results_are_one_turn():
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": [], "logprobs": []}],
        },
        {**call(LS), "id": "fc_1", "status": "completed"},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        call(PWD),
        output("call_1", "a.py"),
        output("call_2", [{"type": "input_text", "text": "/"}, {"type": "input_text", "text": "w"}]),
        {"role": "assistant", "content": "Done."},
        {"role": "developer", "content": "Thanks."},
    ]
    assert parse(input=items).request.messages == (
        Message(Role.USER, "go"),
        Message(Role.ASSISTANT, "Let me look.", CALLED.calls),
        Message(Role.TOOL, "a.py", (), "call_1"),
        Message(Role.TOOL, "/w", (), "call_2"),
        Message(Role.ASSISTANT, "Done."),
        Message(Role.SYSTEM, "Thanks."),
    )


def test_instructions_are_not_inherited_by_the_next_call():
    first = parse(instructions="Be brief.")
    kept = (*first.inherited(first.request), Message(Role.ASSISTANT, "Hi."))
    after = parse(instructions="Be long.", input="on").after(kept)
    assert [message.text for message in after.messages] == ["Be long.", "go", "Hi.", "on"]
    whole = parse(input="on").after(kept)
    assert [message.text for message in whole.messages] == ["go", "Hi.", "on"]
