import subprocess
import sys
from pathlib import Path

import pytest

from dgm.archive.run import Run, follow_log
from dgm.benchmarks.opening import open_suite
from dgm.domain import AgentId
from dgm.errors import PluginFault, UserError
from dgm.plugins import check_answer, find_plugin
from tests.support.runs.paid import small
from tests.unit.benchmarks.test_suites import NoEngine

pytestmark = pytest.mark.slow

WRITER = """
import sys
from pathlib import Path
from dgm.domain import AgentId
from tests.support.runs.paid import PaidRun

made = PaidRun(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(20):
    made.stillborn(0, calls=2)
made.run.close()
"""


@pytest.mark.starts_processes
def test_a_run_is_streamed_while_it_is_written(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WRITER, str(tmp_path / "live")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        with Run.open(tmp_path / "live") as run:
            before = run.tree.seq
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
            seen = [recorded.seq for recorded in follow_log(run.store, run.folder, before, 0.01)]
            assert seen == list(range(before + 1, before + 81))


@pytest.mark.starts_processes
def test_a_run_is_opened_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with small(Path("paid")).run as run:
        monkeypatch.chdir("/")
        assert set(run.source(AgentId(2))) == {"agent.toml"}
        assert b"agent.toml" in run.repository.diff(run.tree.agents[0].commit, run.tree.agents[1].commit)


def test_a_query_that_cannot_be_answered_is_one_line(tmp_path: Path) -> None:
    with small(tmp_path / "paid").run as run:
        assert run.store.query("SELECT count(*) FROM spend WHERE role = ?", ("improve",)) == [(13,)]
        with pytest.raises(UserError, match=r"run\.db: no such column: rol"):
            run.store.query("SELECT rol FROM spend")
        with pytest.raises(UserError, match="bindings"):
            run.store.query("SELECT ?")
    with Run.open(tmp_path / "paid") as reader, pytest.raises(UserError, match=r"readonly|cannot be opened"):
        reader.store.query("INSERT INTO events VALUES (99, 0, 'run_stopped', NULL, '{}')")


ECHO = """
class Echo:
    name, version = "echo", "1"
    def __init__(self, engine):
        self.engine = engine
    def tasks(self, split): ...
    def task(self, task): ...
    def workspace(self, task): ...
    def again(self, task, grade, tried): ...
    async def grade(self, task, patch, labels): ...
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Registers an entry point as an installed distribution would."""

    def register(group: str, name: str, value: str) -> None:
        info = tmp_path / "site" / "acme-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")
        (tmp_path / "site" / "acme_tasks.py").write_text(ECHO)
        monkeypatch.syspath_prepend(str(tmp_path / "site"))

    return register


def test_a_benchmark_is_opened_by_entry_point(plugin) -> None:
    plugin("dgm.benchmarks", "echo", "acme_tasks:Echo")
    assert open_suite("starter", NoEngine()).name == "starter"
    with pytest.raises(UserError, match="did you mean 'echo'"):
        open_suite("ecco", NoEngine())
    engine = NoEngine()
    assert vars(open_suite("echo", engine)) == {"engine": engine}


def test_a_plugin_that_cannot_be_loaded_is_one_line(plugin) -> None:
    plugin("dgm.policies", "broken", "acme_policies:Broken")
    with pytest.raises(
        UserError, match=r"plug-in 'broken' among the policies \(acme_policies:Broken, of acme\)"
    ):
        find_plugin("policies", "broken", {})


def test_an_answer_of_another_type_is_the_plug_ins_fault() -> None:
    check_answer(3, int, "model 'x': reply")
    with pytest.raises(
        PluginFault, match=r"^model 'x': reply returned 'three', which is no int; a fault of a plug-in$"
    ):
        check_answer("three", int, "model 'x': reply")
