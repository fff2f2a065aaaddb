"""Tables with a history worth a report."""

import pyarrow as pa

from hoodie.config.options import Options
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from support.trips import TRIPS

#: A partition that would be markup if it were not escaped.
EVIL = "<script>alert(1)<script>"
DUE = Options({"hoodie.compact.inline.max.delta.commits": "1"})


def table_with_history(storage: Storage, kind: str = "MERGE_ON_READ") -> ArrowTable:
    """Six commits on three partitions, a compaction where there are logs, a savepoint and a clean; logs since then."""
    options = {
        **TRIPS,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.clean.automatic": "false",
        "hoodie.parquet.small.file.limit": "0",
    }
    table = ArrowTable.create(storage, options)
    cities = ["oslo", "rome", EVIL]
    for number in range(6):
        rows = {"id": [f"t{i}" for i in range(30)], "city": [cities[i % 3] for i in range(30)], "ts": [number] * 30}
        table.upsert(pa.table(rows))
        if number == 2:
            make_savepoint(storage, Settings.of({}), comment="before <fares>")
        if number == 3 and kind == "MERGE_ON_READ":
            compact(storage, Settings.of({}), schedule_compaction(storage, Settings.read(DUE)))
    table.clean({"hoodie.cleaner.commits.retained": "2"})
    return table
