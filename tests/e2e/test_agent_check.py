"""``dgm agent check`` in real sandboxes: a good agent, one with every fault that only a try shows, and a real model."""

from dataclasses import replace

import pytest

from tests.agents.plans import Planned, Step
from tests.support.hosted import KEY, PROVIDERS
from tests.support.wire_server import WireServer

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]
PROVIDER = PROVIDERS["openai-chat"]
TOML = """[agent]
command = ["python3", "agent.py"]
check = ["python3", "agent.py", "--check"]
editable = ["agent.py"]
"""
AGENT = """
import json, os, sys, time, urllib.request
if "--check" in sys.argv:
    sys.exit()
job = json.load(open(sys.argv[1]))
if job["kind"] == "improve":
    sys.exit("it has no such mood")
body = {"model": job["model"], "messages": [{"role": "user", "content": time.strftime("day %j: ") + job["problem"]}]}
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
address = os.environ["OPENAI_API_BASE"] + "/chat/completions"
urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), headers)).read()
open(job["workdir"] + "/.history.md", "w").write("notes")
"""


def check(dgm, folder, *words, code=0):
    said = dgm.json("agent", "check", folder, "--set", "sandbox=bubblewrap", *words, code=code)
    return {finding["part"]: (finding["level"], finding["advice"]) for finding in said["findings"]}


def test_what_only_a_try_shows_is_told_with_what_to_write(dgm, tmp_path):
    (tmp_path / "agent.toml").write_text(TOML)
    (tmp_path / "agent.py").write_text(AGENT)
    found = check(dgm, tmp_path, code=1)
    assert found["solve"] == ("ok", "")
    assert found["repeat"][0] == "warn"
    assert found["litter"] == ("warn", 'agent.toml: ignored = ["/.history.md"]')
    assert found["improve"] == (
        "stop",
        'the agent: do an improve job as a solve job; or agent.toml: editor = "solid"',
    )
    with (tmp_path / "agent.toml").open("a") as manifest:
        manifest.write('editor = "solid"\nignored = ["/.history.md"]\nvolatile = ["day [0-9]+"]\n')
    mended = check(dgm, tmp_path)
    assert {level for level, _ in mended.values()} == {"ok"}


def test_a_model_is_asked_only_where_one_is_named(dgm, tmp_path):
    steps = [Step("", (("bash", {"command": "echo ready > status.txt"}),)), Step("It is ready.")]
    dgm("agent", "init", tmp_path / "mine", "--template", "shell")
    with WireServer(key=KEY, models=(PROVIDER.own_name,), brain=Planned(steps)) as server:
        program = replace(dgm, environment={PROVIDER.key_env: KEY})
        words = PROVIDER.words(server.url)
        found = check(program, tmp_path / "mine", *words)
    assert found["model"] == ("ok", "")
