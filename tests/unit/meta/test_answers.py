"""What models say around JSON, what they get wrong, and what they are told about it."""

import asyncio
import json

import pytest

from dgm.errors import AgentFault, Infrastructure
from dgm.messages import Message, Reply, Request, RequestRefused, Role, Stop, ToolCall
from dgm.meta.answers import (
    MAX_CHARS,
    Answer,
    Flag,
    MalformedAnswer,
    QuestionTooLong,
    Text,
    ask_shortened,
    ask_until_readable,
    read_answer,
)
from dgm.meta.invent import Changes
from dgm.meta.issue import Issue
from dgm.meta.similarity import Judgement


class Remedy(Answer):
    problem: Text
    proposal: Text
    sure: Flag = True


GOOD = {"problem": "p", "proposal": "do {this}"}
QUESTION = Request((Message(Role.SYSTEM, "You diagnose."), Message(Role.USER, "Why?")), temperature=0.5)


def read(text):
    answer = read_answer(Remedy, text)
    return {"problem": answer.problem, "proposal": answer.proposal}


@pytest.mark.parametrize(
    "text",
    [
        "  \n%s\n",
        "Sure! Here it is:\n\n```json\n%s\n```\nI hope that {helps}.",
        '{"problem": "no proposal"}\nBetter:\n%s',
        '{"problem": "a draft", "proposal": "a draft"}\nNo. Finally:\n%s',
        "A dict {} of {x: y}\n%s\nThe keys are {problem, proposal}.",
        '%s\nIn short: {"answer": 1}',
        '<think>{"problem": }</think>%s',
        '{"name": "answer", "arguments": %s}',
        '{"answer": %s}',
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_json_is_found_in_prose_and_fences(text, indent):
    assert read(text.replace("%s", json.dumps(GOOD, indent=indent))) == GOOD


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" \n", "is empty"),
        ("I cannot say.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"problem": "p"}', "'proposal': Field required"),
        ('{"a": {"problem": "p", "proposal": "q"}, "b": 1}', "has no 'problem', 'proposal'"),
        ('{"problem": "p", "proposal": maybe}', "line 1 column 30"),
        ('see {x} in {"problem": "p", "proposal": "q"', "not closed"),
        ('{"problem": "p", "proposal": "q', "not closed"),
        ('{"problem": "a", "proposal": "b"} Better: {"problem": "c", "prop', "not closed"),
        ('{"problem": "a", "proposal": "b"} Better: {"problem": "c" "proposal": "d"}', "JSON is wrong"),
        ('{"problem": "a", "proposal": "b"} or {"x": maybe, "problem": "c"}', "JSON is wrong"),
        ('{"problem": "a", "draft": {"problem": "p", "proposal": "q"}, "x": "', "not closed"),
        ('{"x": maybe, "draft": {"problem": "p", "proposal": "q"}}', "JSON is wrong"),
        ('{"problem": "q", "proposal": "use {"a": "b", "c": 1} for it"}', "JSON is wrong"),
        ('{"problem": "q", "proposal": "a "x", "problem": "y" b"}', "JSON is wrong"),
        ("<think>{\"problem\": \"p\", \"proposal\": \"q\"}", "ends with its thinking"),
        ('{"problem": NaN, "proposal": "q"}', "valid string"),
        ('{"problem": 5, "proposal": "q"}', "'problem': Input should be a valid string"),
        ('{"problem": "...", "proposal": "q"}', "'problem': must be a string that is not empty"),
        ('{"problem": "p", "proposal": "q", "sure": 1}', "'sure': Input should be a valid boolean"),
        ('{"problem": ' + "9" * 5000 + ', "proposal": "q"}', "'problem': Input should be a valid string"),
        ('{"problem": "p", "problem": "q", "proposal": "q"}', "twice"),
        ('{"problem": "p", "Problem": "q", "proposal": "q"}', "'problem' twice"),
        ('{"problem": "p", "proposal": "q", "sur": true}', "no key 'sur'"),
        ('{"problem": "p", "proposal": "q", "also": [1]}', "no key 'also'"),
        ('{"problem": "\\ud83d", "proposal": "q"}', "surrogate"),
        ('{"problem": ' + "[" * 100_000 + "]" * 100_000 + ', "proposal": "q"}', "nested too deep"),
        ("x" * (MAX_CHARS + 1), "4000001 characters; 4000000 are allowed"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(text, why):
    with pytest.raises(MalformedAnswer, match=why):
        read(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            '{"problem": "p\n\tx", "1. Pro-posal": ["q", "r"], "sure": "No, not yet"}',
            ("p\n\tx", "q\nr", False),
        ),
        ("{'problem': \"p\", proposal: 'it\\'s', // why\n 'sure': True,}", ("p", "it's", True)),
        ('{"problem": "say "a" twice"\n"proposal": "q\\u00e9",, "sure": null}', None),
        ('{"problem": "say "a" twice"\n"proposal": "q\\u00e9",,}', ('say "a" twice', "q\u00e9", True)),
    ],
)
def test_fields_and_repairs(text, values):
    if values is None:
        with pytest.raises(MalformedAnswer):
            read(text)
    else:
        answer = read_answer(Remedy, text)
        assert (answer.problem, answer.proposal, answer.sure) == values


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "{" * 4_000_000,
        '{"' * 2_000_000,
        '{"a": ' * 500 + "[" + "1, " * 1_000_000,
        '{"k": ' * 500 + '"' + "x" * 3_900_000,
        '{"a": "' * 500_000,
        '{"a": 1, "a": ' * 200_000,
        "{}" * 100_000,
        "<think></think>" * 260_000,
        "<problem>" * 440_000,
        '{"problem": ["a"' + "\n" * 3_000_000,
        '{"problem": "' + '","b' * 700_000 + "}",
        '{"problem": ' + "'a' " * 20_000 + "}",
        "{'problem': '" + "\\" * 90_000 + "}",
    ],
)
@pytest.mark.timeout(120)  # Reading each beginning to the end would take hours.
def test_texts_that_are_made_to_be_read_slowly_are_given_up(text):
    with pytest.raises(MalformedAnswer):
        read(text)


