"""A suite as a data set in the layout of Hugging Face: what agents see of its tasks, never tests or solutions."""

import base64
import json
from importlib.resources import files
from pathlib import Path
from string import Template

from dgm.benchmarks.opening import NoSandboxEngine, open_suite
from dgm.domain import Entry, Snapshot, Split, Task
from dgm.errors import UserError
from dgm.exports.conversations import dump_json
from dgm.exports.files import new_folder
from dgm.exports.row_writer import Row, RowWriter
from dgm.exports.scrub import LocalIdentity, MatchGrade, Scrubber
from dgm.protocols import InImage

_COLUMNS = (
    "id:string benchmark:string version:string prompt:string image:string workdir:string timeout_s:float64 "
    "tags:strings files:files"
)


def write_suite(name: str, target: Path, identity: LocalIdentity) -> dict[str, int]:
    """Write the tasks of a suite, unchanged, with a file for each split; return the numbers of tasks.

    Raises:
        UserError: there is no such suite, a task holds a secret of this environment, pyarrow is missing, or the folder
            cannot be made.
    """
    benchmark = open_suite(name, NoSandboxEngine())
    secrets = Scrubber(identity.patterns(()))
    counts: dict[str, int] = {}
    with new_folder(target) as draft:
        for split in Split:
            if tasks := benchmark.tasks(split):
                with RowWriter(draft / f"{split}.parquet", _COLUMNS, Scrubber(())) as writer:
                    for task in tasks:
                        row = _task_row(task, benchmark.workspace(task.id), benchmark.version)
                        if match := secrets.first(dump_json(row), MatchGrade.SECRET):
                            raise UserError(
                                f"{name}: task {task.id} holds {match[0].what}; nothing was written"
                            )
                        writer.add(row)
                counts[split.value] = len(tasks)
        template = Template(files("dgm.exports").joinpath("suite_card.md").read_text(encoding="utf-8"))
        card = template.substitute(
            data_files="\n".join(f"  - split: {split}\n    path: {split}.parquet" for split in counts),
            name=json.dumps(benchmark.name),
            version=benchmark.version,
            table="\n".join(f"| `{split}` | {count} |" for split, count in counts.items()),
            folder=target.name,
            first=next(iter(counts)),
        )
        (draft / "README.md").write_text(card, encoding="utf-8")
    return counts


def _task_row(task: Task, workspace: Snapshot | InImage, version: str) -> Row:
    snapshot = {} if isinstance(workspace, InImage) else workspace
    return {
        "id": task.id,
        "benchmark": task.benchmark,
        "version": version,
        "prompt": task.prompt,
        "image": task.image,
        "workdir": task.workdir,
        "timeout_s": task.timeout_s,
        "tags": task.tags,
        "files": [_file_row(path, entry) for path, entry in sorted(snapshot.items())],
    }


def _file_row(path: str, entry: Entry) -> Row:
    """Return a file as a text; of one that is not UTF-8, its Base64."""
    try:
        content, encoding = entry.data.decode(), "utf-8"
    except UnicodeDecodeError:
        content, encoding = base64.b64encode(entry.data).decode(), "base64"
    return {"path": path, "mode": f"{entry.mode:o}", "encoding": encoding, "content": content}
