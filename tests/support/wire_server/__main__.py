"""``python -m tests.support.wire_server``: the server as a program, until it is interrupted."""

import argparse
import dataclasses
import json
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.support.wire_server.app import Config, Price, Record
from tests.support.wire_server.brain import Brain, Echo, Offline, Thinking
from tests.support.wire_server.faults import Script, load
from tests.support.wire_server.serving import WireServer
from tests.support.wire_server.talkative import Talkative

BRAINS: dict[str, Callable[[], Brain]] = {"echo": Echo, "offline": Offline, "talkative": Talkative}


def main(arguments: list[str] | None = None) -> int:
    """Serves; prints its address as the first line."""
    given = _parser().parse_args(arguments)
    try:
        config = _config(given)
        server = WireServer(config, port=given.port, uds=given.uds)
        over = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: over.set())
        with server:
            print(server.url if given.uds is None else given.uds, flush=True)
            over.wait()
    except (OSError, ValueError) as error:
        print(f"wire_server: {error}", file=sys.stderr)
        return 2
    counted = " ".join(f"{kind}={count}" for kind, count in sorted(server.faults.items()))
    print(f"answered={server.answered} spent_usd={server.spent_usd:.6f} {counted}".rstrip(), flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.support.wire_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of 127.0.0.1; default: a free one")
    parser.add_argument("--uds", type=Path, help="a unix socket's path, instead of a port")
    parser.add_argument("--key", default="test-key", help="the only key let in")
    parser.add_argument("--model", action="append", help="a model's name; may be repeated")
    parser.add_argument("--brain", choices=sorted(BRAINS), default="offline")
    parser.add_argument("--thinking", action="store_true", help="add reasoning to every reply")
    parser.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="MODEL=IN,OUT[,CACHED[,WRITTEN]]",
        help="USD per 1M tokens",
    )
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS", help="before each answer")
    parser.add_argument("--script", type=Path, metavar="FILE.toml", help="which calls go wrong, and how")
    parser.add_argument("--log", type=Path, metavar="FILE.jsonl", help="a line for each request")
    return parser


def _config(given: argparse.Namespace) -> Config:
    prices = dict(_price(text) for text in given.price)
    models = tuple(dict.fromkeys([*(given.model or ()), *prices])) or Config().models
    brain = BRAINS[given.brain]()
    return Config(
        key=given.key,
        models=models,
        brain=Thinking(brain) if given.thinking else brain,
        script=load(given.script) if given.script else Script(),
        prices=prices,
        latency_s=given.latency,
        log=_writer(given.log) if given.log else None,
    )


def _price(text: str) -> tuple[str, Price]:
    model, found, numbers = text.rpartition("=")
    try:
        values = [float(number) for number in numbers.split(",")]
    except ValueError:
        values = []
    if not found or not 2 <= len(values) <= 4:
        raise ValueError(
            f"--price {text}: expected MODEL=IN,OUT[,CACHED[,WRITTEN]] in USD per million tokens"
        )
    return model, Price(*values)


def _writer(path: Path) -> Callable[[Record], None]:
    file = path.open("a", encoding="utf-8", buffering=1)

    def write(record: Record) -> None:
        line = dataclasses.asdict(record)
        if isinstance(record.body, bytes):
            line["body"] = record.body.decode("utf-8", "replace")
        file.write(json.dumps(line) + "\n")

    return write


if __name__ == "__main__":
    sys.exit(main())
