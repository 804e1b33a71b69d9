"""Each fault as a client sees it, at each endpoint, plain and streamed; and which calls a script chooses."""

import json
import socket

import anthropic
import httpx2
import openai
import pytest

from tests.support import wire_conversations as talk
from tests.support.wire_server import PERMANENT, TRANSIENT, Kind, Price, Rule, Script, WireServer, load, mixed
from tests.support.wire_server.faults import CALLS, Call

pytestmark = pytest.mark.slow

ENDPOINTS = pytest.mark.parametrize("path", CALLS)
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
STATUS = {
    Kind.RATE_LIMIT: 429,
    Kind.ERROR_408: 408,
    Kind.ERROR_409: 409,
    Kind.ERROR_500: 500,
    Kind.ERROR_502: 502,
    Kind.ERROR_503: 503,
    Kind.ERROR_504: 504,
    Kind.ERROR_529: 529,
    Kind.WRONG_KEY: 401,
    Kind.FORBIDDEN: 403,
    Kind.CONTEXT_LENGTH: 400,
}


def struck(kind, **rule):
    """A server whose first call goes wrong."""
    return WireServer(brain=talk.tool_script(), script=Script([Rule(kind, calls=(1,), **rule)]))


@pytest.fixture(scope="module")
def any_server():
    """A server whose script is replaced by each test that only needs the one call."""
    with WireServer(brain=talk.tool_script()) as opened:
        yield opened


@pytest.fixture
def strike(any_server):
    """Makes every call go wrong until the test is over; checks that the brain was never asked."""
    script = any_server.app.config.script
    asked = len(any_server.app.config.brain.asked)

    def every(kind, seconds=0.2):
        script.outage(kind, seconds)
        return any_server

    yield every
    script.outage(None)
    assert len(any_server.app.config.brain.asked) == asked


@BOTH
@ENDPOINTS
@pytest.mark.parametrize("kind", STATUS)
def test_an_error_is_told_as_the_provider_does(strike, kind, path, stream):
    answer = talk.raw(strike(kind), path, talk.small(path, stream=stream))
    assert answer.status_code == STATUS[kind]
    error = answer.json()["error"]
    assert error["message"]
    if path == "/v1/messages":
        assert answer.json()["type"] == "error"
        assert error["type"].endswith("error")
    else:
        assert set(error) == {"message", "type", "param", "code"}
        assert (error["code"] == "context_length_exceeded") is (kind is Kind.CONTEXT_LENGTH)


@ENDPOINTS
def test_no_credit_is_told_as_the_provider_does(strike, path):
    answer = talk.raw(strike(Kind.NO_CREDIT), path, talk.small(path))
    if path == "/v1/messages":
        assert answer.status_code == 400
        assert "credit balance is too low" in answer.json()["error"]["message"]
    else:
        assert answer.status_code == 429
        assert answer.json()["error"]["code"] == "insufficient_quota"


def test_headers_say_when_to_come_back():
    rules = [Rule(Kind.RATE_LIMIT, calls=(1,), retry_after_s=3, retry_after_ms=2500), Rule(Kind.RATE_LIMIT)]
    with WireServer(script=Script(rules)) as server:
        first, second = (talk.raw(server, CALLS[0], talk.small(CALLS[0])).headers for _ in range(2))
    assert (first["retry-after"], first["retry-after-ms"]) == ("3", "2500")
    assert "retry-after" not in second


@BOTH
@ENDPOINTS
def test_a_hanging_call_times_out(strike, path, stream):
    server = strike(Kind.HANG, seconds=30)
    with pytest.raises(httpx2.ReadTimeout):
        talk.raw(server, path, talk.small(path, stream=stream), timeout=0.3)


@BOTH
@ENDPOINTS
def test_a_hanging_call_is_reset_in_the_end(strike, path, stream):
    with pytest.raises(httpx2.ReadError):
        talk.raw(strike(Kind.HANG, seconds=0.1), path, talk.small(path, stream=stream))


