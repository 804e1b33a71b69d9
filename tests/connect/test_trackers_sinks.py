"""Each sink against the real program: killed in mid-delivery and resumed, no point is there twice, none is missing."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager

import pytest

import dgm
from dgm.archive.events import AgentStillborn, RunStopped
from dgm.archive.run import Run
from dgm.config import Settings, SinksSettings
from dgm.domain import AgentId, Stillborn
from dgm.errors import ArchiveBusy
from dgm.sinks.companion import LOG, deliver_once, start_companion
from dgm.sinks.cursor import hold_deliveries
from dgm.sinks.spans import SpanFold, span_id, trace_id
from dgm.views.gauges import GAUGES
from tests.connect.collector import Collector
from tests.connect.killed_delivery import deliver_with_kills, make_run, names_of, points_of
from tests.support.listener import wait_until
from tests.support.runs.growing import Growing

pytestmark = pytest.mark.connect
KILLS = 6


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("source") / "run")


@pytest.fixture
def folder(source, tmp_path):
    """A run of which nothing was delivered."""
    subprocess.run(["cp", "-r", source, tmp_path / "run"], check=True)
    return tmp_path / "run"


@contextmanager
def mlflow_server(folder):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [
        "server",
        "--backend-store-uri",
        f"sqlite:///{folder}/server.db",
        "--port",
        str(port),
        "--workers",
        "1",
    ]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *words, "--artifacts-destination", str(folder / "artifacts")],
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        )
        try:
            deadline = time.monotonic() + 180
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline, (folder / "server.log").read_text()
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(60)


@pytest.fixture(params=["server", "database"])
def mlflow_uri(request, tmp_path):
    if request.param == "database":
        yield f"sqlite:///{tmp_path}/local.db"
        return
    with mlflow_server(tmp_path) as uri:
        yield uri


def test_mlflow_has_each_point_once(folder, mlflow_uri) -> None:
    from mlflow.tracking import MlflowClient

    killed = deliver_with_kills(folder, f"mlflow:{mlflow_uri}", KILLS, {})
    client = MlflowClient(mlflow_uri)
    experiment = client.get_experiment_by_name("dgm")
    (run,) = client.search_runs([experiment.experiment_id])
    points = points_of(folder)
    for name in names_of(points):
        history = client.get_metric_history(run.info.run_id, name)
        expected = [(point.step, point.values[name]) for point in points if name in point.values]
        assert sorted((metric.step, metric.value) for metric in history) == expected
    assert run.data.params["model"] == '"openai/x"'
    assert run.info.status == "FINISHED"
    assert [file.path for file in client.list_artifacts(run.info.run_id, "best")]
    store = mlflow_uri.partition(":")[0]
    print(f"mlflow {store}: {len(points)} points, killed {killed} times, none twice, none missing")
    assert killed


def test_mlflow_gets_a_curve_that_begins_in_the_point_of_a_kill(tmp_path) -> None:
    import sqlite3

    growing = Growing(tmp_path / "run")
    growing.graded(0, 0, good=True)
    growing.run.append(AgentStillborn(growing.start(0), Stillborn((AgentId(0),), "self-edit", "start", "")))
    growing.graded(0, 1, good=True)
    growing.run.close()
    address = f"mlflow:sqlite:///{tmp_path}/local.db"
    assert dgm.export(tmp_path / "run", address).counts == {"points": 2}
    with sqlite3.connect(tmp_path / "local.db") as database:
        for table in ("metrics", "latest_metrics"):
            database.execute(f"DELETE FROM {table} WHERE key = 'stillborn/start'")
    assert dgm.export(tmp_path / "run", address).counts == {"points": 1}
    with sqlite3.connect(tmp_path / "local.db") as database:
        keys = database.execute("SELECT step FROM metrics WHERE key = 'stillborn/start'").fetchall()
    assert keys == [(2,)]
    assert dgm.export(tmp_path / "run", address).counts == {"points": 0}


def test_tensorboard_reads_each_point_once(folder, tmp_path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    killed = deliver_with_kills(folder, f"tensorboard:{tmp_path}/tb", KILLS, {})
    points = points_of(folder)
    for part, unit in ((tmp_path / "tb" / "run", 1.0), (tmp_path / "tb" / "run" / "usd", 1e6)):
        events = EventAccumulator(str(part), size_guidance={"scalars": 0})
        events.Reload()
        for name in names_of(points):
            expected = [
                (point.step if unit == 1.0 else round(point.values["spend/usd"] * unit), point.values[name])
                for point in points
                if name in point.values
            ]
            assert [(event.step, event.value) for event in events.Scalars(name)] == [
                (step, pytest.approx(value, rel=1e-6)) for step, value in expected
            ]
    print(f"tensorboard: {len(points)} points, killed {killed} times, none twice, none missing")
    assert killed


def test_wandb_records_each_point_once_without_a_server(folder, tmp_path) -> None:
    from wandb.proto.wandb_internal_pb2 import Record

    from dgm.sinks.wandb import read_records

    environment = {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path)}
    killed = deliver_with_kills(folder, "wandb:project", KILLS, environment)
    rows = []
    files = sorted((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    for record in (Record.FromString(data) for file in files for data in read_records(file)):
        if record.HasField("history"):
            values = {
                item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item
            }
            rows.append((record.history.step.num, values["agents"], values["spend/usd"]))
    points = points_of(folder)
    expected = [(point.step, point.values["agents"], point.values["spend/usd"]) for point in points]
    assert sorted(rows) == expected
    print(
        f"wandb: {len(points)} points in {len(files)} files, killed {killed} times, none twice, none missing"
    )
    assert killed


def test_wandb_waits_for_no_file_of_the_future(tmp_path, monkeypatch) -> None:
    from dgm.sinks import wandb

    file = tmp_path / "offline-run-1-x" / "run-x.wandb"
    file.parent.mkdir()
    file.write_bytes(bytes(7))
    os.utime(file, (time.time() + 3600, time.time() + 3600))
    monkeypatch.setattr(wandb.time, "sleep", lambda _: pytest.fail("it waits for the clock"))
    assert wandb._read_last_step(tmp_path, "x") == 0


def test_a_collector_hears_of_each_span_under_one_id(folder) -> None:
    with Run.open(folder) as run:
        fold = SpanFold(run)
        spans = [span for recorded in run.store.read() for span in fold.fold(recorded)]
    with Collector() as collector:
        killed = deliver_with_kills(folder, f"otlp:{collector.url}", KILLS, {})
        ids = Counter(span.span_id for span in collector.spans)
        assert set(ids) == {span_id(span.id).to_bytes(8) for span in spans}
        assert len({(span.span_id, span.name, span.end_time_unix_nano) for span in collector.spans}) == len(
            spans
        )
        assert {span.trace_id for span in collector.spans} == {trace_id(spans[0].id).to_bytes(16)}
        assert collector.metric_names == {gauge.name for gauge in GAUGES}
        again = sum(ids.values()) - len(ids)
        print(
            f"otlp: {len(spans)} spans, killed {killed} times, none missing, {again} sent again under their id"
        )
        assert deliver_once(folder, f"otlp:{collector.url}") == 0
        assert killed


def test_model_calls_follow_the_conventions_for_generative_ai(folder) -> None:
    with Collector() as collector:
        deliver_once(folder, f"otlp:{collector.url}")
    chat = next(span for span in collector.spans if span.name.startswith("chat"))
    attributes = {item.key: item.value for item in chat.attributes}
    assert attributes["gen_ai.operation.name"].string_value == "chat"
    assert attributes["gen_ai.request.model"].string_value == "x"
    assert attributes["gen_ai.usage.input_tokens"].int_value == 4000
    assert attributes["gen_ai.usage.output_tokens"].int_value == 300
    parents = {span.span_id: span for span in collector.spans}
    action = parents[chat.parent_span_id]
    assert action.name.startswith("invoke_agent")
    assert parents[action.parent_span_id].name == "dgm session"


def test_a_session_feeds_all_of_them_while_it_runs(tmp_path, monkeypatch) -> None:
    from mlflow.tracking import MlflowClient

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    store = f"sqlite:///{tmp_path}/local.db"
    with Collector() as collector:
        addresses = (f"mlflow:{store}", "wandb:", f"tensorboard:{tmp_path}/tb", f"otlp:{collector.url}")
        with start_companion(Settings(sinks=SinksSettings(to=addresses))) as name_run:
            growing = Growing(tmp_path / "run")
            name_run(growing.run, 0)
            for task in range(8):
                growing.graded(0, task, good=True)
            wait_until(lambda: collector.spans and list((tmp_path / "tb").rglob("events*")))
            growing.run.append(RunStopped("goal reached"))
            growing.run.close()
        wait_until(lambda: _is_over(tmp_path / "run"))
        assert not (tmp_path / "run" / LOG).exists(), (tmp_path / "run" / LOG).read_text()
        assert [span.name for span in collector.spans].count("invoke_agent agent 0") == 8
    client = MlflowClient(store)
    (run,) = client.search_runs([client.get_experiment_by_name("dgm").experiment_id])
    assert [metric.step for metric in client.get_metric_history(run.info.run_id, "agents")] == [*range(1, 9)]
    assert run.info.status == "FINISHED"
    for address in addresses[1:3]:
        monkeypatch.setattr("dgm.sinks.wandb.SETTLED_S", 0.0)
        assert deliver_once(tmp_path / "run", address) == 0


def _is_over(folder) -> bool:
    try:
        with hold_deliveries(folder):
            return True
    except ArchiveBusy:
        return False
