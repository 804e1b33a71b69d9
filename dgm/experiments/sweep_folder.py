"""The record of a sweep beside its runs: the list of its runs, and the output of each process.

Nothing is derived from it.

``ARCHIVE/NAME/sweep.json`` lists the runs, which lie beside that folder as any other; ``ARCHIVE/NAME/RUN.log`` is the
output of a run's processes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.durable import make_folder, make_runs_folder, write_durably
from dgm.archive.finding import archive_folders
from dgm.archive.lock import WriterLock
from dgm.bounded_reading import parse_json, read_file
from dgm.errors import ArchiveCorrupt, UserError
from dgm.experiments.sweep_plan import PlannedRun
from dgm.paths import SWEEP_FILE

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class SweepMember:
    """A run of a sweep, begun or not."""

    run: str
    variant: str
    """The variant's name; empty where the sweep's file has none."""


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """The folder of a sweep in an archive folder."""

    archive: Path
    name: str

    @property
    def folder(self) -> Path:
        """The folder of its record and its logs."""
        return self.archive / self.name

    def run(self, name: str) -> Path:
        """Return the folder of one of its runs, which need not exist."""
        return self.archive / name

    def log(self, run: str) -> Path:
        """Return the file to which the output of a run's processes is appended."""
        return self.folder / f"{run}.log"

    def lock(self) -> WriterLock:
        """Make the folder if it is missing, and lock the sweep against other processes.

        Raises:
            UserError: a run has this name, or the folder cannot be written.
            ArchiveBusy: another process performs it.
        """
        if (self.folder / "run.json").exists():
            raise UserError(f"{self.folder}: a run has the sweep's name; give the sweep another one")
        try:
            make_runs_folder(self.archive)
            make_folder(self.folder)
        except OSError as error:
            raise UserError(f"{self.folder}: cannot be made: {error.strerror}") from error
        return WriterLock(self.folder / "sweep.lock")

    def write(self, file: Path, runs: Sequence[PlannedRun]) -> None:
        """Record the runs of the sweep."""
        record = {
            "format": _FORMAT,
            "name": self.name,
            "file": str(file.absolute()),
            "runs": [{"run": run.name, "variant": run.variant, "seed": run.seed} for run in runs],
        }
        write_durably(self.folder / SWEEP_FILE, json.dumps(record, indent=2).encode() + b"\n")

    def members(self) -> Sequence[SweepMember]:
        """Return the sweep's runs, begun or not, in the order of its file.

        Raises:
            ArchiveCorrupt: the record is not in the form that dgm writes.
        """
        file = self.folder / SWEEP_FILE
        try:
            record = parse_json(read_file(file))
            return [SweepMember(str(run["run"]), str(run["variant"])) for run in record["runs"]]
        except OSError as error:
            raise UserError(f"{file}: cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ArchiveCorrupt(
                f"{file}: not what dgm wrote ({error}); repeat the dgm sweep command"
            ) from error


def find_sweep(name: str) -> SweepFolder | None:
    """Return the sweep of this name in one of the archive folders, if there is one."""
    if "/" in name:
        return None
    sweeps = (SweepFolder(folder, name) for folder in archive_folders())
    return next((sweep for sweep in sweeps if (sweep.folder / SWEEP_FILE).is_file()), None)