@BOTH
@ENDPOINTS
def test_an_answer_stops_midway(strike, path, stream):
    server = strike(Kind.HANG_MIDWAY, seconds=60)
    for limit in (0.5, 5.0, 20.0):  # more, where the server takes long to begin
        got, error = _until_it_breaks(server, path, stream, timeout=limit)
        assert isinstance(error, httpx2.ReadTimeout)
        if got:
            break
    assert "THIS ANSWER" in got


@BOTH
@ENDPOINTS
def test_a_connection_is_reset_midway(strike, path, stream):
    got, error = _until_it_breaks(strike(Kind.RESET_MIDWAY), path, stream)
    assert "THIS ANSWER" in got
    assert isinstance(error, httpx2.ReadError)


@BOTH
@ENDPOINTS
def test_a_connection_ends_midway(strike, path, stream):
    got, error = _until_it_breaks(strike(Kind.DROPPED), path, stream)
    assert "THIS ANSWER" in got
    assert isinstance(error, httpx2.RemoteProtocolError)


@BOTH
@ENDPOINTS
def test_a_connection_is_reset_before_the_first_byte(strike, path, stream):
    server = strike(Kind.RESET)
    body = json.dumps(talk.small(path, stream=stream)).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {talk.KEY}\r\nauthorization: Bearer {talk.KEY}\r\n"
    head += f"anthropic-version: 2023-06-01\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        connection.sendall(head.encode() + body)
        with pytest.raises(ConnectionResetError):
            connection.recv(1)


@BOTH
@ENDPOINTS
def test_a_cut_answer_has_no_end(strike, path, stream):
    answer = talk.raw(strike(Kind.TRUNCATED), path, talk.small(path, stream=stream))
    assert answer.status_code == 200
    assert "THIS ANSWER" in answer.text
    if stream:
        assert not any(end in answer.text for end in ("[DONE]", "response.completed", "message_stop"))
    else:
        with pytest.raises(ValueError, match=r".+"):
            answer.json()


@BOTH
@ENDPOINTS
def test_a_malformed_answer_is_no_json(strike, path, stream):
    answer = talk.raw(strike(Kind.MALFORMED), path, talk.small(path, stream=stream))
    texts = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    with pytest.raises(ValueError, match=r".+"):
        [json.loads(text) for text in texts or [answer.text]]


@BOTH
@ENDPOINTS
def test_a_page_comes_instead(strike, path, stream):
    answer = talk.raw(strike(Kind.HTML), path, talk.small(path, stream=stream))
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")


@BOTH
def test_an_empty_answer_parses(strike, stream):
    server = strike(Kind.EMPTY)
    with talk.openai_client(server) as client:
        chat = client.chat.completions.create(**talk.small(CALLS[0], stream=stream))
        told = client.responses.create(**talk.small(CALLS[1], stream=stream))
        assert not any(part.choices for part in (chat if stream else [chat]))
        assert not (list(told)[-1].response if stream else told).output
    with talk.anthropic_client(server) as client:
        said = client.messages.create(**talk.small(CALLS[2], stream=stream))
        kinds = {event.type for event in said} if stream else set()
        assert not kinds & {"content_block_start"} if stream else said.content == []


@BOTH
def test_a_refusal_parses(strike, stream):
    server = strike(Kind.REFUSAL)
    with talk.openai_client(server) as client:
        chat = client.chat.completions.create(**talk.small(CALLS[0], stream=stream))
        told = client.responses.create(**talk.small(CALLS[1], stream=stream))
        if stream:
            assert "help with that" in "".join(c.choices[0].delta.refusal or "" for c in chat)
            told = list(told)[-1].response
        else:
            assert "help with that" in chat.choices[0].message.refusal
        assert told.output[0].content[0].type == "refusal"
    with talk.anthropic_client(server) as client:
        said = client.messages.create(**talk.small(CALLS[2], stream=stream))
        ends = (
            [e.delta.stop_reason for e in said if e.type == "message_delta"] if stream else [said.stop_reason]
        )
    assert ends == ["refusal"]


