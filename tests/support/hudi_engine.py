"""The real Hudi in a process of its own: PySpark 3.5, one JVM a release, which answers requests one after another."""

import json
import os
import select
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.engine_cases import QUICK, Case, Step
from tools.engines import hudi_bundle, java_home, spark_3_5

_SESSION = Path(__file__).parents[1] / "engines" / "hudi_session.py"

_WRITES = (".deltacommit", ".commit", ".replacecommit")


class HudiFailed(Exception):
    """Hudi's own error."""


class HudiEngine:
    """A session of one release. It ends with the process that started it, however that one ends."""

    def __init__(self, version: str, folder: Path) -> None:
        """Raises Missing"""
        self.version, self.folder = version, folder
        self._command = [str(spark_3_5()), str(_SESSION), str(hudi_bundle(version)), str(folder)]
        self._java = java_home(17)
        self._process: subprocess.Popen[str] | None = None
        self._answers = -1
        self._rest = b""

    def start(self) -> None:
        """Returns when it answers. Raises RuntimeError with the end of its output when it does not."""
        self._answers, theirs = os.pipe()
        own = (
            "PYTHONPATH",
            "SPARK_HOME",
            "PYSPARK_PYTHON",
            "PYSPARK_DRIVER_PYTHON",
            "SPARK_REMOTE",
            "PYSPARK_SUBMIT_ARGS",
        )
        environment = {name: value for name, value in os.environ.items() if name not in own}
        environment |= {"TZ": "UTC", "JAVA_HOME": str(self._java), "SPARK_LOCAL_IP": "127.0.0.1"}
        with (self.folder / "hudi.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, f"/dev/fd/{theirs}"],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs],
                text=True,
                start_new_session=True,  # Ctrl-C is for the tests: it would break the session's gateway
            )
        os.close(theirs)
        self._answer(300)

    def stop(self) -> None:
        """Nothing if it does not run."""
        if self._process is not None:
            assert self._process.stdin
            self._process.stdin.close()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            os.close(self._answers)
            self._process = None

    def make(self, case: Case, path: Path, options: Mapping[str, str] | None = None) -> list[str]:
        """Make the table of a case: the instants of its writes."""
        return [
            self.write_step(path, step, {**case.options_of(step), **(options or {})}, first=not number)
            for number, step in enumerate(case.steps)
        ]

    def write_step(self, path: Path, step: Step, options: Mapping[str, str], *, first: bool) -> str:
        """One write of a case, the first of which makes the table; its instant."""
        self.write(path, step.sql(), options, "overwrite" if first else "append")
        return max(self._writes(path))

    def _writes(self, path: Path) -> list[str]:
        """The instants of completed writes on the timeline. Compactions, commits of Merge-on-Read, are none."""
        folder = path / ".hoodie" / "timeline"
        names = [file.name for file in (folder if folder.exists() else path / ".hoodie").iterdir()]
        logged = [name for name in names if name.endswith((".deltacommit", ".replacecommit"))]
        merge_on_read = "MERGE_ON_READ" in (path / ".hoodie" / "hoodie.properties").read_text()
        return [name[:17] for name in (logged if merge_on_read else names) if name.endswith(_WRITES)]

    def write(self, path: Path, rows: str, options: Mapping[str, str], mode: str = "append") -> None:
        self._ask({"write": str(path), "rows": rows, "options": {**QUICK, **options}, "mode": mode})

    def read(self, path: Path, where: str = "", **options: str) -> list[dict[str, Any]]:
        """The rows of a read with options `hoodie.*`, whose dots may be written as underscores twice.

        where  a condition of SQL that they pass; "": all
        """
        named = {key.replace("__", "."): text for key, text in options.items()}
        return self._ask({"read": str(path), "options": named, "where": where})

    def snapshot(self, path: Path) -> list[dict[str, Any]]:
        return self.read(path)

    def read_optimized(self, path: Path) -> list[dict[str, Any]]:
        return self.read(path, hoodie__datasource__query__type="read_optimized")

    def as_of(self, path: Path, instant: str) -> list[dict[str, Any]]:
        return self.read(path, as__of__instant=instant)

    def changes(self, path: Path, after: str, **options: str) -> list[dict[str, Any]]:
        return self.read(
            path,
            hoodie__datasource__query__type="incremental",
            hoodie__datasource__read__begin__instanttime=after,
            **options,
        )

    def view(self, path: Path, view: str, after: str) -> list[dict[str, Any]]:
        """As `engine_cases.read`. Raises HudiFailed"""
        if view == "snapshot":
            return self.snapshot(path)
        if view == "read_optimized":
            return self.read_optimized(path)
        return self.changes(path, after) if view == "incremental" else self.as_of(path, after)

    def sql(self, text: str) -> list[dict[str, Any]]:
        return self._ask({"sql": text})

    def _ask(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        assert self._process is not None
        assert self._process.stdin
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer(300)

    def _answer(self, patience: float) -> list[dict[str, Any]]:
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], patience)
            data = os.read(self._answers, 1 << 20) if ready else b""
            if not data:
                self.stop()
                end = (self.folder / "hudi.log").read_text(errors="replace")[-3000:]
                raise RuntimeError(f"Hudi {self.version} {'ended' if ready else 'does not answer'}: {end}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise HudiFailed(answer["error"])
        rows: list[dict[str, Any]] = answer["rows"]
        return rows