def object_schema(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def list_of(items):
    return {"type": "array", "items": items}


TEXT, FLAG = {"type": "string"}, {"type": "boolean"}


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (Issue, object_schema(log_summary=TEXT, problem=TEXT, proposal=TEXT, general=FLAG)),
        (Judgement, object_schema(copy=FLAG, why=TEXT)),
        (
            Changes,
            object_schema(
                thought=TEXT,
                rationale=TEXT,
                files=list_of(object_schema(path=TEXT, text=TEXT)),
                edits=list_of(object_schema(path=TEXT, old=TEXT, new=TEXT)),
                removed=list_of(TEXT),
            ),
        ),
    ],
)
def test_forms_are_closed_schemas_that_require_every_key(kind, schema):
    assert (kind.form().name, kind.form().schema) == (kind.__name__.lower(), schema)


class Bench:
    """Gives one reply after the other."""

    def __init__(self, *replies):
        self.replies, self.requests, self.roles = list(replies), [], []

    async def ask(self, request, role):
        self.requests.append(request)
        self.roles.append(role)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


SKELETON = '{"problem": "...", "proposal": "..."}'
WHOLE = json.dumps(GOOD)


def ask(bench, retries=2, question=QUESTION):
    return asyncio.run(ask_until_readable(bench, question, read, retries, "diagnose", SKELETON))


def test_a_good_answer_takes_one_question():
    for reply in (Reply(WHOLE), Reply(WHOLE, (ToolCall("1", "bash", "{}"),))):
        bench = Bench(reply)
        assert ask(bench) == GOOD
        assert (bench.requests, bench.roles) == ([QUESTION], ["diagnose"])


def test_a_wrong_answer_is_asked_again_with_what_was_wrong():
    bench = Bench(Reply("problem: 1"), Reply('{"problem": "p",\n "proposal": maybe}'), Reply(WHOLE))
    assert ask(bench) == GOOD
    first, second, third = bench.requests
    assert (first, second.temperature) == (QUESTION, QUESTION.temperature)
    assert tuple(third.messages[:4]) == tuple(second.messages)
    assert [message.role for message in third.messages[2:]] == [Role.ASSISTANT, Role.USER] * 2
    texts = [message.text for message in third.messages[2:]]
    assert (texts[0], texts[2]) == ("problem: 1", '{"problem": "p",\n "proposal": maybe}')
    assert "no JSON object" in texts[1]
    assert "line 2 column 14" in texts[3]
    assert texts[3].endswith(SKELETON)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply("", (ToolCall("1", "bash", "{}"),), Stop.TOOL_CALLS), "no tool 'bash', answer in text"),
        (Reply("No.", stop=Stop.REFUSAL), "the question was declined"),
        (Reply(""), "the answer is empty"),
    ],
)
def test_the_reason_is_told_in_text_alone(reply, why):
    bench = Bench(reply, Reply(WHOLE))
    assert ask(bench) == GOOD
    quoted, complaint = bench.requests[1].messages[2:]
    assert why in complaint.text
    assert quoted == Message(Role.ASSISTANT, reply.text or "(nothing)")


def test_what_is_quoted_is_short_and_can_be_sent():
    bench = Bench(Reply("\ud83d" + "x" * 5_000_000), Reply(WHOLE))
    assert ask(bench) == GOOD
    quoted = bench.requests[1].messages[2].text
    assert len(quoted.encode()) < 5_000


