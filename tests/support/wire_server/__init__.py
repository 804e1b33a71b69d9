"""A server for tests that speaks both providers' wire formats over real HTTP, and goes wrong by script.

It shares no wire code with ``dgm``, so that a misunderstanding there is not repeated here::

    with WireServer(brain=Offline(), models=("gpt-test",), script=mixed(0.1)) as server:
        openai.OpenAI(base_url=server.openai_url, api_key="test-key")
        anthropic.Anthropic(base_url=server.url, api_key="test-key")

``python -m tests.support.wire_server --help`` starts it as a program.
"""

from tests.support.wire_server.app import Config, Price, Record, WireApp, wire_app
from tests.support.wire_server.brain import Brain, Echo, Offline, Scripted, Thinking
from tests.support.wire_server.faults import ANSWERING, PERMANENT, TRANSIENT, Kind, Rule, Script, load, mixed
from tests.support.wire_server.protocol import Style
from tests.support.wire_server.serving import WireServer
from tests.support.wire_server.talkative import Talkative

__all__ = [
    "ANSWERING",
    "PERMANENT",
    "TRANSIENT",
    "Brain",
    "Config",
    "Echo",
    "Kind",
    "Offline",
    "Price",
    "Record",
    "Rule",
    "Script",
    "Scripted",
    "Style",
    "Talkative",
    "Thinking",
    "WireApp",
    "WireServer",
    "load",
    "mixed",
    "wire_app",
]
