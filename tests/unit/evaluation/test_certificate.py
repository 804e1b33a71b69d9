"""Certificates that hold, and what is changed in them to no avail."""

import hashlib
import json
import re

import msgspec
import pytest
from msgspec.structs import replace

from dgm.domain import TaskId
from dgm.errors import UserError
from dgm.evaluation.certificate import (
    KIND,
    Certificate,
    CertifiedAgent,
    CertifiedRound,
    DoesNotHold,
    check_agent,
    check_logs,
    check_suite,
    complete,
    digest_task,
    read_certificate,
    write_certificate,
)

SEED, FIRST, SECOND, THIRD = ("0" * 40, "1" * 40, "2" * 40, "3" * 40)
TASKS = [TaskId(f"task-{number}") for number in range(24)]
VERSION = "1-abc"


def build():
    """The third round after one promotion: 18 wins, 1 loss, 5 ties."""
    outcomes = [(False, True)] * 18 + [(True, False)] + [(True, True)] * 4 + [(None, True)]
    return complete(
        Certificate(
            certificate=KIND,
            dgm="1.0",
            suite="words",
            version=VERSION,
            alpha=0.05,
            limit=2,
            rounds=(
                CertifiedRound(SEED, (FIRST,), FIRST),
                CertifiedRound(FIRST, (SECOND,), None),
                CertifiedRound(FIRST, (SECOND[::-1], THIRD), THIRD),
            ),
            incumbent=CertifiedAgent(1, FIRST, "a" * 40),
            accepted=CertifiedAgent(3, THIRD, "b" * 40),
            tasks=len(TASKS),
            verdicts=tuple(
                (digest_task(VERSION, task), *pair) for task, pair in zip(TASKS, outcomes, strict=True)
            ),
        )
    )


def read(tmp_path, data):
    file = tmp_path / "certificate.json"
    file.write_bytes(data)
    return read_certificate(file)


def test_a_certificate_holds_and_says_what_its_verdicts_give(tmp_path):
    certificate = read(tmp_path, write_certificate(build()))
    test = certificate.test
    assert [test[name] for name in ("round", "promotions", "wins", "losses")] == [3, 1, 18, 1]
    assert test["p_value"] == 20 / 2**19
    assert test["p_value"] <= test["level"] == pytest.approx(0.05 / 12 / 6 / 2 / 4)
    assert 0 < test["gain"][0] < 17 / 23 < test["gain"][1]
    check_suite(certificate, VERSION, TASKS)
    check_agent(certificate, "b" * 40)
    check_logs(certificate, replace(build(), dgm="2.0"))


def seal(content):
    """Seal a forged certificate anew; its test and its chain stay as they are."""
    certificate = msgspec.convert(content, Certificate)
    unsealed = replace(certificate, digest="")
    digest = hashlib.sha256(msgspec.json.encode(unsealed)).hexdigest()
    return write_certificate(replace(unsealed, digest=digest))


def forge(path, value):
    def change(content):
        *above, last = path
        inner = content
        for key in above:
            inner = inner[key]
        inner[last] = value(inner[last]) if callable(value) else value

    return change


def drop_task(content):
    del content["verdicts"][20]


def swap_agents(content):
    content["incumbent"], content["accepted"] = content["accepted"], content["incumbent"]


