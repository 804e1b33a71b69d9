"""Puts a folder of packages among the environments of a suite, under the name that its digest gives."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dgm.benchmarks.environments import FOLDER, NAME_LENGTH, PACKAGES, environment_digest
from dgm.benchmarks.mining.toml_writing import toml_text
from dgm.errors import UserError


class CannotInstall(Exception):
    """The declared packages cannot be installed; the message is the installer's own."""


def store_environment(packages: Path, record: Mapping[str, object], suite: Path) -> str:
    """Move a folder of packages below ``environments/``, unless the same is there; return its name.

    Args:
        packages: the folder, with the modes that it is to have.
        record: content of ``environment.toml``.
        suite: folder of the environments.

    Raises:
        CannotInstall: it holds something else than files and links within it.
    """
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=suite / FOLDER))
    try:
        packages.replace(draft / PACKAGES)
        (draft / "environment.toml").write_text(toml_text(record), encoding="utf-8")
        try:
            name = environment_digest(draft)[:NAME_LENGTH]
        except UserError as error:
            raise CannotInstall(str(error)) from error
        if not (suite / FOLDER / name).exists():
            draft.chmod(0o755)
            draft.replace(suite / FOLDER / name)
        return name
    finally:
        shutil.rmtree(draft, ignore_errors=True)
