"""A server of S3 that is no emulator of tests: versitygw, which keeps objects as files."""

from pathlib import Path

from support.servers import Server, answers, free_port
from tools.engines import versitygw

_KEY, _SECRET = "hoodie", "hoodie-secret"


class Versitygw:
    """`address` is what HOODIE_TEST_S3 takes."""

    def __init__(self, folder: Path) -> None:
        """Raises Missing"""
        self.port = free_port()
        data = folder / "data"
        data.mkdir()
        options = ["--port", f"127.0.0.1:{self.port}", "--access", _KEY, "--secret", _SECRET, "--quiet"]
        self._server = Server(
            "s3", [str(versitygw()), *options, "posix", str(data)], folder, lambda _: answers(self.port)
        )

    @property
    def address(self) -> str:
        return f"http://{_KEY}:{_SECRET}@127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()