def test_an_error_within_a_stream_is_raised_by_the_packages(strike):
    server = strike(Kind.ERROR_EVENT)
    with talk.openai_client(server) as client:
        with pytest.raises(openai.APIError, match="Internal server error"):
            list(client.chat.completions.create(**talk.small(CALLS[0], stream=True)))
        kinds = [event.type for event in client.responses.create(**talk.small(CALLS[1], stream=True))]
        assert kinds[-1] == "error"
    with talk.anthropic_client(server) as client, pytest.raises(anthropic.APIStatusError) as told:
        list(client.messages.create(**talk.small(CALLS[2], stream=True)))
    assert told.value.body["error"]["type"] == "overloaded_error"


@BOTH
@ENDPOINTS
def test_a_dripping_answer_is_whole(path, stream):
    with struck(Kind.DRIP, seconds=0.2) as server:
        dripped = talk.raw(server, path, talk.small(path, stream=stream))
        assert server.answered == 1
        assert server.faults == {Kind.DRIP: 1}
    with WireServer(brain=talk.tool_script()) as server:
        plain = talk.raw(server, path, talk.small(path, stream=stream))
    assert dripped.text == plain.text


def test_arguments_come_in_many_pieces():
    with struck(Kind.SPLIT_ARGUMENTS) as server, talk.anthropic_client(server) as client:
        with client.messages.stream(**talk.small(CALLS[2])) as stream:
            deltas = [e for e in stream if e.type == "input_json"]
            whole = stream.get_final_message()
        assert server.answered == 1
    assert len(deltas) > len(talk.ARGUMENTS) // 2
    assert whole.content[1].input == json.loads(talk.ARGUMENTS)


def test_what_goes_wrong_is_neither_answered_nor_paid():
    prices = {talk.GPT: Price(10, 100, cached=1)}
    script = Script([Rule(Kind.ERROR_500, calls=(1, 3))])
    with WireServer(brain=talk.tool_script(), script=script, prices=prices) as server:
        statuses = [talk.raw(server, CALLS[0], talk.small(CALLS[0])).status_code for _ in range(4)]
    assert statuses == [500, 200, 500, 200]
    assert server.answered == 2
    assert server.faults == {Kind.ERROR_500: 2}
    assert server.spent_usd == pytest.approx((140 * 10 + 23 * 100) / 1e6)
    assert [r.reply is None for r in server.requests] == [True, False, True, False]
    assert [r.fault for r in server.requests] == [Kind.ERROR_500, None, Kind.ERROR_500, None]


def test_an_outage_lasts_until_it_is_over():
    with WireServer() as server:
        server.outage(True)
        down = [talk.raw(server, path, talk.small(path)).status_code for path in CALLS]
        server.outage(False)
        up = [talk.raw(server, path, talk.small(path)).status_code for path in CALLS]
    assert (down, up) == ([503] * 3, [200] * 3)


def test_the_log_keeps_keys_and_bodies():
    with WireServer() as server:
        talk.raw(server, CALLS[0], talk.small(CALLS[0]))
        talk.raw(server, CALLS[0], talk.small(CALLS[0]), key="planted-key")
    first, second = server.requests
    assert first.body["messages"] == [{"role": "user", "content": "hello"}]
    assert first.reply.text == "hello"
    assert (second.headers["authorization"], second.status) == ("Bearer planted-key", 401)


def test_retries_of_the_packages_get_through_mixed_faults():
    script = mixed(0.5, seed=3, seconds=0.05)
    with WireServer(brain=talk.tool_script(), script=script) as server:
        gone_through = 0
        for number in range(12):
            body = talk.small(CALLS[0], user=str(number))
            for _ in range(script.most_in_a_row + 1):
                try:
                    answer = talk.raw(server, CALLS[0], body)
                    if answer.status_code == 200 and answer.json()["choices"]:
                        gone_through += 1
                        break
                except (httpx2.HTTPError, ValueError):
                    continue
        assert gone_through == server.answered == 12
        assert sum(server.faults.values()) > 3


