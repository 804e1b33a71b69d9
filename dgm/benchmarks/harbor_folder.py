"""The benchmark ``harbor:FOLDER``: tasks in Harbor's layout, imported once into a suite in the cache.

The suite's folder is named by the digest of all that decides its content, so a changed task is imported anew.
"""

import hashlib
import logging
import os
import shlex
import shutil
import tempfile
from pathlib import Path

from dgm import __version__
from dgm.benchmarks.formats import BenchmarkContext, Format
from dgm.benchmarks.grader_version import digest_files
from dgm.benchmarks.harbor import find_tasks, import_harbor
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.errors import UserError
from dgm.folders import list_files, read_entry
from dgm.paths import cache_folder

log = logging.getLogger(__name__)


def import_folder(source: Path, image: str) -> Path:
    """Return the folder of the suite that has the tasks below ``source``; import them if that was not done yet.

    Args:
        source: one task's folder, or a folder of them.
        image: as for ``import_harbor``.

    Raises:
        UserError: there is no task, or none can be imported.
    """
    imported = cache_folder("harbor") / _digest(source, image)
    folder = imported / source.resolve().name
    if folder.is_dir():
        return folder
    draft = Path(tempfile.mkdtemp(prefix="half-", dir=imported.parent))
    try:
        report = import_harbor(source, draft / folder.name, image)
        for task, reason in report.skipped.items():
            log.warning("%s: task %s is left out: it %s", source, task, reason)
        if remarks := sum(map(len, report.remarks.values())):
            log.warning(
                "%s: %d parts of its tasks are not carried over; dgm benchmark make OUT %s lists them",
                source,
                remarks,
                shlex.quote(str(source)),
            )
        try:
            # A folder with the digest's name is complete.
            draft.rename(imported)
        except OSError:
            # Another process has imported the same meanwhile.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _digest(source: Path, image: str) -> str:
    """Return the digest of the tasks' files, their names, the image, and the version of dgm."""
    digest = hashlib.sha256(f"{__version__}\n{image}\n{source.resolve().name}\n".encode())
    for task in find_tasks(source):
        name = os.fsencode(task.relative_to(source))
        digest.update(len(name).to_bytes(8, "big") + name)
        try:
            content = digest_files((file, read_entry(task, file)) for file in list_files(task))
        except UserError as error:
            # The import leaves this task out, with the reason.
            content = str(error)
        digest.update(content.encode())
    return digest.hexdigest()


def open_harbor(context: BenchmarkContext) -> SuiteBenchmark:
    """Open a benchmark by its full name, ``harbor:FOLDER``.

    Raises:
        ConsentNeeded, UserError: as for a suite's folder and ``import_folder``.
    """
    name = context.name.partition(":")[2]
    if not name:
        raise UserError(f"benchmark {context.name!r}: name the folder with the tasks, as in {FORMAT.example}")
    source = Path(name).expanduser()
    folder = import_folder(source, context.settings.harbor.image)
    return SuiteBenchmark(folder, context.engine, context.grading.perturb)


FORMAT = Format(
    "harbor",
    open_harbor,
    "harbor:FOLDER",
    (("harbor:FOLDER", "tasks in the layout of Harbor and Terminal-Bench 2"),),
    is_folder=True,
    meaning="tasks in Harbor's layout in a folder",
    is_local=True,
)
