"""A yes to other people's suites and runs, from a program (``dgm trust``)."""

from collections.abc import Sequence
from pathlib import Path

from dgm.blocking import in_python
from dgm.sessions.trusting import list_subjects


def trust(name: str | Path, *, network: bool = False) -> Sequence[str]:
    """Agree to what another person's suite, run or settings would do on this machine; look at it first.

    A suite: Docker builds the Dockerfiles of its tasks, which run programs of its author. A run, or a file of settings
    or of a sweep: model calls go to the addresses, with the variables of keys and at the prices that its settings name.
    The yes holds for what is there now.

    Args:
        name: of a suite or a run, or its folder; or a file (``.toml``).
        network: whether the suite's Dockerfiles may use a network while they are built.

    Returns:
        What was agreed to, a few words each; nothing if it needs no yes.

    Raises:
        UserError: there is nothing of this name, or the yes cannot be remembered.
    """
    with in_python():
        subjects = list_subjects(str(name), network=network)
        for subject in subjects:
            subject.agree()
    return [subject.words for subject in subjects]
