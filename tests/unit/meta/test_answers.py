"""What models say around JSON, what they get wrong, and what they are told about it."""

import asyncio
import json

import pytest

from dgm.errors import AgentFault, Infrastructure
from dgm.messages import Message, Reply, Request, RequestRefused, Role, Stop, ToolCall
from dgm.meta.answers import (
    MAX_CHARS,
    MAX_DEPTH,
    MalformedAnswer,
    QuestionTooLong,
    ask_shortened,
    ask_until_readable,
    read_flag,
    read_object,
    read_records,
    read_text,
    read_texts,
)

GOOD = {"problem": "p", "proposal": "do {this}"}
KEYS = ("problem", "proposal")
QUESTION = Request((Message(Role.SYSTEM, "You diagnose."), Message(Role.USER, "Why?")), temperature=0.5)


@pytest.mark.parametrize(
    "text",
    [
        "%s",
        "  \n%s\n",
        "Sure! Here it is:\n\n```json\n%s\n```\nI hope that {helps}.",
        "```\n%s```",
        '{"problem": "no proposal"}\nBetter:\n%s',
        '{"problem": "a draft", "proposal": "a draft"}\nNo. Finally:\n%s',
        "A dict {} of {x: y} and { unbalanced\n%s\nThe keys are {problem, proposal}.",
        '%s\nIn short: {"answer": 1}',
        '<think>{"problem": }</think>%s',
        "\ufeff%s",
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_json_is_found_in_prose_and_fences(text, indent):
    assert read_object(text.replace("%s", json.dumps(GOOD, indent=indent)), KEYS) == GOOD


def test_fences_and_braces_inside_strings_belong_to_the_string():
    answer = {"files": {"a.md": '```json\n{"files": 1}\n```\n'}}
    assert read_object(f"```json\n{json.dumps(answer)}\n```", ["files"]) == answer


def test_line_breaks_inside_strings_are_taken_as_meant():
    assert read_object('{"text": "one\n\ttwo"}', ["text"]) == {"text": "one\n\ttwo"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the answer is empty"),
        (" \n", "the answer is empty"),
        ("I cannot say.", "there is no JSON object"),
        ("[1, 2]", "there is no JSON object"),
        ('{"problem": "p"}', "has no 'proposal'"),
        ('{"a": {"problem": "p", "proposal": "q"}, "b": 1}', "has no 'problem', 'proposal'"),
        ('{"problem": "p", "proposal": maybe}', "there is no value .line 1 column 30, at 'maybe}'"),
        ('{"problem": "p"\n"proposal" is "q"}', "has no 'proposal' .line 1 column 1, at"),
        ('see {x} in {"problem": "p", "proposal": "q"', "not closed: .*begins in line 1 column 12"),
        ('{"problem": "p", "proposal": "q', "the JSON is wrong: a string is not closed"),
        ('{"problem": "a", "proposal": "b"} Better: {"problem": "c", "prop', "is not closed"),
        ('{"problem": "a", "draft": {"problem": "p", "proposal": "q"}, "x": "', "a string is not closed"),
        ('{"problem": "q", "proposal": "use {"a": "b", "c": 1} for it"}', "not clear where a string"),
        ("<think>{\"problem\": \"p\", \"proposal\": \"q\"}", "ends with its thinking"),
        ('{"problem": NaN, "proposal": "q"}', "NaN, which JSON does not know"),
        ('{"problem": -Infinity, "proposal": "q"}', "-Infinity, which JSON does not know"),
        ('{"problem": 1e999, "proposal": "q"}', "1e999, which is no finite number"),
        ('{"problem": ' + "9" * 5000 + ', "proposal": "q"}', "a number of 5000 digits"),
        ('{"problem": "p", "problem": "q", "proposal": "q"}', "the key 'problem' twice"),
        ('{"problem": "\\ud83d", "proposal": "q"}', r"half a surrogate pair \(\\ud83d\)"),
        ('{"problem": "p", "proposal": "q", "\\udc00": 1}', "half a surrogate pair"),
        ('{"problem": "p", "proposal": ["\ud83d"]}', "half a surrogate pair"),
        ('{"problem": ' + "[" * 10_000 + "]" * 10_000 + ', "proposal": "q"}', "nested deeper than 100"),
        ('{"problem": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + ', "proposal": "q"}', "nested deeper than 100"),
        ('{"a":' * 10_000, "nested deeper than 100"),
        ("x" * (MAX_CHARS + 1), "4000001 characters; 4000000 are allowed"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(text, why):
    with pytest.raises(MalformedAnswer, match=why):
        read_object(text, KEYS)


def test_nesting_up_to_the_limit_and_whole_pairs_are_fine():
    deep = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert read_object('{"a": ' + deep + "}", ["a"])
    assert read_object('{"a": "\\ud83d\\ude00"}', ["a"]) == {"a": "\U0001f600"}


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
        '{"a": ["a"' + "\n" * 3_000_000,
        '{"a": "' + '","b' * 700_000,
    ],
)
@pytest.mark.timeout(120)  # Reading each beginning to the end would take hours.
def test_texts_that_are_made_to_be_read_slowly_are_given_up(text):
    with pytest.raises(MalformedAnswer):
        read_object(text, KEYS)


def test_fields_are_read_strictly():
    answer = {
        "t": " x ",
        "e": " ",
        "n": 1,
        "f": False,
        "m": {"a": ""},
        "l": [{"p": "1", "q": "2", "z": 3}],
        "w": {"a": 1},
    }
    assert (read_text(answer, "t"), read_flag(answer, "f")) == ("x", False)
    assert (read_texts(answer, "m"), read_texts(answer, "none")) == ({"a": ""}, {})
    assert read_records(answer, "l", ["p", "q"]) == [{"p": "1", "q": "2"}]
    assert read_records(answer, "none", ["p"]) == []
    for read, why in (
        (lambda: read_text(answer, "e"), "'e' must be a string that is not empty"),
        (lambda: read_text(answer, "n"), "'n' must be a string that is not empty"),
        (lambda: read_text(answer, "none"), "'none' must be a string"),
        (lambda: read_flag(answer, "n"), "'n' must be true or false"),
        (lambda: read_texts(answer, "l"), "'l' must be an object"),
        (lambda: read_texts(answer, "w"), "in 'w', 'a' must be a string"),
        (lambda: read_records(answer, "m", ["p"]), "'m' must be a list"),
        (lambda: read_records({"l": ["x"]}, "l", ["p"]), "number 1 of 'l' must be an object"),
        (lambda: read_records(answer, "l", ["x"]), "in number 1 of 'l', 'x' is missing"),
        (lambda: read_records(answer, "l", ["z"]), "in number 1 of 'l', 'z' must be a string"),
    ):
        with pytest.raises(MalformedAnswer, match=why):
            read()


class Bench:
    """Answers one after the other what it was given."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests = []
        self.roles = []

    async def ask(self, request, role):
        self.requests.append(request)
        self.roles.append(role)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def ask(bench, retries=2):
    return asyncio.run(
        ask_until_readable(bench, QUESTION, lambda text: read_object(text, KEYS), retries, "diagnose")
    )


def test_a_good_answer_takes_one_question():
    bench = Bench(Reply(json.dumps(GOOD)))
    assert ask(bench) == GOOD
    assert (bench.requests, bench.roles) == ([QUESTION], ["diagnose"])


def test_a_wrong_answer_is_asked_again_with_what_was_wrong():
    bench = Bench(Reply("problem: 1"), Reply('{"problem": "p"}'), Reply(json.dumps(GOOD)))
    assert ask(bench) == GOOD
    first, second, third = bench.requests
    assert first == QUESTION
    assert second.temperature == QUESTION.temperature
    assert tuple(third.messages[:4]) == tuple(second.messages)
    told = [message.text for message in third.messages[2:]]
    assert [m.role for m in third.messages[2:]] == [Role.ASSISTANT, Role.USER] * 2
    assert (told[0], told[2]) == ("problem: 1", '{"problem": "p"}')
    assert "no JSON object in it, with its keys in double quotes" in told[1]
    assert "has no 'proposal'" in told[3]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (
            Reply("", (ToolCall("1", "bash", "{}"),), Stop.TOOL_CALLS),
            "there is no tool 'bash', answer in text",
        ),
        (Reply("No.", stop=Stop.REFUSAL), "the question was declined"),
        (Reply(""), "the answer is empty"),
    ],
)
def test_the_reason_is_told_in_text_alone(reply, why):
    bench = Bench(reply, Reply(json.dumps(GOOD)))
    assert ask(bench) == GOOD
    said, told = bench.requests[1].messages[2:]
    assert why in told.text
    assert said == Message(Role.ASSISTANT, reply.text or "(nothing)")


def test_an_answer_beside_a_call_counts():
    assert ask(Bench(Reply(json.dumps(GOOD), (ToolCall("1", "bash", "{}"),)))) == GOOD


def test_what_is_quoted_is_short_and_can_be_sent():
    bench = Bench(Reply("\ud83d" + "x" * 5_000_000), Reply(json.dumps(GOOD)))
    assert ask(bench) == GOOD
    quoted = bench.requests[1].messages[2].text
    assert len(quoted) < 5_000
    quoted.encode()


def test_after_the_last_try_no_child_comes_of_it():
    bench = Bench(Reply("a"), Reply(""), Reply("{}"))
    with pytest.raises(
        AgentFault, match=r"in 3 tries: the JSON object has no 'problem', 'proposal'"
    ) as caught:
        ask(bench)
    assert caught.value.stage == "answer"
    assert len(bench.requests) == 3
    with pytest.raises(AgentFault, match="in 1 tries"):
        ask(Bench(Reply("a")), retries=0)


SKELETON = '{"problem": "...", "proposal": "..."}'


def ask_in_form(bench, retries=2):
    return asyncio.run(
        ask_until_readable(
            bench, QUESTION, lambda text: read_object(text, KEYS), retries, "diagnose", SKELETON
        )
    )


def test_the_fault_is_shown_with_its_place_and_the_form():
    bench = Bench(Reply('{"problem": "p",\n "proposal": maybe}'), Reply(json.dumps(GOOD)))
    assert ask_in_form(bench) == GOOD
    told = bench.requests[1].messages[-1].text
    assert "line 2 column 14, at 'maybe}'" in told
    assert told.endswith(SKELETON)


def test_the_same_answer_again_ends_the_asking():
    bench = Bench(Reply("no"), Reply("never"), Reply(" no\n"), Reply(json.dumps(GOOD)))
    with pytest.raises(
        AgentFault, match="the same unusable answer again at try 3: there is no JSON"
    ) as caught:
        ask(bench, retries=5)
    assert caught.value.stage == "answer"


def cut(text):
    return Reply(text, stop=Stop.LENGTH)


WHOLE = json.dumps(GOOD)


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
    bench = Bench(*map(cut, parts[:-1]), Reply(parts[-1]))
    assert ask(bench) == GOOD
    said, told = bench.requests[1].messages[2:]
    assert said == Message(Role.ASSISTANT, parts[0])
    assert "cut off at the limit of its length" in told.text


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


@pytest.mark.parametrize(
    "refusal",
    [
        RequestRefused("context_length_exceeded", "too long"),
        Reply("too long", error="context_length_exceeded"),
    ],
)
def test_a_refused_question_is_not_asked_again(refusal):
    bench = Bench(refusal, Reply(json.dumps(GOOD)))
    with pytest.raises(AgentFault, match="context_length_exceeded: too long") as caught:
        ask(bench)
    assert caught.value.stage == "answer"
    assert len(bench.requests) == 1


def test_an_outage_is_no_fault_of_an_agent():
    with pytest.raises(Infrastructure):
        ask(Bench(Infrastructure("down")))


class SmallModel:
    """A model that takes questions of at most ``most`` characters; its provider refuses others, or a recording does."""

    def __init__(self, most, *, recorded=False):
        self.most, self.recorded = most, recorded
        self.asked = []

    async def ask(self, request, role):
        said = request.messages[-1].text
        self.asked.append(len(said))
        if len(said) <= self.most:
            return Reply(json.dumps(GOOD))
        if self.recorded:
            return Reply("too many tokens", error="context_length_exceeded")
        raise RequestRefused("context_length_exceeded", "too many tokens")


def ask_about(model, chars):
    return asyncio.run(
        ask_shortened(
            lambda most: Request((Message(Role.USER, "x" * most),)),
            chars,
            lambda request: ask_until_readable(model, request, lambda text: read_object(text, KEYS), 1, "r"),
        )
    )


@pytest.mark.parametrize("recorded", [False, True])
def test_a_question_that_is_too_long_is_asked_with_less_evidence(recorded):
    model = SmallModel(20_000, recorded=recorded)
    assert ask_about(model, 60_000) == GOOD
    assert model.asked == [60_000, 30_000, 15_000]


def test_a_question_that_never_fits_is_given_up():
    model = SmallModel(10)
    with pytest.raises(QuestionTooLong, match="refused the question: context_length_exceeded: too many"):
        ask_about(model, 20_000)
    assert model.asked == [20_000, 10_000, 5_000]


def test_a_question_that_less_evidence_does_not_shorten_is_asked_once():
    model = SmallModel(10)
    question = Request((Message(Role.USER, "x" * 50),))
    ask = lambda request: ask_until_readable(model, request, lambda text: text, 1, "r")  # noqa: E731
    with pytest.raises(QuestionTooLong):
        asyncio.run(ask_shortened(lambda _: question, 60_000, ask))
    assert model.asked == [50]


def test_another_refusal_is_not_asked_again():
    class Refusing:
        asked = 0

        async def ask(self, request, role):
            self.asked += 1
            raise RequestRefused("content_policy", "no")

    model = Refusing()
    with pytest.raises(AgentFault, match="content_policy"):
        ask_about(model, 60_000)
    assert model.asked == 1
