"""A job's recorded calls as conversations: everything once, in order, whatever the agent does with its context."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dgm.archive.conversations import Prompts, Turn, collect_threads, main_conversation, thread_of
from dgm.domain import Usage
from dgm.messages import Message, Reply, Request, Role, Tool, ToolCall, WireProtocol, WireReply
from dgm.wires import WIRES, whole_of

RECORDED = Path(__file__).parents[1] / "gateway" / "conversations"
BASH = Tool("bash", "runs a command", {"type": "object", "properties": {"command": {"type": "string"}}})
TASK = Tool("task", "starts a helper", {"type": "object", "properties": {"prompt": {"type": "string"}}})
MAIN, HELPER, TITLE = "You are a coding agent.", "You are a helper.", "Write a title."


@dataclass
class Agent:
    """A scripted agent: ``ask`` sends a conversation and goes on with the answer."""

    calls: list[tuple[int, Request, Reply]] = field(default_factory=list)

    def ask(self, messages, reply, tools=(BASH, TASK)):
        self.calls.append((len(self.calls) + 1, Request(tuple(messages), tools), reply))
        return [*messages, Message(Role.ASSISTANT, reply.text, reply.calls)]

    def act(self, messages, command, result, tools=(BASH, TASK)):
        call = ToolCall(f"call_{len(self.calls)}", "bash", json.dumps({"command": command}))
        messages = self.ask(messages, Reply(f"I run {command}.", (call,)), tools)
        return [*messages, Message(Role.TOOL, result, call_id=call.id)]


def begin(system, *texts):
    return [Message(Role.SYSTEM, system), *(Message(Role.USER, text) for text in texts)]


def busy_agent():
    """A title; two steps; a helper with one step; a compaction; one more step, and the end."""
    agent = Agent()
    agent.ask(begin(TITLE, "mend it"), Reply("Mending"), ())
    main = agent.act(begin(MAIN, "mend it"), "ls", "a.py")
    main = agent.act(main, "cat a.py", "a = 1")
    helper = agent.act(begin(HELPER, "find the test"), "find .", "test_a.py", (BASH,))
    agent.ask(helper, Reply("It is test_a.py."), (BASH,))
    main = agent.act(begin(MAIN, "mend it", "So far: a.py holds a = 1."), "sed a.py", "ok")
    agent.ask(main, Reply("DONE"))
    return agent.calls


def texts(thread):
    return [turn.message.text for turn in thread.turns]


def over(protocol, calls):
    """Return the calls as an agent of a protocol sends them."""
    wire = WIRES[protocol]
    return [(n, wire.read_request(wire.write_request(asked, "m")), reply) for n, asked, reply in calls]


@pytest.mark.parametrize("protocol", [None, *WireProtocol])
def test_a_title_a_helper_and_a_compaction_are_told_apart(protocol):
    calls = busy_agent()
    main, title, helper = collect_threads(over(protocol, calls) if protocol else calls)
    assert texts(title) == ["mend it", "Mending"]
    # The result of the last command before the compaction was never sent.
    before, after = (" ".join(turn.message.text for turn in segment.turns) for segment in main.segments)
    assert before == "mend it I run ls. a.py I run cat a.py."
    assert after.endswith("So far: a.py holds a = 1. I run sed a.py. ok DONE")
    assert texts(helper) == ["find the test", "I run find ..", "test_a.py", "It is test_a.py."]
    assert [prompts.system for prompts in main.prompts] == [MAIN]
    assert [turn.call for turn in main.turns if turn.reply] == [2, 3, 6, 7]
    assert main_conversation([main, title, helper])[-1].text == "DONE"


def test_helpers_that_work_at_once_are_threads_of_their_own():
    agent = Agent()
    main = agent.act(begin(MAIN, "mend it"), "ls", "a.py")
    one = agent.act(begin(HELPER, "find the test"), "find .", "test_a.py")
    other = agent.act(begin(HELPER, "find the cause"), "cat a.py", "a = 1")
    agent.ask(one, Reply("It is test_a.py."))
    agent.ask(other, Reply("It is a = 1."))
    agent.ask(main, Reply("DONE"))
    assert [texts(thread)[0] for thread in collect_threads(agent.calls)] == [
        "mend it",
        "find the test",
        "find the cause",
    ]


def test_helpers_that_work_after_each_other_are_threads_of_their_own():
    agent = Agent()
    for what in ("find the test", "find the cause"):
        helper = agent.act(begin(HELPER, what), "find .", f"{what}: done")
        agent.ask(helper, Reply("Ready."))
    assert [thread.calls for thread in collect_threads(agent.calls)] == [2, 2]


def test_a_new_context_that_quotes_the_summary_goes_on_with_its_thread():
    agent = Agent()
    main = agent.act(begin(MAIN, "mend it"), "ls", "a.py")
    summary = "The file a.py holds the value that is wrong."
    agent.ask([*main, Message(Role.USER, "Sum up.")], Reply(f"Summary:\n{summary}"))
    agent.ask(begin(MAIN, f"Earlier: {summary}"), Reply("DONE"))
    (thread,) = collect_threads(agent.calls)
    assert [len(segment.turns) for segment in thread.segments] == [5, 2]
    assert thread.segments[1].left_out == 5


def test_an_agent_that_shortens_each_request_shows_each_message_once():
    agent = Agent()
    head, recent = begin(MAIN, "mend it"), []
    for step in range(6):
        done = agent.act([*head, *recent], f"step {step}", f"result {step}")
        recent = done[len(head) :][-4:]
    agent.ask([*head, *recent], Reply("DONE"))
    (thread,) = collect_threads(agent.calls)
    steps = [text for step in range(6) for text in (f"I run step {step}.", f"result {step}")]
    assert texts(thread) == ["mend it", *steps, "DONE"]
    assert thread.segments[-1].left_out == 8


def test_a_reply_that_the_agent_sends_back_in_other_words_is_not_repeated():
    agent = Agent()
    asked = begin(MAIN, "mend it")
    agent.ask(asked, Reply("<think>hm</think> I look: `ls`"), ())
    agent.ask(
        [*asked, Message(Role.ASSISTANT, "I look: `ls`"), Message(Role.USER, "a.py")], Reply("DONE"), ()
    )
    (thread,) = collect_threads(agent.calls)
    assert texts(thread) == ["mend it", "<think>hm</think> I look: `ls`", "a.py", "DONE"]
    assert len(thread.segments) == 1


def test_ids_and_the_layout_of_arguments_do_not_matter():
    first = ToolCall("toolu_1", "bash", '{"a": 1, "command": "ls"}')
    again = replace(first, id="call_9", arguments='{"command":"ls","a":1}')
    agent = Agent()
    asked = begin(MAIN, "mend it")
    agent.ask(asked, Reply(" I look. ", (first,)))
    agent.ask(
        [*asked, Message(Role.ASSISTANT, "I look.", (again,)), Message(Role.TOOL, "a.py")], Reply("DONE")
    )
    (thread,) = collect_threads(agent.calls)
    assert (len(thread.segments), texts(thread)) == (1, ["mend it", " I look. ", "a.py", "DONE"])


def test_a_question_asked_again_shows_both_answers():
    agent = Agent()
    for answer in ("one", "two"):
        agent.ask(begin(MAIN, "mend it"), Reply(answer))
    (thread,) = collect_threads(agent.calls)
    assert texts(thread) == ["mend it", "one", "two"]


def test_a_side_question_does_not_hide_or_repeat_what_follows():
    agent = Agent()
    main = agent.act(begin(MAIN, "mend it"), "ls", "a.py")
    agent.ask([*main, Message(Role.USER, "What is this about?")], Reply("A file."))
    main = agent.act(main, "cat a.py", "a = 1")
    agent.ask(main, Reply("DONE"))
    (thread,) = collect_threads(agent.calls)
    assert texts(thread)[3:] == ["What is this about?", "A file.", "I run cat a.py.", "a = 1", "DONE"]


def test_text_beyond_the_bound_is_not_kept():
    agent = Agent()
    main = agent.act(begin(MAIN, "mend it"), "ls", "x" * 1_000)
    agent.ask(main, Reply("DONE"))
    (thread,) = collect_threads(agent.calls, max_chars=100)
    assert "[1000 characters are not kept]" in texts(thread)


def test_a_system_prompt_with_another_date_or_checksum_is_the_same_one():
    agent = Agent()
    agent.act(begin(MAIN + " It is 2026-11-28, version 2.1.0b8.", "mend it"), "ls", "a.py")
    agent.ask(begin(MAIN + " It is 2026-11-29, version 2.1.cf.", "So far: one file."), Reply("DONE"))
    (thread,) = collect_threads(agent.calls)
    assert (len(thread.segments), len(thread.prompts)) == (2, 1)


def test_a_helper_that_is_asked_the_same_again_is_shown_again():
    agent = Agent()
    main = agent.act(begin(MAIN, "mend it"), "ls", "a.py")
    for _ in range(2):
        helper = agent.act(begin(HELPER, "find the test"), "find .", "test_a.py")
        agent.ask(helper, Reply("It is test_a.py."))
        main = agent.act(main, "cat", "a = 1")
    agent.ask(main, Reply("DONE"))
    main, helper = collect_threads(agent.calls)
    assert [turn.call for turn in helper.turns if turn.reply] == [2, 3, 5, 6]
    assert [turn.call for turn in main.turns if turn.reply] == [1, 4, 7, 8]


def test_a_context_that_was_refused_goes_on_with_a_new_one():
    agent = Agent()
    main = agent.act(begin(MAIN, "mend it"), "ls", "a.py")
    agent.ask(main, Reply("too long", error="context_length_exceeded"))
    agent.ask(begin(MAIN, "So far: one file."), Reply("DONE"))
    (thread,) = collect_threads(agent.calls)
    assert texts(thread)[-3:] == ["too long", "So far: one file.", "DONE"]


def test_a_message_without_content_is_left_out():
    agent = Agent()
    agent.ask([*begin(MAIN, "mend it"), Message(Role.SYSTEM, "")], Reply("DONE"))
    (thread,) = collect_threads(agent.calls)
    assert texts(thread) == ["mend it", "DONE"]


def read_recorded(name):
    exchanges = json.loads((RECORDED / f"{name}.json").read_text())["exchanges"]
    for number, exchange in enumerate(exchanges, 1):
        path = exchange["path"].partition("?")[0].removeprefix("/v1")
        wire = next(wire for wire in WIRES.values() if wire.path == path)
        body = json.loads(exchange["request"])
        reply = WireReply(
            wire.protocol, exchange["reply"].encode(), bool(body.get("stream")), Usage(), status=200
        )
        yield number, wire.read_request(body), wire.read_reply(whole_of(reply, body), body)


@pytest.mark.parametrize("name", ["anthropic_tools", "mini_swe_agent", "openai_agents"])
def test_a_real_agent_has_one_conversation_with_each_message_once(name):
    calls = list(read_recorded(name))
    (thread,) = collect_threads(calls)
    assert len(thread.segments) == 1
    assert thread.calls == len(calls)
    last = [message for message in calls[-1][1].messages if message.role is not Role.SYSTEM]
    assert [turn.message.text.strip() for turn in thread.turns] == [
        *(message.text.strip() for message in last),
        calls[-1][2].text.strip(),
    ]


def test_messages_of_an_agents_own_log_belong_to_no_call():
    first, second = Message(Role.USER, "mend it"), Message(Role.ASSISTANT, "done")
    thread = thread_of([Message(Role.SYSTEM, MAIN), first, second])
    assert [*thread.turns] == [Turn(first, 0), Turn(second, 0)]
    assert (thread.prompts, thread.calls) == ((Prompts(MAIN),), 0)
    assert thread_of([first]).prompts == ()
