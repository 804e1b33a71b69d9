"""A resume mends a run: settings, the place of its suite, verdicts on agents that were refused their model."""

import shutil
from dataclasses import replace

import pytest

from dgm import __version__
from dgm.messages import RequestRefused, Role
from tests.support.hosted import KEY, PROVIDERS, events
from tests.support.runs.planned import patient_suite
from tests.support.wire_server import Offline, WireServer

pytestmark = [pytest.mark.sampled, pytest.mark.sandbox, pytest.mark.slow]
PROVIDER = PROVIDERS["openai-chat"]
EVALUATIONS = 2


class Stubborn(Offline):
    """Refuses every request but an agent's first one, as long as it is told to."""

    refuses = True

    async def answer(self, request):
        if self.refuses and any(message.role is Role.ASSISTANT for message in request.messages):
            raise RequestRefused("invalid_request_error", "one of the fields cannot be read")
        return await super().answer(request)


def test_what_a_resume_mends_holds_from_then_on_and_replays(dgm, tmp_path):
    suite, moved, brain = patient_suite(tmp_path / "suite"), tmp_path / "moved", Stubborn()
    archive = tmp_path / "archive"
    program = replace(dgm, archive=archive, environment={PROVIDER.key_env: KEY})
    with WireServer(key=KEY, models=(PROVIDER.own_name,), brain=brain) as server:
        words = [
            *PROVIDER.words(server.url),
            "--set",
            "sandbox=bubblewrap",
            "--benchmark",
            suite,
            "--workers",
            1,
        ]
        words += ["--agent", "plain"]
        program("run", "--name", "it", *words, "--max-evaluations", EVALUATIONS, "--set", "budget.agents=1")
        assert program.json("status", "it")["evaluations"]["unresolved"] == EVALUATIONS
        brain.refuses = False

        shutil.move(suite, moved)
        resume = ["resume", "it"]
        assert "if it was moved, set benchmark to its new path" in program(*resume, code=2).stderr
        other = shutil.copytree(moved, tmp_path / "other")
        (other / "suite.toml").write_text((other / "suite.toml").read_text() + "\n# another\n")
        changed_suite = program(*resume, "--set", f"benchmark={other}", code=2).stderr
        assert "has changed since the run began" in changed_suite
        assert f"begun by dgm {__version__}: go on with that dgm" in changed_suite
        refused = program(*resume, "--set", "policy.name=hgm", code=2).stderr
        assert "setting policy cannot be changed; those that can are models, providers, limits" in refused
        assert not events(archive / "it", "run_changed")

        resume += ["--set", f"benchmark={moved}", "--set", "limits.calls=77", "--regrade"]
        done = program(*resume, "--max-evaluations", EVALUATIONS)
    assert f"to be repeated: {EVALUATIONS} evaluations" in done.stderr

    (changed,) = events(archive / "it", "run_changed")
    assert changed["settings"] == {"benchmark": str(moved), "limits": {"calls": 77}}
    withdrawn = events(archive / "it", "verdict_withdrawn")
    assert [body["verdict"] for body in withdrawn] == ["unresolved"] * EVALUATIONS
    assert "one of the fields cannot be read" in withdrawn[0]["reason"]

    status = program.json("status", "it")
    assert status["evaluations"]["graded"] == EVALUATIONS
    assert status["evaluations"]["resolved"] > 0
    assert status["withdrawn"] == EVALUATIONS
    assert "limits.calls = 77" in status["changes"]
    assert "limits.calls = 77" in program("status", "it").stdout
    assert len(program.json("show", "it", "seed")["evaluations"]) == EVALUATIONS

    assert program.json("replay", "it")["differing"] == 0
    program("replay", "it", "--what", "evaluations")
    program("replay", "it", "--what", "work")

    program("export", "it", tmp_path / "it.dgm")
    program("status", tmp_path / "it.dgm")
    program("export", tmp_path / "it.dgm", f"{tmp_path}/unpacked/")
    assert program.json("status", tmp_path / "unpacked")["withdrawn"] == EVALUATIONS