FORGERIES = {
    "a changed verdict": (forge(["verdicts", 18], lambda pair: [pair[0], False, True]), "test.wins is 18"),
    "a dropped task": (drop_task, "verdicts on 23 of 24"),
    "swapped agents": (swap_agents, "last round"),
    "another alpha": (forge(["alpha"], 0.1), "rounds is"),
    "another round": (forge(["test", "round"], 2), "test.round is 2"),
    "other promotions": (forge(["test", "promotions"], 0), "test.promotions is 0"),
    "another limit": (forge(["limit"], 3), "rounds is"),
    "another p-value": (forge(["test", "p_value"], 1e-9), "test.p_value is 1e-09"),
    "another suite": (forge(["version"], "1-abd"), "rounds is"),
    "another agent": (forge(["accepted", "commit"], "4" * 40), "last round"),
    "other files": (forge(["accepted", "tree"], "c" * 40), "other files"),
    "a dropped round": (forge(["rounds"], lambda rounds: rounds[1:]), "rounds is"),
    "an incumbent that was not promoted": (forge(["rounds", 1, "incumbent"], SEED), "round 2"),
    "a level": (forge(["test", "level"], 0.05), "test.level is 0.05"),
    "a gain": (forge(["test", "gain"], [0.5, 0.9]), "test.gain is"),
}


@pytest.mark.parametrize("sealed", [False, True], ids=["as it is", "sealed anew"])
@pytest.mark.parametrize(("change", "problem"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_certificate_does_not_hold(tmp_path, change, problem, sealed):
    content = json.loads(write_certificate(build()))
    change(content)
    data = seal(content) if sealed else msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"
    with pytest.raises(DoesNotHold, match=problem if sealed else None) as caught:
        check_agent(read(tmp_path, data), "b" * 40)
    assert "\n" not in str(caught.value)


def test_one_that_is_forged_in_all_parts_does_not_fit_the_suite_nor_the_logs(tmp_path):
    verdicts = [
        (task, *(pair if pair != [True, False] else [False, True])) for task, *pair in build().verdicts
    ]
    forged = complete(replace(build(), verdicts=tuple(verdicts)))
    certificate = read(tmp_path, write_certificate(forged))
    with pytest.raises(DoesNotHold, match="verdicts is"):
        check_logs(certificate, build())
    with pytest.raises(DoesNotHold, match="not those of the suite"):
        check_suite(certificate, VERSION, TASKS[::-1])
    with pytest.raises(DoesNotHold, match="of suite 1-abc"):
        check_suite(certificate, "1-abd", TASKS)


def test_a_test_that_misses_its_level_certifies_nothing(tmp_path):
    tied = tuple((task, True, True) for task, *_ in build().verdicts)
    with pytest.raises(DoesNotHold, match="above the level"):
        read(tmp_path, write_certificate(complete(replace(build(), verdicts=tied))))


TEXT = write_certificate(build()).decode()


@pytest.mark.parametrize(
    ("data", "problem", "kind"),
    [
        (TEXT[:-3], "no certificate", UserError),
        (TEXT.replace("0.05", "NaN", 1), "no certificate", UserError),
        ("[]", "no certificate", UserError),
        (TEXT.replace(KIND, "dgm promotion 2"), "that this dgm reads", UserError),
        (TEXT.replace('"alpha": 0.05', '"alpha": 0.9,\n "alpha": 0.05', 1), "twice", DoesNotHold),
        (TEXT.replace('"alpha": 0.05', '"alpha": "0.05"', 1), "alpha", DoesNotHold),
        (TEXT.replace('"alpha": 0.05', '"alpha": 1e400', 1), "no certificate", UserError),
        (TEXT.replace('"alpha": 0.05', '"alpha": 5e-324', 1), "alpha", DoesNotHold),
        (TEXT.replace('"dgm": "1.0"', '"dgm": "1.0",\n "more": 1'), "more", DoesNotHold),
        (TEXT.replace('"wins": 18', '"wins": 18.0'), "its form", DoesNotHold),
        (TEXT.replace('"losses": 1', '"losses": true'), "its form", DoesNotHold),
        (TEXT.replace('"wins": 18', '"wins": 18,\n  "more": null'), "is added", DoesNotHold),
    ],
)
def test_what_is_no_certificate_is_refused_in_one_line(tmp_path, data, problem, kind):
    with pytest.raises(kind, match=problem) as caught:
        read(tmp_path, data.encode())
    assert (type(caught.value), re.search("\n", str(caught.value))) == (kind, None)
