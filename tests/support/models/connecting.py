"""Opens connections for tests, with an environment that names no provider and no proxy."""

import asyncio
import os

from dgm.models.providers import open_connection, provider_of
from tests.support.models.sections import make_settings

KEY = "sk-test-0123456789abcdefghij"
_NAMED = ("OPENAI_", "ANTHROPIC_", "AZURE_", "AWS_", "GOOGLE_", "CLOUD_ML_")


def clear_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(_NAMED) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def connect(name, **sections):
    return open_connection(provider_of(make_settings(**sections), name), name.partition("/")[2])


def post(connection, path, body, *, stream=False, headers=None):
    """One request; gives the reply, read."""

    async def ask():
        try:
            response = await connection.post(path, body, stream=stream, headers=headers or {})
            await response.aread()
            return response
        finally:
            await connection.close()

    return asyncio.run(ask())
