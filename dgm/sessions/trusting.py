"""A person's yes to the Dockerfiles of a suite, or to the addresses that a run names."""

from collections.abc import Sequence

from dgm.archive.run import Run
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.opening import is_local, open_suite
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.consents import Subject
from dgm.errors import UserError
from dgm.models.reach import list_reach
from dgm.publish.finding import find_run
from dgm.search.run_settings import settings_of
from dgm.sessions.suites import NoSandboxEngine


def list_subjects(name: str, *, network: bool) -> Sequence[Subject]:
    """Return what of a suite or a run needs a person's yes; nothing if it needs none.

    Args:
        name: of a suite, as ``--benchmark`` takes it, or of a run.
        network: whether the steps of a suite's Dockerfiles may use a network.

    Raises:
        UserError: there is neither a suite nor a run of this name, or ``network`` is given for a run.
    """
    if not is_local(name):
        if network:
            raise UserError(
                f"--network is about a suite's Dockerfiles, and there is no suite {name!r} on this machine"
            )
        with Run.open(find_run(name)) as run:
            return list_reach(settings_of(run).models)
    opened = open_suite(name, NoSandboxEngine())
    parts = list(opened.parts.values()) if isinstance(opened, MixedBenchmark) else [opened]
    found = [part.dockerfiles(network=network) for part in parts if isinstance(part, SuiteBenchmark)]
    return [subject for subject in found if subject is not None]