def draw(script, digest, times=1, path=CALLS[0], **more):
    return [script.choose(Call(path, digest, **more)) for _ in range(times)]


def test_a_share_is_seeded_and_drawn_anew_for_each_try():
    def struck_calls(seed):
        script = Script([Rule(TRANSIENT, share=0.1)], seed=seed)
        return [bool(draw(script, f"{n % 500}")[0]) for n in range(2000)]

    one = struck_calls(1)
    assert one == struck_calls(1)
    assert one != struck_calls(2)
    assert one[:500] != one[500:1000]
    assert 150 <= sum(one) <= 250


def test_no_request_is_struck_too_often_in_a_row():
    rules = [Rule(Kind.RESET, share=0.5), Rule(Kind.HANG, share=0.9)]
    found = draw(Script(rules, most_in_a_row=2), "same", 60)
    runs = "".join("x" if fault else "." for fault in found)
    assert "xx" in runs
    assert "xxx" not in runs


def test_rules_look_at_number_rhythm_path_model_and_time():
    every = [bool(f) for f in draw(Script([Rule(Kind.RESET, every=3)]), "a", 6)]
    assert every == [False, False, True, False, False, True]
    by_path = Script([Rule(Kind.RESET, path="/responses")])
    assert [bool(draw(by_path, "a", path=path)[0]) for path in CALLS] == [False, True, False]
    by_time = Script([Rule(Kind.RESET, from_s=5, until_s=9)])
    assert [bool(draw(by_time, "a", age_s=age)[0]) for age in (4, 5, 8, 9)] == [False, True, True, False]
    by_model = Script([Rule(Kind.RESET, model="m", streaming=True)])
    assert draw(by_model, "a", model="m", streaming=True)[0]
    assert not draw(by_model, "a", model="m")[0]
    assert not draw(Script([Rule(Kind.RESET)]), "a", path="/v1/models")[0]


def test_a_script_is_read_from_a_file(tmp_path):
    file = tmp_path / "faults.toml"
    file.write_text(
        'seed = 7\n[[fault]]\nkind = ["reset", "error_529"]\nshare = 0.5\n[[fault]]\nkind = "html"\ncalls = [2]\n'
    )
    script = load(file)
    assert (script.seed, script.rules[0].kinds, script.rules[1].calls) == (
        7,
        (Kind.RESET, Kind.ERROR_529),
        (2,),
    )
    for wrong in ("kind = 'nonsense'", "share = 0.1", "kind = 'reset'\nsahre = 1"):
        file.write_text(f"[[fault]]\n{wrong}\n")
        with pytest.raises(ValueError, match=r"faults\.toml: fault 1"):
            load(file)


def test_every_kind_is_transient_permanent_or_answers_all_the_same():
    assert set(TRANSIENT) | PERMANENT | {Kind.DRIP, Kind.SPLIT_ARGUMENTS} == set(Kind)


def _until_it_breaks(server, path, stream, timeout=30.0):
    """What came before the connection broke, and how it broke."""
    got = b""
    headers = {
        "x-api-key": talk.KEY,
        "authorization": f"Bearer {talk.KEY}",
        "anthropic-version": "2023-06-01",
    }
    if path != "/v1/messages":
        del headers["anthropic-version"]
    with httpx2.Client(timeout=timeout) as client:
        body = talk.small(path, stream=stream)
        try:
            with client.stream("POST", server.url + path, json=body, headers=headers) as answer:
                for part in answer.iter_bytes():
                    got += part
        except httpx2.HTTPError as error:
            return got.decode(), error
    return got.decode(), None
