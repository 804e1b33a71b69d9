"""Children that wait for a person, as lines and as JSON."""

import re
from typing import Any

from dgm.archive.approvals import UnreadableApproval, WaitingChild, read_answer
from dgm.archive.run import Run
from dgm.domain import ActionId
from dgm.show.safe import one_line
from dgm.show.times import rough_duration_text


def diff_against_parent(run: Run, one: WaitingChild) -> bytes:
    """Return the child's change against its first parent."""
    return run.repository.diff(run.tree.agents[one.child.parents[0]].commit, one.child.commit)


def child_record(run: Run, action: ActionId, one: WaitingChild) -> dict[str, Any]:
    """Return a waiting child as a record, with an answer that the search has not read yet."""
    lines = diff_against_parent(run, one).split(b"\n")
    child, most = one.child, run.config["settings"]["gates"]["approve_s"]
    record: dict[str, Any] = {
        "child": action,
        "parents": list(child.parents),
        "operator": child.operator,
        "rationale": child.rationale,
        "commit": child.commit,
        "files": sum(line.startswith(b"diff --git ") for line in lines),
        "added": sum(line.startswith(b"+") and not line.startswith(b"+++ ") for line in lines),
        "removed": sum(line.startswith(b"-") and not line.startswith(b"--- ") for line in lines),
        "since": one.since,
        "until": None if most is None else one.since + most,
        "answer": None,
        "reason": "",
        "fault": "",
    }
    try:
        answer = read_answer(run.folder, action)
    except UnreadableApproval as fault:
        return {**record, "fault": str(fault)}
    return {**record, "answer": "yes" if answer.yes else "no", "reason": answer.reason} if answer else record


def child_lines(record: dict[str, Any], now: float) -> list[str]:
    """Return a waiting child as lines for people.

    Args:
        record: from ``child_record``.
        now: Unix time.
    """
    parents = " and ".join(map(str, record["parents"]))
    files = "1 file" if record["files"] == 1 else f"{record['files']} files"
    size = f"{files}, +{record['added']} -{record['removed']}"
    left = "" if record["until"] is None else f", {rough_duration_text(record['until'] - now)} left"
    waits = f"waits for {rough_duration_text(now - record['since'])}{left}"
    lines = [f"child {record['child']} of {parents} ({record['operator']}): {size}; {waits}"]
    lines.append(f"  {one_line(record['rationale'], 200)}")
    if record["answer"]:
        said = " ".join(f"{record['answer']} {record['reason']}".split())
        lines.append(f"  answered already, and not read yet: {one_line(said, 120)}")
    if record["fault"]:
        lines.append(f"  no answer: {one_line(record['fault'], 200)}")
    return lines


def parse_action_id(text: str) -> ActionId | None:
    """Return the number of the child that a person names; None if the text is no number."""
    return ActionId(int(text)) if re.fullmatch(r"[0-9]{1,15}", text) else None
