"""Metrics of many tables for Prometheus, and the page of `hoodie serve`."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hoodie.cli import calls
from hoodie.cli.calls import Call
from hoodie.cli.fleet import server as fleet_server
from hoodie.cli.fleet.server import Fleet, Handler, listening_server
from hoodie.storage.local import LocalStorage
from support.compacting import schedule
from support.lake import Terminal, unpacked


@pytest.fixture
def tables(lake: Path) -> Path:
    """Five tables: two in good order, one with a plan, one that lacks a log, one whose settings are damaged."""
    for name in ("cow_types", "cow_savepoint", "cow_archived"):
        unpacked(name, lake)
    schedule(LocalStorage(lake / "a"))
    next((lake / "b" / "rome").glob(".*.log.*")).unlink()
    (lake / "cow_savepoint" / ".hoodie" / "hoodie.properties").write_text("hoodie.table.version=6\n")
    return lake


def samples(text: str) -> dict[tuple[str, str], dict[str, float]]:
    """Metric and last part of the path -> other labels -> value, by the parser of Prometheus' own client."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[tuple[str, str], dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            labels = dict(sample.labels)
            key = (sample.name, Path(labels.pop("path")).name)
            found.setdefault(key, {})[",".join(labels.values())] = sample.value
    return found


def test_metrics_are_those_of_the_tables_and_a_broken_table_is_a_series(tables: Path, hoodie: Terminal) -> None:
    text = "\n".join(hoodie("metrics", f"{tables}/*")) + "\n"
    found = samples(text)
    up = {name: list(values.values()) for (metric, name), values in found.items() if metric == "hoodie_table_up"}
    assert up == {"a": [1], "b": [0], "cow_archived": [1], "cow_savepoint": [0], "cow_types": [1]}
    stats = hoodie.result("stats", tables / "a")
    for metric, field in (("base_bytes", "base_bytes"), ("log_bytes", "log_bytes"), ("log_files", "log_files")):
        assert found[f"hoodie_table_{metric}", "a"] == {"trips": stats[field]}
    assert found["hoodie_table_pending_plans", "a"] == {"trips": 1}
    assert found["hoodie_table_pending_plans", "cow_types"] == {"cow_types": 0}
    assert 0 <= found["hoodie_table_commit_age_seconds", "a"]["trips"] < 7200
    assert found["hoodie_table_findings", "b"] == {"trips,error,missing file": 1}
    assert found["hoodie_table_findings", "cow_savepoint"] == {",error,damaged properties": 1}
    assert ("hoodie_table_findings", "a") not in found
    assert found["hoodie_table_up", "b"] == {"trips,MissingFile": 0}


def test_metrics_for_the_node_exporter_replace_their_file(tables: Path, tmp_path: Path, hoodie: Terminal) -> None:
    file = tmp_path / "hoodie.prom"
    assert hoodie("metrics", tables / "a", "--output", file) == []
    assert samples(file.read_text())["hoodie_table_up", "a"] == {"trips,": 1}
    hoodie("metrics", tables / "b", "--output", file)
    assert {name for _, name in samples(file.read_text())} == {"b"}
    assert [path.name for path in tmp_path.iterdir() if "prom" in path.name] == ["hoodie.prom"]


def test_labels_are_escaped_and_credentials_are_not_shown(tables: Path, hoodie: Terminal) -> None:
    odd = tables.parent / 'a "quoted" \\ path'
    (tables / "a").rename(odd)
    assert ("hoodie_table_up", odd.name) in samples("\n".join(hoodie("metrics", odd)) + "\n")
    result = hoodie.result("metrics", odd)
    assert (result["name"], result["up"], result["plans"]) == ("trips", True, 1)


def test_a_table_that_cannot_be_looked_at_is_a_series(tables: Path, hoodie: Terminal) -> None:
    text = "\n".join(hoodie("metrics", tables / "a", "nosuch://bucket/t")) + "\n"
    found = samples(text)
    assert list(found["hoodie_table_up", "a"].values()) == [1]
    assert list(found["hoodie_table_up", "t"].values()) == [0]


def of_bytes(tables: Path) -> Path:
    """A table in a folder whose name is no UTF-8."""
    try:
        return Path(shutil.copytree(tables / "a", os.fsdecode(os.fsencode(tables) + b"/\xff")))
    except OSError:
        pytest.skip("file names are UTF-8 here")


def test_a_name_that_is_no_unicode_spoils_no_other_table(tables: Path, tmp_path: Path, hoodie: Terminal) -> None:
    odd = of_bytes(tables)
    file = tmp_path / "hoodie.prom"
    hoodie("metrics", tables / "cow_types", odd, "--output", file)
    assert ("hoodie_table_up", "cow_types") in samples(file.read_text("utf-8"))
    assert hoodie.result("info", odd)["name"] == "trips"
    hoodie("report", odd, "--output", tmp_path / "pages")
    with served(tables) as (_, url):
        assert "cow_types" in get(f"{url}/metrics")
        assert json.loads(get(f"{url}/tables.json"))["tables"][-1]["path"].endswith("/\\udcff")


