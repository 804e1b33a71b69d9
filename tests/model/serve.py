"""An OpenAI-compatible llama.cpp server on loopback, for a model in one GGUF file; it ends on SIGTERM.

    PYTHON tests/model/serve.py MODEL.gguf --alias NAME [--port 18181] [--context 8192] [--slots 1] [--threads 1]

PYTHON is one that has the package ``xllamacpp``; ``make test-model`` makes such an environment. While the model loads,
the server answers 503, as llama.cpp's own program does.
"""

import argparse
import os
import signal
import threading
from pathlib import Path

import xllamacpp


def read_options() -> argparse.Namespace:
    """Read what to serve and with how much of the machine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path, help="a GGUF file")
    parser.add_argument("--alias", default="", help="the model's name for clients; default: the file's")
    parser.add_argument("--port", type=int, default=18181)
    parser.add_argument("--context", type=int, default=8192, help="tokens that one slot has")
    parser.add_argument("--slots", type=int, default=1, help="calls that are answered at once")
    # The library's threads wait for each other by spinning: on a machine that does much else, one is fastest.
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if not options.model.is_file():
        parser.error(f"there is no file {options.model}")
    return options


def parameters(options: argparse.Namespace) -> "xllamacpp.CommonParams":
    """Return the server's settings in llama.cpp's words."""
    chosen = xllamacpp.CommonParams()
    chosen.model.path = str(options.model)
    chosen.model_alias = {options.alias or options.model.stem}
    chosen.hostnames = ["127.0.0.1"]
    chosen.port = options.port
    chosen.n_ctx = options.context * options.slots
    chosen.n_parallel = options.slots
    chosen.cpuparams.n_threads = options.threads
    chosen.cpuparams_batch.n_threads = options.threads
    chosen.use_jinja = True
    chosen.ui = False
    return chosen


def main() -> None:
    """Serve until a signal comes."""
    options = read_options()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = xllamacpp.Server(parameters(options))
    print(f"serving {options.model.name} at {server.listening_address}", flush=True)
    ended.wait()
    # Its threads know no end.
    os._exit(0)


if __name__ == "__main__":
    main()
