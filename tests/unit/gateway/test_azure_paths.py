"""The package openai's client for Azure, at the addresses that the variables of Azure name."""

import asyncio

import httpx2
import openai
import pytest

from dgm.gateway.agent_start import AZURE_VERSION
from tests.support.gateway.bench import ACTION, gateway


@pytest.mark.parametrize("protocol", ["chat", "responses"])
def test_the_client_for_azure_is_answered(tmp_path, protocol):
    async def talk():
        async with gateway(tmp_path) as opened:
            with opened.lend(ACTION, "solve") as lease:
                uds = str(opened.folder / opened.socket_name)
                http = httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=uds))
                async with openai.AsyncAzureOpenAI(
                    api_key=lease.token,
                    azure_endpoint="http://gateway",
                    api_version=AZURE_VERSION,
                    http_client=http,
                ) as vendor:
                    if protocol == "responses":
                        return (await vendor.responses.create(model="default", input="hi")).output_text
                    said = await vendor.chat.completions.create(
                        model="default", messages=[{"role": "user", "content": "hi"}]
                    )
                    return said.choices[0].message.content

    assert asyncio.run(talk()) == "hello"