@pytest.mark.parametrize(
    ("replies", "retries", "asked", "why"),
    [
        (["a", "", "{}"], 2, 3, "no usable answer in 3 tries"),
        (["a"], 0, 1, "no usable answer in 1 tries"),
        (["no", "never", " no\n", WHOLE], 5, 3, "the same unusable answer again at try 3"),
        ([RequestRefused("context_length_exceeded", "long"), WHOLE], 2, 1, "context_length_exceeded: long"),
        ([Reply("long", error="context_length_exceeded"), WHOLE], 2, 1, "context_length_exceeded: long"),
    ],
)
def test_no_child_comes_of_it(replies, retries, asked, why):
    bench = Bench(*(Reply(reply) if isinstance(reply, str) else reply for reply in replies))
    with pytest.raises(AgentFault, match=why) as caught:
        ask(bench, retries)
    assert (caught.value.stage, len(bench.requests)) == ("answer", asked)


def test_an_outage_is_no_fault_of_an_agent():
    with pytest.raises(Infrastructure):
        ask(Bench(Infrastructure("down")))


def cut(text):
    return Reply(text, stop=Stop.LENGTH)


@pytest.mark.parametrize(
    "parts",
    [
        (WHOLE[:20], WHOLE[20:]),
        (WHOLE[:8], WHOLE[8:25], WHOLE[25:]),
        (WHOLE[:30], WHOLE[15:]),
        ("```json\n" + WHOLE[:20], "```json\n" + WHOLE[20:] + "\n```"),
        (WHOLE[:20], f"Sorry. Once more:\n{WHOLE}"),
    ],
)
def test_an_answer_that_was_cut_off_is_continued(parts):
    question = Request(QUESTION.messages, form=Remedy.form())
    bench = Bench(*map(cut, parts[:-1]), Reply(parts[-1]))
    assert ask(bench, question=question) == GOOD
    quoted, told = bench.requests[1].messages[2:]
    assert quoted == Message(Role.ASSISTANT, parts[0])
    assert "cut off at the limit of its length" in told.text
    assert [request.form for request in bench.requests] == [question.form] + [None] * (len(parts) - 1)


@pytest.mark.parametrize("text", [WHOLE, WHOLE[:20], "", "<think>so long"])
def test_an_answer_that_stays_cut_off_is_never_taken(text):
    bench = Bench(*[cut(f"{text}{' ' * n}{n}" if text else "") for n in range(9)])
    with pytest.raises(AgentFault, match="cut off at the limit of its length") as caught:
        ask(bench)
    assert caught.value.stage == "answer"
    assert len(bench.requests) <= 5


def test_an_answer_that_stays_cut_off_is_asked_for_again_but_shorter():
    bench = Bench(cut(WHOLE[:9]), cut("x"), cut("y"), Reply(WHOLE))
    assert ask(bench) == GOOD
    assert "in full and shorter" in bench.requests[3].messages[-1].text


class SmallModel:
    """A model that takes questions of at most ``max_chars``; others fail with a code, as a refusal or as recorded."""

    def __init__(self, max_chars, code="context_length_exceeded", *, recorded=False):
        self.max_chars, self.code, self.recorded = max_chars, code, recorded
        self.asked = []

    async def ask(self, request, role):
        chars = len(request.messages[-1].text)
        self.asked.append(chars)
        if chars <= self.max_chars:
            return Reply(WHOLE)
        if self.recorded:
            return Reply("too many tokens", error=self.code)
        raise RequestRefused(self.code, "too many tokens")


def ask_about(model, chars, most=10**6):
    return asyncio.run(
        ask_shortened(
            lambda size: Request((Message(Role.USER, "x" * min(size, most)),)),
            chars,
            lambda request: ask_until_readable(model, request, read, 1, "r"),
        )
    )


@pytest.mark.parametrize("recorded", [False, True])
def test_a_question_that_is_too_long_is_asked_with_less_evidence(recorded):
    model = SmallModel(20_000, recorded=recorded)
    assert ask_about(model, 60_000) == GOOD
    assert model.asked == [60_000, 30_000, 15_000]


@pytest.mark.parametrize(
    ("code", "most", "error", "asked"),
    [
        ("context_length_exceeded", 10**6, QuestionTooLong, [20_000, 10_000, 5_000]),
        ("context_length_exceeded", 50, QuestionTooLong, [50]),
        ("content_policy", 10**6, AgentFault, [20_000]),
    ],
)
def test_a_question_that_never_fits_is_given_up(code, most, error, asked):
    model = SmallModel(10, code)
    with pytest.raises(error, match=f"refused the question: {code}: too many"):
        ask_about(model, 20_000, most)
    assert model.asked == asked
