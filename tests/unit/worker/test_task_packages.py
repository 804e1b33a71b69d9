"""Programs that an agent starts find the packages of a task."""

import json
from pathlib import Path

import pytest

from dgm.benchmarks.environments import Environment
from dgm.meta.contract import Contract
from dgm.protocols import Job, JobKind
from dgm.worker.job_files import Supply, launch_record


def command(**language):
    environment = Environment(
        "0" * 16, Path("/packages"), machine="", roots=(".",), requirements=(), **language
    )
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
        ({"python": "3.11"}, "DGM_TASK_PATHS=/work/repo:/opt/dgm-environment"),
        ({"python": "", "node": "20"}, "DGM_TASK_PATHS=/node_modules/.dgm"),
        ({"python": "", "go": "1.19"}, "GOMODCACHE=/opt/dgm-environment/mod"),
    ],
)
def test_each_language_has_its_own_variables(language, told):
    first, *given = command(**language)
    assert first == "env"
    assert told in given
    assert ("GOPROXY=off" in given) == ("go" in language)
