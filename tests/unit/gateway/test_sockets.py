"""What agents do with connections: many of them do not end those of others, and odd ones bring no library's words."""

import asyncio
import json

import httpx2
import pytest

from dgm.gateway.sockets import AT_ONCE, CONNECTIONS, HEAD_BYTES
from tests.support.gateway.bench import ACTION, chat, gateway


async def opened_idle(path, count):
    return [(await asyncio.open_unix_connection(path))[1] for _ in range(count)]


def test_a_fresh_connection_outlives_a_flood_of_idle_ones(tmp_path):
    async def scenario():
        async with gateway(tmp_path / "g") as opened:
            path = str(opened.folder / opened.socket_name)
            with opened.lend(ACTION, "solve") as lease:
                idle = await opened_idle(path, CONNECTIONS - 50)
                reader, writer = await asyncio.open_unix_connection(path)
                idle += await opened_idle(path, 3 * AT_ONCE)
                body = json.dumps(chat()).encode()
                head = (
                    f"Host: g\r\nContent-Length: {len(body)}\r\nAuthorization: Bearer {lease.token}\r\n\r\n"
                )
                writer.write(b"POST /v1/chat/completions HTTP/1.1\r\n" + head.encode() + body)
                answer = await reader.readuntil(b"\r\n")
                for one in (writer, *idle):
                    one.close()
        return answer

    assert asyncio.run(asyncio.wait_for(scenario(), 60)).startswith(b"HTTP/1.1 200")


def test_headers_without_end_are_refused(tmp_path):
    async def scenario():
        async with gateway(tmp_path / "g") as opened:
            reader, writer = await asyncio.open_unix_connection(str(opened.folder / opened.socket_name))
            writer.write(b"GET / HTTP/1.1\r\nx: ")
            sent = 0
            while not reader.at_eof() and sent < 100 * HEAD_BYTES:
                writer.write(b"y" * HEAD_BYTES)
                sent += HEAD_BYTES
                await asyncio.sleep(0.01)
                if reader._buffer:
                    break
            status = await reader.readuntil(b"\r\n")
            writer.close()
            return status, sent

    status, sent = asyncio.run(asyncio.wait_for(scenario(), 60))
    assert status.startswith(b"HTTP/1.1 400") and sent < 20 * HEAD_BYTES


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("HEAD", "/"), ("GET", "/api/hello")])
def test_a_look_without_a_key_is_answered_with_nothing(tmp_path, method, path):
    async def scenario():
        async with gateway(tmp_path / "g") as opened:
            transport = httpx2.AsyncHTTPTransport(uds=str(opened.folder / opened.socket_name))
            async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as http:
                return await http.request(method, path), await http.request(method, "/v1/models")

    seen, refused = asyncio.run(asyncio.wait_for(scenario(), 60))
    assert (seen.status_code, seen.content, refused.status_code) == (200, b"", 401)
