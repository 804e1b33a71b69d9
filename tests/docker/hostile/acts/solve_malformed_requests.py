"""Sends the gateway malformed JSON, wrong shapes, huge bodies, no HTTP at all, and somebody else's key"""

import json
import os
import socket
import urllib.parse

import task

good = {"model": "default", "messages": [{"role": "user", "content": "hello"}]}
BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"x"',
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"messages":' * 50_000,
    b'{"a":1e999}',
    b"NaN",
    b"1" * 10_000,
    *(
        json.dumps({**good, **bad}).encode()
        for bad in (
            {"messages": None},
            {"messages": []},
            {"messages": [1]},
            {"messages": [{"role": "user"}]},
            {"messages": [{"role": "x", "content": 1}]},
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "http://1.1.1.1/"}}],
                    }
                ]
            },
            {"model": 1},
            {"model": "x" * 10_000},
            {"tools": 5},
            {"tools": [{"type": "web_search"}]},
            {"max_tokens": -1},
            {"max_tokens": 1e400},
            {"temperature": "hot"},
            {"stream": "yes"},
            {"n": 100},
            {"messages": [{"role": "user", "content": "\ud800\u0000"}]},
            {"messages": [{"role": "assistant", "tool_calls": [{"id": 1}]}]},
            {"messages": [{"role": "tool", "content": {}}]},
        )
    ),
    json.dumps({**good, "messages": [{"role": "user", "content": "x" * 30_000_000}]}).encode(),
]
for body in BODIES:
    task.attempt(task.post, body)
task.attempt(task.post, json.dumps(good).encode(), "dgm-" + "0" * 32)
address = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
open_ones = []
for raw in (
    b"\0" * 1000,
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"A" * 1_000_000,
    b"POST / HTTP/1.1\r\n" + b"X: y\r\n" * 100_000,
):
    made = socket.create_connection((address.hostname, address.port), 5)
    task.attempt(made.sendall, raw)
    open_ones.append(made)
for _ in range(20):
    made = socket.create_connection((address.hostname, address.port), 5)
    task.attempt(made.sendall, b"POST /v1/chat/completions HTTP/1.1\r\n")
    open_ones.append(made)
print("sent", len(BODIES), "bodies")
