"""Opens connections for tests, with an environment that names no provider and no proxy."""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from dgm.config import Settings
from dgm.models.providers import open_connection, provider_of

KEY = "sk-test-0123456789abcdefghij"
_NAMED = ("OPENAI_", "ANTHROPIC_", "AZURE_", "AWS_", "GOOGLE_", "CLOUD_ML_")


def clear_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(_NAMED) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def connect(name, **sections):
    models = Settings.model_validate({"model": "offline", "models": sections}).models
    return open_connection(provider_of(name), models, name.partition("/")[2])


@dataclass(frozen=True)
class Reply:
    status_code: int
    content: bytes
    headers: Mapping[str, str]

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


def post(connection, path, body, *, headers=None, own=False):
    """One request; gives the reply, read."""

    async def ready():
        pass

    async def ask():
        try:
            response = await connection.post(path, body, headers=headers or {}, ready=ready, own=own)
            return Reply(response.status, await response.read(), response.headers)
        finally:
            await connection.close()

    return asyncio.run(ask())
