"""Bodies that an agent sends to be refused: one line for the agent, and little time of the others' event loop."""

import asyncio
import gzip
import json
import zlib

import pytest

from dgm.gateway import bodies
from tests.support.gateway.bench import ACTION, chat, client, gateway, talking


def post(tmp_path, *requests, **options):
    """The statuses of requests to one lease, sent one after the other, and the gateway's lease."""

    async def scenario():
        async with talking(gateway(tmp_path / "g", **options)) as (_, lease, http):
            answers = [await http.post("/chat/completions", **request) for request in requests]
        return answers, lease

    return asyncio.run(asyncio.wait_for(scenario(), 60))


def said(answer):
    return answer.status_code, answer.json()["error"]["message"]


NESTED = json.dumps(chat()).encode()[:-1] + b', "metadata": ' + b"[" * 70 + b"]" * 70 + b"}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[" * 900_000, "the body holds more than 200000 values"),
        (b"[" * 100_000, "the body is not JSON"),
        (b'"' + b'\\"' * 1_900_000, "the body is not JSON"),
        (NESTED, "the body is nested deeper than 64"),
        (b"[" + b"{}," * 250_000 + b"{}]", "the body holds more than 200000 values"),
        (b'{"model": NaN, "messages": []}', "the body is not JSON"),
        (b'{"messages": [], "seed": ' + b"9" * 5000 + b"}", "the body is not JSON"),
        (b'{"messages": [], "seed": 1e999}', "the body is not JSON"),
    ],
)
def test_a_body_that_costs_more_than_it_should_is_refused(tmp_path, body, message):
    (answer,), lease = post(tmp_path, {"content": body})
    assert said(answer) == (400, message)
    assert (lease.refusals, lease.failure, lease.calls) == (1, None, 0)


def test_commas_and_brackets_within_texts_are_no_values(tmp_path):
    (answer,), lease = post(tmp_path, {"json": chat('[{",' * 100_000 + '\\"')})
    assert (answer.status_code, lease.calls) == (200, 1)


def test_duplicate_keys_and_half_characters_reach_the_model_as_what_was_checked(tmp_path):
    body = b'{"model": "nobody", "model": "default", "messages": [{"role": "user", "content": "\\ud800"}]}'
    (answer,), lease = post(tmp_path, {"content": body})
    assert (answer.status_code, lease.calls) == (200, 1)


def zstd(data):
    return bodies._zstd().compress(data)


def bare_deflate(data):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def packed(encoding, body, **options):
    return {"content": body, "headers": {"Content-Encoding": encoding}, **options}


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", bare_deflate),
        ("zstd", zstd),
        ("identity", bytes),
    ],
)
def test_a_compressed_body_is_read(tmp_path, encoding, pack):
    body = json.dumps(chat("x" * 40_000)).encode()
    (answer, pieces), lease = post(
        tmp_path, packed(encoding, pack(body)), packed(encoding, in_pieces(pack(body), 300))
    )
    assert (answer.status_code, pieces.status_code, lease.calls) == (200, 200, 2)


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "compress"])
def test_another_encoding_is_refused_by_its_name(tmp_path, encoding):
    (answer,), lease = post(tmp_path, packed(encoding, b"anything"))
    status, message = said(answer)
    assert (status, lease.calls) == (415, 0)
    assert repr(encoding) in message
    assert "JSON" not in message


@pytest.mark.parametrize(
    ("encoding", "body", "message"),
    [
        ("gzip", b"{}", "the body is not gzip"),
        ("zstd", b"{}", "the body is not zstd"),
        ("gzip", gzip.compress(b"x" * 999, mtime=0)[:-9], "the body is not whole as gzip"),
        ("gzip", b"", "the body is not whole as gzip"),
        ("gzip", gzip.compress(b" " * 5_000_000, mtime=0), "the body is larger than 4000000 bytes"),
        ("zstd", zstd(b" " * 5_000_000), "the body is larger than 4000000 bytes"),
        ("deflate", zlib.compress(b"[" * 900_000), "the body holds more than 200000 values"),
    ],
)
def test_a_compressed_body_has_the_bounds_of_a_plain_one(tmp_path, encoding, body, message):
    (answer,), lease = post(tmp_path, packed(encoding, body))
    assert said(answer) == (400, message)
    assert lease.calls == 0


async def in_pieces(body, size):
    for at in range(0, len(body), size):
        yield body[at : at + size]


async def test_one_agents_large_bodies_arrive_one_after_the_other(tmp_path):
    begun, go = [], asyncio.Event()

    async def slowly(body):
        begun.append(1)
        yield body[:10]
        await go.wait()
        yield body[10:]

    async with gateway(tmp_path / "g") as opened:
        with opened.lend(ACTION, "solve") as lease, opened.lend(ACTION, "solve") as other:
            async with client(opened, lease.token) as http, client(opened, other.token) as honest:
                body = json.dumps(chat("x" * 100_000)).encode()
                posts = [
                    asyncio.create_task(http.post("/chat/completions", content=slowly(body)))
                    for _ in range(3)
                ]
                while len(begun) < 3:
                    await asyncio.sleep(0.005)
                answer = await honest.post("/chat/completions", json=chat("y" * 100_000))
                assert answer.status_code == 200
                go.set()
                assert [(await one).status_code for one in posts] == [200] * 3


def nested_call(depth):
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": '{"a":' * depth + "1" + "}" * depth},
    }
    turns = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    return {
        "model": "default",
        "messages": [*chat()["messages"], *turns, {"role": "tool", "tool_call_id": "c", "content": "r"}],
    }


def test_arguments_that_are_nested_deep_do_no_harm(tmp_path):
    answers, lease = post(tmp_path, {"json": nested_call(960)}, {"json": nested_call(30)})
    assert [answer.status_code for answer in answers] == [200, 200]
    assert lease.failure is None
