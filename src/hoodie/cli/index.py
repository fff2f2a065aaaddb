"""`hoodie index`: indexes that are kept outside the table."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hoodie.cli.arguments import add_options, add_path, hoodie_options
from hoodie.recovery.index_rebuild import rebuild_index
from hoodie.storage import storage_for

if TYPE_CHECKING:
    from hoodie.cli.arguments import Subparsers


def add(subparsers: Subparsers) -> None:
    command = subparsers.add_parser("index", help="make the HBase index of a table")
    actions = command.add_subparsers(title="actions", metavar="action", required=True)
    rebuild = actions.add_parser(
        "rebuild",
        help="write the entries of all rows to HBase, and remove those of no row",
        description="Write the entries of all rows to HBase, and remove those of no row. Give the options of the "
        "table's writes: --option hoodie.index.hbase.thrift.host=... --option hoodie.index.hbase.table=...; a larger "
        "hoodie.index.hbase.put.batch.size is faster. Nothing else should write to the table meanwhile. Keys with rows "
        "in more than one file group are named, and the exit status is 1, unless --mend keeps one row of each.",
    )
    rebuild.add_argument(
        "--mend",
        action="store_true",
        help="of keys in more than one file group keep the newest row, and delete the others in one commit",
    )
    add_path(rebuild)
    add_options(rebuild)
    rebuild.set_defaults(run=_rebuild)


def _rebuild(options: argparse.Namespace) -> int:
    done = rebuild_index(storage_for(options.path), hoodie_options(options), mend_doubled=options.mend)
    print(done)
    return 1 if done.doubled and not done.mended else 0
