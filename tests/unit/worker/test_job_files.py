"""What a job and its launcher are told: the lent model, hidden files, and a task's packages."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from dgm.benchmarks.environments import Environment
from dgm.benchmarks.languages import Language
from dgm.gateway.lease import CallLimits, ModelNames
from dgm.meta.contract import Contract
from dgm.protocols import Job, JobKind
from dgm.worker.supplies import Supply, job_terms, launch_record


def terms(actions, takes_tools):
    names = ModelNames("openai/gpt-6.2-sol")
    lease = SimpleNamespace(limits=CallLimits(calls=7), takes_tools=takes_tools, names=names)
    return job_terms(Contract(command=("run",), check=("check",), actions=actions), lease)


@pytest.mark.parametrize(
    ("actions", "takes_tools", "told"),
    [
        ("auto", True, None),
        ("auto", False, "text"),
        ("tools", False, "tools"),
        ("text", True, "text"),
    ],
)
def test_the_form_of_actions_is_told_where_it_is_known(actions, takes_tools, told):
    assert terms(actions, takes_tools) == {
        "model": "gpt-6.2-sol",
        "calls": 7,
        **({"actions": told} if told else {}),
    }


@pytest.mark.parametrize(("kind", "hidden"), [(JobKind.SOLVE, ["AGENTS.md"]), (JobKind.IMPROVE, [])])
def test_instructions_are_hidden_in_a_task_and_not_in_the_agents_own_source(kind, hidden):
    job = Job(kind, "", {}, {}, "image", "/work/repo", 1.0)
    contract = Contract(command=("run",), check=("check",), hidden=("AGENTS.md",))
    assert json.loads(launch_record(job, contract, Supply(), "", "", ""))["hidden"] == hidden


def command_of(language):
    environment = Environment("0" * 16, Path("/packages"), language, "1.19", "", (".",), ())
    job = Job(
        kind=JobKind.SOLVE,
        problem="",
        source={},
        workspace={},
        image="image",
        workdir="/work/repo",
        time_limit_s=1.0,
        environment=environment.shown("/work/repo"),
    )
    return json.loads(launch_record(job, Contract(command=("run",), check=("check",)), Supply(), "", "", ""))[
        "command"
    ]


@pytest.mark.parametrize(
    ("language", "told"),
    [
        (Language.PYTHON, "DGM_TASK_PATHS=/work/repo:/opt/dgm-environment"),
        (Language.JAVASCRIPT, "DGM_TASK_PATHS=/node_modules/.dgm"),
        (Language.GO, "GOMODCACHE=/opt/dgm-environment/mod"),
    ],
)
def test_each_language_has_its_own_variables(language, told):
    first, *given = command_of(language)
    assert first == "env"
    assert told in given
    assert ("GOPROXY=off" in given) == (language is Language.GO)
