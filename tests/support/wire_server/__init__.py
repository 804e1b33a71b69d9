"""A server for tests that speaks both providers' wire formats over real HTTP, and goes wrong by script.

It shares no wire code with ``dgm``, so that a misunderstanding there is not repeated here::

    with WireServer(brain=Offline(), models=("gpt-test",), key="test-key") as server:
        openai.OpenAI(base_url=server.openai_url, api_key="test-key")
        anthropic.Anthropic(base_url=server.url, api_key="test-key")
"""

from tests.support.wire_server.app import Config, Price, Record, WireApp, WireServer
from tests.support.wire_server.brain import Brain, Echo, Offline, Scripted, Thinking
from tests.support.wire_server.endpoints import WIRES, chunks_of
from tests.support.wire_server.faults import Kind, Rule, Script
from tests.support.wire_server.protocol import Refused

__all__ = [
    "WIRES",
    "Brain",
    "Config",
    "Echo",
    "Kind",
    "Offline",
    "Price",
    "Record",
    "Refused",
    "Rule",
    "Script",
    "Scripted",
    "Thinking",
    "WireApp",
    "WireServer",
    "chunks_of",
]
