"""A person's yes to the Dockerfiles of a suite, or to the addresses that a run or a file of settings names."""

from collections.abc import Sequence
from pathlib import Path

from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.opening import is_local, open_suite
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.config.resolving import read_settings_file
from dgm.consents import Subject
from dgm.errors import UserError
from dgm.experiments.sweep_file import read_sweep
from dgm.experiments.sweep_plan import plan_runs
from dgm.models.reach import file_models, list_reach
from dgm.search.run_settings import settings_of
from dgm.sessions.suites import NoSandboxEngine


def list_subjects(name: str, *, network: bool) -> Sequence[Subject]:
    """Return what of a suite, a run or a file of settings needs a person's yes; nothing if it needs none.

    Args:
        name: of a suite, as ``--benchmark`` takes it, of a run, or of a file of settings or a sweep (``.toml``).
        network: whether the steps of a suite's Dockerfiles may use a network.

    Raises:
        UserError: there is nothing of this name, or ``network`` is given for anything but a suite.
    """
    if not is_local(name):
        if network:
            raise UserError(
                f"--network is about a suite's Dockerfiles, and there is no suite {name!r} on this machine"
            )
        if name.endswith(".toml"):
            return _list_file_reach(Path(name))
        with Run.open(find_run(name)) as run:
            return list_reach(settings_of(run))
    opened = open_suite(name, NoSandboxEngine())
    parts = list(opened.parts.values()) if isinstance(opened, MixedBenchmark) else [opened]
    found = [part.dockerfiles(network=network) for part in parts if isinstance(part, SuiteBenchmark)]
    return [subject for subject in found if subject is not None]


def _list_file_reach(file: Path) -> Sequence[Subject]:
    is_sweep = "sweep" in read_settings_file(file)
    settings = [run.settings for run in plan_runs(read_sweep(file))] if is_sweep else [file_models(file)]
    return list({subject.content: subject for each in settings for subject in list_reach(each)}.values())