def test_an_output_without_letters_for_a_name_shows_it_escaped(tables: Path) -> None:
    named = tables / "łódź"
    (tables / "a").rename(named)
    code = "import sys; from hoodie.cli.main import main; sys.exit(main(sys.argv[1:]))"
    for words, expected in ((["stats", named, tables / "b"], b"== "), (["info", named, "--json"], b'{"schema"')):
        run = subprocess.run(
            [sys.executable, "-c", code, *map(str, words)],
            env={**os.environ, "PYTHONIOENCODING": "latin-1"},
            capture_output=True,
        )
        assert expected in run.stdout, run.stderr
        assert b"Unicode" not in run.stdout + run.stderr
    assert json.loads(run.stdout)["tables"][0]["path"] == str(named)


def test_metrics_that_cannot_be_written_leave_nothing(tables: Path, tmp_path: Path, hoodie: Terminal) -> None:
    folder = tmp_path / "out"
    (folder / "hoodie.prom").mkdir(parents=True)
    (folder / "hoodie.prom" / "x").touch()
    hoodie("metrics", tables / "a", "--output", str(folder / "hoodie.prom"), status=2)
    assert [path.name for path in folder.iterdir()] == ["hoodie.prom"]


@contextmanager
def served(tables: Path) -> Iterator[tuple[Fleet, str]]:
    fleet = Fleet(Call("serve", (f"{tables}/*",), jobs=2, watches=True), 3600.0)
    fleet.look()
    with listening_server(fleet, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield fleet, f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def get(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
        data: bytes = answer.read()
        return data.decode()


def test_the_page_asks_for_all_tables_and_each_has_its_report(tables: Path) -> None:
    with served(tables) as (fleet, url):
        page = get(url)
        assert "<h1>Tables</h1>" in page
        assert "http" not in page.replace("http-equiv", "")  # it needs nothing from elsewhere
        document = json.loads(get(f"{url}/tables.json"))
        worst = {Path(table["path"]).name: table["worst"] for table in document["tables"]}
        assert worst == {"a": "", "b": "down", "cow_archived": "", "cow_savepoint": "down", "cow_types": ""}
        assert "<h1>trips</h1>" in get(f"{url}/tables/0")
        assert samples(get(f"{url}/metrics"))["hoodie_table_up", "a"] == {"trips,": 1}
        next((tables / "cow_types").rglob("*.parquet")).with_name("stray.parquet").write_bytes(b"x")
        fleet.look()
        (seen,) = [t for t in json.loads(get(f"{url}/tables.json"))["tables"] if t["name"] == "cow_types"]
        assert (seen["worst"], seen["findings"][0]["fault"]) == ("NOTE", "stray file")
        for path, status in (("/tables/3", 500), ("/tables/77", 404), ("/../etc/passwd", 404), ("/tables/a", 404)):
            with pytest.raises(urllib.error.HTTPError) as raised:
                get(url + path)
            assert raised.value.code == status


def test_a_table_keeps_its_number_while_others_come_and_go(tables: Path) -> None:
    with served(tables) as (fleet, url):
        (number,) = [t["number"] for t in fleet.document()["tables"] if t["name"] == "cow_archived"]
        shutil.rmtree(tables / "a")
        (tables / "b").rename(tables / "0 first")
        fleet.look()
        assert "<h1>cow_archived</h1>" in get(f"{url}/tables/{number}")
        with pytest.raises(urllib.error.HTTPError) as raised:
            get(f"{url}/tables/0")
        assert raised.value.code == 404


def test_tables_whose_folder_goes_away_are_down(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tables) as (fleet, url):
        tables.rename(tables.with_name("elsewhere"))
        stop = threading.Event()
        monkeypatch.setattr(stop, "wait", lambda every: stop.is_set() or stop.set())
        fleet_server._look_again(fleet, 1.0, stop)
        values = {value for (name, _), each in samples(get(f"{url}/metrics")).items() for value in each.values()}
        assert values == {0}
        worst = {table["worst"] for table in json.loads(get(f"{url}/tables.json"))["tables"]}
        assert worst == {"down"}


def test_tables_that_cannot_be_looked_at_any_more_are_down(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(fleet: Fleet) -> None:
        raise MemoryError("no room")

    with served(tables) as (fleet, _):
        stop = threading.Event()
        monkeypatch.setattr(stop, "wait", lambda every: stop.is_set() or stop.set())
        monkeypatch.setattr(Fleet, "look", broken)
        fleet_server._look_again(fleet, 1.0, stop)
        seen = fleet.document()["tables"]
        assert {table["worst"] for table in seen} == {"down"}
        assert seen[0]["problem"] == "the tables could not be looked at: no room"


def test_a_glob_that_no_table_matches_any_more_is_down_and_other_tables_are_not(tables: Path, hoodie: Terminal) -> None:
    globs = (f"{tables}/cow_*", f"{tables}/a*")
    fleet = Fleet(Call("serve", globs, jobs=2, watches=True), 3600.0)
    fleet.look()
    shutil.rmtree(tables / "a")
    fleet.look()
    worst = {table["path"]: table["worst"] for table in fleet.document()["tables"]}
    assert (worst.pop(globs[1]), worst[f"{tables}/cow_types"]) == ("down", "")
    assert {Path(path).name for path in worst} == {"cow_archived", "cow_savepoint", "cow_types"}
    (problem,) = (table["problem"] for table in fleet.document()["tables"] if table["path"] == globs[1])
    assert problem == f"no table matches {globs[1]}"
    series = samples("\n".join(hoodie("metrics", *globs)) + "\n")
    assert list(series["hoodie_table_up", "a*"].values()) == [0]
    assert list(series["hoodie_table_up", "cow_types"].values()) == [1]
    shutil.copytree(tables / "cow_types", tables / "a")
    fleet.look()
    assert globs[1] not in {table["path"] for table in fleet.document()["tables"]}


def test_requests_that_are_odd(tables: Path) -> None:
    with served(tables) as (_, url):
        host = url.removeprefix("http://")
        for path, status in (("/", 200), ("/metrics", 200), ("/tables/77", 404), (f"/tables/{'9' * 5000}", 404)):
            connection = http.client.HTTPConnection(host, timeout=20)
            connection.request("HEAD", path)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (status, b"")
            assert int(answer.headers["Content-Length"]) > 0
            connection.close()


def test_clients_that_go_away_or_say_nothing_leave_no_thread_and_no_line(
    tables: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Handler, "timeout", 0.2)
    with served(tables) as (_, url):
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as silent:
            silent.settimeout(20)
            assert silent.recv(1) == b""  # the server has closed it
        for _ in range(5):
            client = socket.create_connection((host, int(port)))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            client.sendall(b"GET /tables/0 HTTP/1.0\r\nHost: localhost\r\n\r\n")
            client.close()
        assert "<h1>" in get(f"{url}/tables/0")
        while any("process_request_thread" in thread.name for thread in threading.enumerate()):
            threading.Event().wait(0.05)
    assert capsys.readouterr().err == ""


def test_an_address_that_is_taken_is_told_before_a_table_is_looked_at(tables: Path, hoodie: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        hoodie("serve", tables / "a", "--port", port, status=2)
    hoodie("serve", tables / "a", "--host", "192.0.2.1", "--port", 0, status=2)


def test_the_server_listens_at_an_address_of_ipv6(tables: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("there is no IPv6 here")
    with listening_server(Fleet(Call("serve", (str(tables / "a"),)), 3600.0), "::1", 0) as server:
        assert server.server_address[0] == "::1"


def test_a_page_elsewhere_that_points_here_is_refused(tables: Path) -> None:
    with served(tables) as (_, url), pytest.raises(urllib.error.HTTPError) as raised:
        get(f"{url}/tables.json", Host="evil.example:80")
    assert raised.value.code == 403


def test_the_server_ends_on_a_signal(tables: Path) -> None:
    words = ["serve", str(tables / "a"), "--port", "0"]
    code = "import sys; from hoodie.cli.main import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("1 tables at http://127.0.0.1:")
    assert "Tables" in get(line.split()[3])
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.stdout.close()


def test_the_server_ends_on_a_signal_while_a_store_does_not_answer(tables: Path) -> None:
    words = ["serve", f"{tables}/*", "--port", "0", "--every", "1"]
    code = "import sys; from hoodie.cli.main import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().split()[3]
    properties = tables / "a" / ".hoodie" / "hoodie.properties"
    properties.unlink()
    os.mkfifo(properties)  # who opens it waits
    held = None
    try:
        while held is None:
            with suppress(OSError):  # nobody reads it yet
                held = os.open(properties, os.O_WRONLY | os.O_NONBLOCK)
            threading.Event().wait(0.05)
        assert "Tables" in get(url)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.stdout.close()
        if held is not None:
            os.close(held)


def test_a_folder_that_is_left_out_is_told_once_however_often_a_server_looks(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lake / "plain").mkdir()
    (lake / "plain" / "x.parquet").write_bytes(b"PAR1")
    fleet = Fleet(Call("serve", (f"{lake}/*",)), 0)
    fleet.look()
    fleet.look()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"hoodie: left out: {lake}/plain holds Parquet files and is no Hudi table"
    assert len(fleet.tables) == 2


def test_only_the_first_look_of_a_server_tells_its_progress(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, shown = threading.Event(), list[bool]()

    @contextmanager
    def working(what: str, *, show: bool) -> Iterator[None]:
        shown.append(show)
        yield
        if len(shown) == 3:
            stop.set()

    monkeypatch.setattr(calls, "working", working)
    fleet = Fleet(Call("serve", (f"{lake}/*",)), 0)
    fleet.look()
    fleet_server._look_again(fleet, 0.01, stop)
    assert shown == [True, False, False]
