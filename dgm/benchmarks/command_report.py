"""The end of a test command, as the program that watches it in the sandbox reports it, and the reward that it left.

The sandbox's side is ``command_watcher.py``. The report counts only with its HMAC under a key that this side makes up,
so that nothing that graded code prints, or does to the programs around it, can pass for one.
"""

import base64
import hmac
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dgm.benchmarks.plain_logs import plain_log
from dgm.protocols import Completed, Sandbox

WATCHER = Path(__file__).with_name("command_watcher.py")
PLACE = "/job"
"""The watcher's folder in the sandbox."""
REWARD_FILES = ("reward.txt", "reward.json")
REWARD_LIMIT = 100_000
OUTPUT_LIMIT = 1_000_000
SHOWN_VALUE = 60
_REPORT_LIMIT = 400_000
_MARK = b"\ndgm-command-report "
_SIGNALS = range(129, 193)
"""Exit codes by which a shell says that its last command was ended by a signal."""


@dataclass(frozen=True, slots=True)
class CommandReport:
    """The end of a test command, as its watcher saw it."""

    code: int
    """Exit code as in a shell: 128 + signal if killed."""
    signal: int = 0
    """Signal that ended the command itself; 0 if it ended by itself."""
    left: int = 0
    """Number of its processes that still ran."""
    writes: int = 0
    """Number of times that a reward was written; -1 if unknown."""
    refused: str = ""
    """Why the reward cannot be taken; empty if it can."""
    rewards: Mapping[str, bytes] = field(default_factory=dict)
    """Content of each reward file that there was when the command ended."""


async def run_watched(
    sandbox: Sandbox,
    command: Sequence[str],
    *,
    timeout_s: float,
    cwd: str,
    env: Mapping[str, str],
    reward_folder: str = "",
) -> tuple[Completed, CommandReport | None]:
    """Run a command under the watcher, which ``PLACE`` holds; return what an engine says, and the watcher's report.

    Args:
        sandbox: runs it.
        command: the command and its arguments.
        timeout_s: seconds after which all of it is killed.
        cwd: the folder it runs in.
        env: its variables.
        reward_folder: where it leaves its reward; empty if it leaves none.

    Returns:
        The output without the report, and the report; None if the watcher did not come to it.
    """
    key = secrets.token_bytes(32)
    assignment = {
        "key": key.hex(),
        "command": list(command),
        "env": dict(env),
        "output_limit": OUTPUT_LIMIT,
        "folder": reward_folder,
        "names": REWARD_FILES,
        "limit": REWARD_LIMIT,
    }
    completed = await sandbox.exec(
        ["python3", "-I", "-B", f"{PLACE}/{WATCHER.name}"],
        timeout_s=timeout_s,
        cwd=cwd,
        stdin=json.dumps(assignment).encode(),
        output_limit=OUTPUT_LIMIT + _REPORT_LIMIT,
    )
    output, report = read_report(completed.output, key)
    return replace(completed, output=output[:OUTPUT_LIMIT]), report


def read_report(output: bytes, key: bytes) -> tuple[bytes, CommandReport | None]:
    """Return the command's output, and the report that was sealed with the key; None if there is none."""
    before, mark, rest = output.rpartition(_MARK)
    seal, _, text = rest.partition(b"\n")[0].partition(b" ")
    if not mark or not hmac.compare_digest(seal, hmac.new(key, text, "sha256").hexdigest().encode()):
        return output, None
    said = json.loads(text)
    rewards = {name: base64.b64decode(data) for name, data in said.pop("rewards").items()}
    return before, CommandReport(**said, rewards=rewards)


def find_reward(report: CommandReport) -> tuple[str, float]:
    """Return the reward, and the name of the file that holds it.

    Raises:
        ValueError: there is none, or not one that is surely the command's own; the message says why.
    """
    if report.signal or report.code in _SIGNALS:
        number = report.signal or report.code - 128
        raise ValueError(f"the tests were ended by signal {number}, so that their reward does not count")
    if report.refused:
        raise ValueError(f"the tests left no reward that can be read: {report.refused}")
    if not report.rewards:
        raise ValueError(f"the tests ended with exit status {report.code} and left no reward")
    if report.left and report.writes != 1:
        raise ValueError(
            f"the reward was written several times, and {report.left} processes of the tests still ran when they "
            "ended: end them first (kill, then wait)"
        )
    values = {name: _parse_reward(name, data) for name, data in report.rewards.items()}
    if len(set(values.values())) > 1:
        raise ValueError(" and ".join(f"{name} says {value:g}" for name, value in values.items()))
    return next(iter(values.items()))


def _parse_reward(name: str, data: bytes) -> float:
    text = plain_log(data).decode("utf-8", "replace").strip()
    said = repr(text[:SHOWN_VALUE])
    if name.endswith(".json"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name}: is no JSON: {said}") from error
        if isinstance(value, dict):
            if "reward" not in value and len(value) != 1:
                raise ValueError(f"{name}: holds several values, and none is named 'reward'")
            value = value["reward"] if "reward" in value else next(iter(value.values()))
    else:
        value = text
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: holds no number: {said}") from error
    if not math.isfinite(number):
        raise ValueError(f"{name}: holds no finite number: {said}")
    return number
