"""The index in HBase: its entries, the client that reaches them, and what a rollback or a rebuild means for them.

The rest of the library knows this package by `hoodie.index.type=HBASE` alone (`hoodie.index.choose.package`), and does
without it.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from hoodie.config.options import Options
from hoodie.config.table import TableConfig
from hoodie.hbase.follow import catch_up, follow
from hoodie.hbase.index import make_entries
from hoodie.hbase.rebuild import rebuild
from hoodie.index.contract import Index

__all__ = ["follow", "make"]


def make(options: Mapping[str, str], config: TableConfig) -> Index:
    """The index that the options describe. Raises InvalidOption; nothing is connected yet."""
    write_options = Options(options)
    index = make_entries(options, config)
    return replace(index, catch_up=partial(catch_up, write_options), rebuild=partial(rebuild, write_options))
