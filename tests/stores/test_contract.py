"""Storages on real servers are put to the suite of all storages."""

from typing import Any

import pytest

from hoodie.storage import Storage
from hoodie.testing.storage_suite import StorageSuite
from support.hdfs import Hdfs
from support.stores import Store

pytestmark = pytest.mark.stores


class TestHdfs(StorageSuite):
    @pytest.fixture
    def storage(self, hdfs: Hdfs) -> Storage:
        return Store(f"hdfs://{hdfs.address}/contract").new()

    def refuses(self, name: str) -> bool:
        return ":" in name  # HDFS itself does


class TestAzure(StorageSuite):
    @pytest.fixture
    def storage(self, azure: dict[str, Any]) -> Storage:
        return Store("abfs://contract/contract", azure).new()

    def refuses(self, name: str) -> bool:
        return "\\" in name or name.endswith("?")


class TestGcs(StorageSuite):
    @pytest.fixture
    def storage(self, gcs: dict[str, Any]) -> Storage:
        return Store("gs://contract/contract", gcs).new()
