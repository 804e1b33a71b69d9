"""A run as a data set in the layout of Hugging Face: Parquet files and a card, for ``datasets`` and for training.

Conversations have the ``messages`` format. A row is cleaned as JSON before it is written, as in a pack, and rows are
written in pieces, so that a long run needs hardly more memory than a short one.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from string import Template

from dgm import __version__
from dgm.archive.run import Run, identity_of
from dgm.domain import ActionId, Agent, Evaluation, TaskId, Verdict
from dgm.errors import UserError
from dgm.exports.conversations import (
    ChatMessage,
    chat_messages,
    dump_json,
    evaluation_facts,
    find_calls,
    find_evaluations,
    guard_calls,
    read_threads,
    tool_definitions,
)
from dgm.exports.files import new_folder
from dgm.exports.pack import make_scrubber
from dgm.exports.row_writer import Row, RowWriter
from dgm.exports.scrub import LocalIdentity, Scrubber
from dgm.messages import Role

_FACTS = "run:string policy:string seed:int64 agent:int64 task:string attempt:int64 action:int64"
_VERDICT = "verdict:string score:float64"
_SPEND = "commit:string calls:int64 input_tokens:int64 output_tokens:int64 usd:float64 seconds:float64"
_PAIR = "chosen_agent:int64 chosen_action:int64 rejected_agent:int64 rejected_action:int64"
_CONFIGS: Mapping[str, tuple[str, str]] = {
    "evaluations": (f"{_FACTS} {_VERDICT} {_SPEND}", "every verdict of the run"),
    "trajectories": (
        f"{_FACTS} {_VERDICT} model:string thread:int64 segments:int64 calls:int64 messages:messages tools:json",
        "every conversation of every evaluation; thread 1 is the main one",
    ),
    "sft": (
        f"{_FACTS} model:string segments:int64 messages:messages tools:json",
        "conversations that solved their task, for supervised fine-tuning",
    ),
    "preferences": (
        f"run:string task:string {_PAIR} prompt:messages chosen:messages rejected:messages tools:json",
        "pairs of conversations, for preference optimisation",
    ),
}
"""Configuration → its columns, and its content in a few words."""


def write_dataset(run: Run, agent: Agent | None, target: Path, identity: LocalIdentity) -> dict[str, int]:
    """Write the evaluations and conversations of a run, or of one agent; return the numbers of rows.

    Raises:
        UserError: pyarrow is missing, the folder cannot be made, or no evaluation has a verdict.
        ArchiveCorrupt: a call is missing or damaged.
    """
    with new_folder(target) as draft:
        evaluations = find_evaluations(run, agent)
        if not evaluations:
            raise UserError(f"{target}: not written: no evaluation has a verdict yet")
        scrubber = make_scrubber(run.folder, identity)
        with ExitStack() as stack:
            writers = {
                name: stack.enter_context(RowWriter(draft / f"{name}.parquet", columns, scrubber))
                for name, (columns, _) in _CONFIGS.items()
            }
            _write_rows(run, evaluations, writers)
        counts = {name: writer.rows for name, writer in writers.items()}
        for name in [name for name, rows in counts.items() if not rows]:
            (draft / f"{name}.parquet").unlink()
        card = _make_card(run, target, counts, scrubber)
        (draft / "README.md").write_bytes(scrubber.clean(card.encode()))
    return counts


def _write_rows(
    run: Run, evaluations: Sequence[tuple[ActionId, Evaluation]], writers: Mapping[str, RowWriter]
) -> None:
    solved: dict[tuple[TaskId, bytes], list[ActionId]] = defaultdict(list)
    unsolved: dict[tuple[TaskId, bytes], list[ActionId]] = defaultdict(list)
    identity = identity_of(run)
    for action, evaluation in evaluations:
        usage = evaluation.cost.usage
        facts = evaluation_facts(identity, action, evaluation)
        row = {**facts, "commit": run.tree.agents[evaluation.agent].commit, "calls": usage.calls}
        row |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "usd": usage.usd}
        writers["evaluations"].add({**row, "seconds": evaluation.cost.seconds})
        with guard_calls(run, action):
            for row in _conversation_rows(run, action):
                writers["trajectories"].add({**facts, **row})
                prompt, answer = _split(row["messages"])
                if row["thread"] > 1 or not answer:
                    continue
                group = evaluation.task, hashlib.sha256(dump_json([prompt, row["tools"]])).digest()
                if evaluation.verdict is Verdict.RESOLVED and not evaluation.findings:
                    writers["sft"].add({**facts, **row})
                    solved[group].append(action)
                elif evaluation.verdict is Verdict.UNRESOLVED:
                    unsolved[group].append(action)
    outcomes = dict(evaluations)
    for shared, chosen in solved.items():
        for pair in zip(chosen, unsolved.get(shared, ()), strict=False):
            writers["preferences"].add(_pair_row(run, outcomes, *pair))


def _conversation_rows(run: Run, action: ActionId) -> Iterator[Row]:
    calls = find_calls(run, action)
    for number, thread in enumerate(read_threads(run, calls.values()), 1):
        yield {
            "model": calls[max(turn.call for turn in thread.turns)].event.model,
            "thread": number,
            "segments": len(thread.segments),
            "calls": thread.calls,
            "messages": chat_messages(thread),
            "tools": tool_definitions(thread),
        }


def _split(messages: Sequence[ChatMessage]) -> tuple[Sequence[ChatMessage], Sequence[ChatMessage]]:
    """Return the messages before the model's first one, and the others."""
    prompt = list(takewhile(lambda message: message["role"] != Role.ASSISTANT, messages))
    return prompt, messages[len(prompt) :]


def _pair_row(run: Run, outcomes: Mapping[ActionId, Evaluation], chosen: ActionId, rejected: ActionId) -> Row:
    good, bad = (next(_conversation_rows(run, action)) for action in (chosen, rejected))
    prompt, answer = _split(good["messages"])
    return {
        "run": identity_of(run).run,
        "task": outcomes[chosen].task,
        "chosen_agent": outcomes[chosen].agent,
        "chosen_action": chosen,
        "rejected_agent": outcomes[rejected].agent,
        "rejected_action": rejected,
        "prompt": prompt,
        "chosen": answer,
        "rejected": _split(bad["messages"])[1],
        "tools": good["tools"],
    }


def _make_card(run: Run, target: Path, counts: Mapping[str, int], scrubber: Scrubber) -> str:
    written = [name for name, rows in counts.items() if rows]
    template = Template(files("dgm.exports").joinpath("dataset_card.md").read_text(encoding="utf-8"))
    return template.substitute(
        configs="\n".join(f"- config_name: {name}\n  data_files: {name}.parquet" for name in written),
        run=json.dumps(run.name, ensure_ascii=True),
        version=__version__,
        table="\n".join(f"| `{name}` | {counts[name]} | {_CONFIGS[name][1]} |" for name in written),
        folder=target.name,
        first="sft" if counts["sft"] else written[0],
        benchmark=json.dumps(run.settings()["benchmark"], ensure_ascii=True),
        replaced=", ".join(f"{count} × {name}" for name, count in sorted(scrubber.replaced.items()))
        or "there were none",
    )
