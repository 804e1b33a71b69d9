"""An agent is told its model's own name wherever it works, and may ask for the names of the vendor's other models."""

import shutil
from dataclasses import replace

import pytest

from tests.agents.plans import Planned, Step
from tests.support.hosted import KEY, PROVIDERS, events
from tests.support.wire_server import WireServer

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]
PROVIDER = PROVIDERS["openai-chat"]
TOML = """[agent]
command = ["python3", "agent.py"]
check = ["python3", "agent.py", "--check"]
editable = ["agent.py"]
"""
AGENT = """
import json, os, sys, urllib.request
if "--check" in sys.argv:
    sys.exit()
job = json.load(open(sys.argv[1]))
names = [os.environ[name] for name in ("DGM_MODEL", "OPENAI_MODEL", "ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL")]
assert set(names) == {job["model"], "gpt-6.2-sol"}, (names, job["model"])
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
address = os.environ["OPENAI_API_BASE"] + "/chat/completions"
for model in (job["model"], "gpt-6.2-sol", "gpt-6.2-mini"):
    body = {"model": model, "messages": [{"role": "user", "content": f"I am {model}: {job['problem']}"}]}
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    urllib.request.urlopen(request).read()
if job["kind"] == "improve":
    with open(job["workdir"] + "/agent.py", "a") as source:
        source.write(f"LINES = {len(open(source.name).read())}\\n")
"""


def test_children_of_an_agent_that_asks_for_the_providers_name_live_and_replay(dgm, tmp_path):
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "agent.toml").write_text(TOML)
    (tmp_path / "agent" / "agent.py").write_text(AGENT)
    with WireServer(key=KEY, models=(PROVIDER.own_name,), brain=Planned([Step("It is done.")])) as server:
        program = replace(dgm, archive=tmp_path / "archive", environment={PROVIDER.key_env: KEY})
        words = [*PROVIDER.words(server.url), "--set", "sandbox=bubblewrap", "--agent", tmp_path / "agent"]
        program(
            "run", *words, "--set", "budget.agents=2", "--max-evaluations", "3", "--name", "named", "--yes"
        )
    run = tmp_path / "archive" / "named"
    assert events(run, "agent_stillborn") == []
    assert len(events(run, "agent_born")) == 2
    notes = [note["message"] for note in events(run, "call_refused")]
    assert [str(note).partition("'gpt-6.2-mini'")[0] for note in notes] == [
        f"agent {agent}: the name " for agent in (0, 1)
    ]
    offline = replace(program, environment={})
    offline("replay", "named", "1", "--what", "lineage", "--set", "sandbox=bubblewrap")
    offline("replay", "named", "--what", "work", "--set", "sandbox=bubblewrap")
