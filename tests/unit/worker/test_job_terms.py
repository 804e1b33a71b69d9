"""What the job file says of the lent model: how many calls, and whether to act by tools or by text."""

from types import SimpleNamespace

import pytest

from dgm.gateway.lease import CallLimits
from dgm.gateway.model_names import ModelNames
from dgm.meta.contract import Contract
from dgm.worker.job_files import job_terms


def terms(actions, takes_tools):
    names = ModelNames("openai/gpt-6.2-sol")
    lease = SimpleNamespace(limits=CallLimits(calls=7), takes_tools=takes_tools, names=names)
    return job_terms(Contract(("run",), ("check",), actions), lease)


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
