"""Azurite, the emulator of Azure's blobs, on loopback: from npm, which `make stores` brings."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hoodie.storage import FsspecStorage
from support.servers import Server, answers, free_port

_ACCOUNT = "devstoreaccount1"  # with the key that everyone's Azurite has
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextmanager
def running_azurite(folder: Path) -> Iterator[dict[str, Any]]:
    """fsspec's options of a server; there is a container "contract"."""
    port = free_port()
    where = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder / "blobs")]
    quiet = ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    server = Server("azurite", [_azurite(), *where, *quiet], folder, lambda said: answers(port))
    try:
        server.start()
        url = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        account = f"AccountName={_ACCOUNT};AccountKey={_KEY};BlobEndpoint={url};"
        options = {"connection_string": f"DefaultEndpointsProtocol=http;{account}"}
        FsspecStorage("abfs://contract", options).fs.mkdir("contract")
        yield options
    finally:
        server.stop()


def _azurite() -> str:
    found = os.environ.get("HOODIE_TEST_AZURITE") or shutil.which("azurite-blob")
    if not found:
        raise RuntimeError("no azurite-blob: run `make stores`, or set HOODIE_TEST_AZURITE to its path")
    return found
