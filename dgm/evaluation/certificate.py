"""Certificates of promotion: one JSON file with which anybody can check the arithmetic behind a promotion.

It has the verdicts of incumbent and promoted agent under digests of the tasks' names, and all rounds so far. A digest
over all of it seals it, and each round's digest continues the one before. A forger can seal forged verdicts anew: that
a certificate holds means that it agrees with itself. The suite, the agent's files and the run tie it to the world.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from dgm import __version__
from dgm.archive.run import Run
from dgm.bounded_reading import read_file
from dgm.domain import TaskId
from dgm.errors import ArchiveCorrupt, UserError
from dgm.evaluation.promotion import list_differences, read_pairs
from dgm.stats import confidence_sequence, promotion_level, sign_test

KIND: Literal["dgm promotion 1"] = "dgm promotion 1"
MAX_BYTES = 16_000_000
GAIN_DIGITS = 6
"""The last digits of the confidence sequence differ between platforms; all else is exact."""
Number = Annotated[int, Meta(ge=0, le=1_000_000)]
Hex = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z")]
Pair = tuple[Hex, bool | None, bool | None]
"""Digest of a task, and whether incumbent and promoted agent resolved it; None without a verdict."""


class DoesNotHold(UserError):
    """A certificate contradicts itself, or something that it was compared with."""


class _Record(Struct, frozen=True, forbid_unknown_fields=True):
    """The base of all parts of a certificate."""


class CertifiedAgent(_Record, frozen=True):
    """An agent: its number in the run, its commit, and git's id of its files."""

    agent: Number
    commit: Hex
    tree: Hex


class CertifiedRound(_Record, frozen=True):
    """A round by the commits of its agents; the digest is over it and the digest before."""

    incumbent: Hex
    candidates: tuple[Hex, ...]
    accepted: Hex | None
    digest: str = ""


class Certificate(_Record, frozen=True):
    """The content of a certificate."""

    certificate: Literal["dgm promotion 1"]
    dgm: str
    """Version that wrote it."""
    suite: str
    version: str
    """Digest of the suite's data, with the grader's number."""
    tasks: Number
    """Promotion tasks of the suite."""
    alpha: Annotated[float, Meta(ge=1e-6, lt=1)]
    limit: Annotated[int, Meta(ge=1, le=100)]
    """Largest number of candidates in a round."""
    rounds: Annotated[tuple[CertifiedRound, ...], Meta(min_length=1)]
    """All rounds up to the one that accepted."""
    incumbent: CertifiedAgent
    accepted: CertifiedAgent
    verdicts: tuple[Pair, ...]
    """One entry per promotion task, in the suite's order; a missing verdict is taken to favour the incumbent."""
    test: dict[str, Any] = {}
    """The arithmetic; ``gain`` is a confidence sequence for the mean gain of this one pair of agents."""
    digest: str = ""
    """Over all other fields."""


def write_certificate(certificate: Certificate) -> bytes:
    """Return the content of a certificate's file."""
    return msgspec.json.format(msgspec.json.encode(certificate), indent=1) + b"\n"


def build_certificate(search: Run, promotion: Run, number: int) -> Certificate:
    """Return the certificate of round ``number`` from the logs of both runs.

    Raises:
        DoesNotHold: the search has no such round, or it accepted no agent.
    """
    tree, rounds, answers = search.tree, search.tree.promotions.rounds, search.tree.promotions.accepted
    accepted = answers[number - 1] if number <= len(answers) else None
    if accepted is None:
        raise DoesNotHold(f"round {number} of run {search.name} accepted no agent")
    started, version = rounds[number - 1], promotion.config["versions"]["benchmark"]
    commits = [agent.commit for agent in tree.agents]

    incumbent, promoted = (
        CertifiedAgent(agent, commits[agent], search.repository.tree_of(commits[agent]))
        for agent in (started.incumbent, accepted)
    )
    return complete(
        Certificate(
            certificate=KIND,
            dgm=__version__,
            suite=Path(search.settings()["benchmark"]).name,
            version=version,
            tasks=len(promotion.tree.tasks),
            alpha=started.alpha,
            limit=started.limit,
            rounds=tuple(
                CertifiedRound(
                    commits[begun.incumbent],
                    tuple(commits[agent] for agent in begun.candidates),
                    None if answer is None else commits[answer],
                )
                for begun, answer in zip(rounds[:number], answers, strict=False)
            ),
            incumbent=incumbent,
            accepted=promoted,
            verdicts=tuple(
                (digest_task(version, TaskId(task)), old, new)
                for task, old, new in read_pairs(promotion, search, started.incumbent, accepted)
            ),
        )
    )


