"""Consent in advance to what a third-party suite, run or file of settings would do on this machine."""

from collections.abc import Sequence
from pathlib import Path

from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.opening import NoSandboxEngine, is_local, open_suite
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.consents import Subject
from dgm.errors import UserError
from dgm.models.reach import file_models, list_reach
from dgm.search.start import settings_of


def trust(name: str | Path, *, network: bool = False) -> Sequence[str]:
    """Approve what a third-party suite, run or settings file would do on this machine; look at it first.

    A suite: Docker builds the Dockerfiles of its tasks, which run programs of its author. A run or a settings file:
    model calls go to the addresses, with the key variables and at the prices that it names. What changes later is
    asked about again.

    Args:
        name: of a suite or a run, or its folder; or a settings file (``.toml``).
        network: whether the suite's Dockerfiles may use a network while they are built.

    Returns:
        What was approved, a few words each; nothing if it needs no consent.

    Raises:
        UserError: there is nothing of this name, or the answer cannot be remembered.
    """
    subjects = _list_subjects(str(name), network=network)
    for subject in subjects:
        subject.agree()
    return [subject.words for subject in subjects]


def _list_subjects(name: str, *, network: bool) -> Sequence[Subject]:
    if not is_local(name):
        if network:
            raise UserError(f"there is no suite {name!r} on this machine", argument="network")
        if name.endswith(".toml"):
            return list_reach(file_models(Path(name)))
        with Run.open(find_run(name)) as run:
            return list_reach(settings_of(run))
    suite = open_suite(name, NoSandboxEngine())
    parts = list(suite.parts.values()) if isinstance(suite, MixedBenchmark) else [suite]
    subjects = [part.dockerfiles(network=network) for part in parts if isinstance(part, SuiteBenchmark)]
    return [subject for subject in subjects if subject is not None]
