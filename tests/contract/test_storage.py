"""Every storage of the library is put to the suite of all storages."""

import json
import os
from uuid import uuid4

import pytest

from hoodie.storage import FsspecStorage, LocalStorage, Storage, storage_for
from hoodie.storage.wrapped import SubfolderStorage
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.storage_suite import StorageSuite

#: Opt-in: stores that are started by hand, each by a variable with the URI of a folder and the driver's options as
#: JSON, such as HOODIE_TEST_AZURE='abfs://container/folder {"connection_string": "..."}'.
BY_HAND = [name for name in ("HOODIE_TEST_AZURE", "HOODIE_TEST_HDFS", "HOODIE_TEST_GCS") if os.environ.get(name)]


class TestStorages(StorageSuite):
    @pytest.fixture(params=["local", "memory", "subfolder", "fsspec-memory", "fsspec-local", "fsspec-s3", *BY_HAND])
    def storage(self, request, tmp_path) -> Storage:
        match request.param:
            case "local":
                return LocalStorage(tmp_path / "table")
            case "memory":
                return MemoryStorage()
            case "subfolder":
                return SubfolderStorage(LocalStorage(tmp_path / "table"), ".hoodie/metadata")
            case "fsspec-memory":
                return FsspecStorage(f"memory://{uuid4().hex}/table")
            case "fsspec-local":
                return FsspecStorage(f"file://{tmp_path}/table")
            case "fsspec-s3":
                return FsspecStorage(f"s3://contract/{uuid4().hex}/table", request.getfixturevalue("s3"))
            case name:
                uri, _, options = os.environ[name].partition(" ")
                return storage_for(f"{uri.rstrip('/')}/{uuid4().hex}/table", json.loads(options or "{}"))

    def copies_share_files(self, storage):
        return not isinstance(storage, MemoryStorage)