def complete(certificate: Certificate) -> Certificate:
    """Return a certificate whose digests and test are computed from its other fields."""
    alpha, limit, rounds = certificate.alpha, certificate.limit, list[CertifiedRound]()
    digest = _digest([certificate.suite, certificate.version, certificate.tasks, alpha, limit])
    for entry in certificate.rounds:
        digest = _digest([digest, replace(entry, digest="")])
        rounds.append(replace(entry, digest=digest))
    differences = list_differences(certificate.verdicts)
    wins, losses = differences.count(1), differences.count(-1)
    promotions = sum(entry.accepted is not None for entry in rounds[:-1])
    test = {
        "round": len(rounds),
        "promotions": promotions,
        "level": promotion_level(alpha, len(rounds), promotions, limit),
        "wins": wins,
        "losses": losses,
        "p_value": sign_test(wins, losses),
        "gain": [round(end, GAIN_DIGITS) for end in confidence_sequence(differences, alpha)],
        "confidence": 1 - alpha,
    }
    unsealed = replace(certificate, rounds=tuple(rounds), test=test, digest="")
    return replace(unsealed, digest=_digest(unsealed))


def digest_task(version: str, task: TaskId) -> str:
    """Return what stands for a task of a suite of this version."""
    return _digest([version, task])


def _digest(content: object) -> str:
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


def read_certificate(file: Path) -> Certificate:
    """Return the certificate in a file, if it agrees with itself.

    Raises:
        UserError: the file cannot be read, or holds no certificate.
        DoesNotHold: it holds one that contradicts itself; the message says where.
    """
    try:
        data = read_file(file, MAX_BYTES)
        content = msgspec.json.decode(data)
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read: {error.strerror}; name the file of a certificate"
        ) from error
    except (ArchiveCorrupt, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{file}: no certificate ({error})") from error
    if not isinstance(content, dict) or content.get("certificate") != KIND:
        raise UserError(f"{file}: no certificate that this dgm reads")
    try:
        certificate = msgspec.convert(content, Certificate)
        _check_rounds(certificate)
        computed = complete(certificate)
        _check_equal(certificate, computed)
    except ValueError as error:
        raise DoesNotHold(str(error)) from error
    _require(write_certificate(computed) == data, "a key is added or stands twice, or its form was changed")
    _require(certificate.test["p_value"] <= certificate.test["level"], "the p-value is above the level")
    return certificate


def _check_rounds(certificate: Certificate) -> None:
    rounds, incumbent = certificate.rounds, certificate.rounds[0].incumbent
    for number, entry in enumerate(rounds, 1):
        place, candidates = f"round {number}", set(entry.candidates)
        _require(
            entry.incumbent == incumbent, f"{place}: the incumbent is not the agent that was promoted last"
        )
        _require(
            0 < len(entry.candidates) <= certificate.limit,
            f"{place}: not 1 to {certificate.limit} candidates",
        )
        _require(incumbent not in candidates, f"{place}: the incumbent is a candidate")
        _require(entry.accepted in {None, *candidates}, f"{place}: accepts an agent that is no candidate")
        incumbent = entry.accepted or incumbent
    _require(rounds[-1].accepted == certificate.accepted.commit, "the last round did not accept this agent")
    _require(rounds[-1].incumbent == certificate.incumbent.commit, "the last round had another incumbent")
    tasks = len({task for task, *_ in certificate.verdicts})
    _require(
        tasks == len(certificate.verdicts) == certificate.tasks,
        f"it has verdicts on {tasks} of {certificate.tasks} tasks",
    )


def _check_equal(stated: Certificate, computed: Certificate) -> None:
    """Check that two certificates are equal; name the first field that differs."""

    def compare(one: Any, other: Any, place: str) -> None:  # noqa: ANN401  (any JSON)
        if isinstance(one, dict) and isinstance(other, dict):
            for key in {**other, **one}:
                compare(one.get(key), other.get(key), f"{place}.{key}".lstrip("."))
        else:
            _require(one == other, f"{place} is {one}, and should be {other}"[:300])

    compare(msgspec.to_builtins(stated), msgspec.to_builtins(computed), "")


def check_suite(certificate: Certificate, version: str, tasks: Sequence[TaskId]) -> None:
    """Check that a certificate is of all promotion tasks of a suite of this version, else raise ``DoesNotHold``."""
    _require(certificate.version == version, f"it is of suite {certificate.version}, not {version}")
    known = [digest_task(version, task) for task in tasks]
    _require([task for task, *_ in certificate.verdicts] == known, "its tasks are not those of the suite")


def check_agent(certificate: Certificate, tree: str) -> None:
    """Check that git's id of an agent's files is the promoted agent's, else raise ``DoesNotHold``."""
    _require(tree == certificate.accepted.tree, "the folder has other files than the promoted agent")


def check_logs(certificate: Certificate, logs: Certificate) -> None:
    """Check that a run's logs give this certificate, whichever dgm wrote it, else raise ``DoesNotHold``."""
    _check_equal(certificate, complete(replace(logs, dgm=certificate.dgm)))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise DoesNotHold(message)
