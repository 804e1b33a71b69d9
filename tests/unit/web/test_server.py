import signal
import socket
import stat
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from dgm.errors import UserError
from dgm.web.server import serve
from tests.support.runs.growing import Growing


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    Growing(folder / "run").run.close()
    return folder


def refuse(*_):
    raise AssertionError("it listens")


@pytest.mark.parametrize(
    "arguments",
    [
        {"target": "no-such-run"},
        {"port": -1},
        {"port": 70_000},
        {"host": "203.0.113.1"},
        {"host": "no host"},
        {"host": "x" * 300},
    ],
)
def test_what_cannot_be_served_is_a_users_error(folder, arguments):
    with pytest.raises(UserError):
        serve(**{"target": folder, "on_ready": refuse, **arguments})


def test_a_port_in_use_is_a_users_error(folder):
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(UserError, match="cannot be used"):
        serve(folder, port=other.getsockname()[1], on_ready=refuse)


def start(folder, *options):
    command = [sys.executable, "-m", "dgm", "serve", *options, "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


@pytest.mark.starts_processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_in_good_order_while_a_viewer_listens(folder, number):
    process, address = start(folder, "run")
    try:
        assert address.startswith("http://127.0.0.1:")
        with urlopen(f"{address}/live", timeout=30) as news:
            assert news.readline().startswith(b"data: ")
            process.send_signal(number)
            output, complaints = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, output, complaints) == (0, "", "")


@pytest.mark.starts_processes
def test_another_host_needs_the_token_that_is_printed(folder):
    process, address = start(folder, "--host", "0.0.0.0", "run")
    try:
        _, _, token = address.partition("?token=")
        port = address.partition("?")[0].rsplit(":", 1)[1].split("/")[0]
        assert len(token) >= 40
        with pytest.raises(HTTPError) as refused:
            urlopen(f"http://127.0.0.1:{port}/run", timeout=30)
        assert refused.value.code == 401
    finally:
        process.kill()
        process.communicate()


@pytest.mark.starts_processes
def test_nothing_is_written_into_a_run(folder):
    def contents():
        return {
            path: (path.stat().st_mtime_ns, path.stat().st_size)
            for path in sorted((folder / "run").rglob("*"))
            if stat.S_ISREG(path.stat().st_mode) and not path.name.endswith(("-shm", "-wal"))
        }

    before = contents()
    process, address = start(folder, "run")
    try:
        for page in ("", "/agents", "/events", "/spend", "/tree"):
            with urlopen(address + page, timeout=30) as answer:
                assert answer.status == 200
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert contents() == before
    assert [path.name for path in folder.iterdir()] == ["run"]
