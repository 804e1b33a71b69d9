"""An agent that opens many connections does not end those of others."""

import asyncio
import json

from dgm.gateway.sockets import AT_ONCE, CONNECTIONS
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
