"""An agent that cannot start ends the command before a provider is asked, and leaves no run behind."""

from dataclasses import replace

import pytest

from dgm.archive.snapshots import write_folder
from dgm.domain import Entry
from dgm.meta.seeds import read_seed
from tests.support.hosted import KEY, PROVIDERS
from tests.support.wire_server import WireServer

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]
SEED = read_seed()
PROVIDER = PROVIDERS["openai-chat"]


def changed(path, old, new):
    """The seed with one edit."""
    data = SEED[path].data
    assert old in data
    return {**SEED, path: Entry(data.replace(old, new), SEED[path].mode)}


BROKEN = {
    "check": (
        changed("agent/__main__.py", b"import sys\n", b"import sys\nimport no_such_module\n"),
        "the self-check",
    ),
    "interpreter": (changed("agent.toml", b'"python3"', b'"no-such-python3"'), "no-such-python3"),
    "job": (
        changed("agent/__main__.py", b"    return loop.work(job)", b'    sys.exit("no such mood")'),
        "a job exits 1 before it asks the model: no such mood",
    ),
}


@pytest.mark.parametrize(("command", "kind"), [*(("run", kind) for kind in BROKEN), ("evaluate", "job")])
def test_a_seed_that_cannot_start_ends_the_command(dgm, tmp_path, kind, command):
    source, said = BROKEN[kind]
    write_folder(source, tmp_path / "agent")
    with WireServer(key=KEY, models=(PROVIDER.own_name,)) as server:
        program = replace(dgm, archive=tmp_path / "archive", environment={PROVIDER.key_env: KEY})
        agent = ["--agent", tmp_path / "agent"] if command == "run" else [tmp_path / "agent"]
        words = [*PROVIDER.words(server.url), "--set", "sandbox=bubblewrap", *agent]
        refused = program(command, *words, code=2)
        assert not server.requests
    *_, line = lines = refused.stderr.strip().splitlines()
    assert len(lines) == 1 or lines[0].startswith("plan ")
    assert said in line
    assert str(tmp_path / "agent") in line
    assert not [*(tmp_path / "archive").glob("*")]
