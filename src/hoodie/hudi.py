"""Hudi's own calls, for jobs that come from it: the clients, and a read and a write of its data source's options."""

from hoodie.api.datasource_read import read
from hoodie.api.read_client import HoodieReadClient
from hoodie.api.write_client import HoodieWriteClient, write

__all__ = ["HoodieReadClient", "HoodieWriteClient", "read", "write"]
