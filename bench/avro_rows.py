"""Rows a second of the Avro row codec, on one core: `python bench/avro_rows.py [rows]`."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.formats.avro.rows import decode_rows, encode_rows
from hoodie.model.meta import META_COLUMNS

COLUMNS: dict[str, Any] = {
    **dict.fromkeys(META_COLUMNS, "string"),
    "order_id": "string",
    "ds": "string",
    "ts": "long",
    "customer_id": "long",
    "store_id": "int",
    "quantity": "int",
    "price": "double",
    "discount": "double",
    "status": "string",
    "comment": "string",
    "updated_at": {"type": "long", "logicalType": "timestamp-micros"},
    "is_gift": "boolean",
}
FIELDS = [{"name": name, "type": ["null", kind], "default": None} for name, kind in COLUMNS.items()]
SCHEMA = json.dumps({"type": "record", "name": "orders_record", "namespace": "hoodie.orders", "fields": FIELDS})


def orders(rows: int, nulls: float = 0.0) -> pa.Table:
    """Orders as in the table benchmark; `nulls` is the share of nulls in the columns that are no key."""
    rng = np.random.default_rng(7)
    hexes = [bytes(row).hex() for row in rng.integers(0, 256, (rows, 16), np.uint8)]
    keys = pa.array([f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}" for h in hexes])
    days = pa.array([f"2024-03-{day:02d}" for day in range(1, 29)]).take(pa.array(rng.integers(0, 28, rows)))
    seqno = pa.array([f"20240301000000000_0_{row}" for row in range(rows)])

    def sparse(values: Any, kind: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, kind, mask=rng.random(rows) < nulls if nulls else None)

    data = [
        pa.repeat("20240301000000000", rows),
        seqno,
        keys,
        days,
        pa.repeat("11111111-2222-3333-4444-555555555555-0", rows),
        keys,
        days,
        pa.array(1_700_000_000_000 + rng.integers(0, 10**9, rows)),
        sparse(rng.integers(0, 1_000_000, rows)),
        sparse(rng.integers(0, 500, rows), pa.int32()),
        sparse(rng.integers(1, 10, rows), pa.int32()),
        sparse(rng.random(rows) * 100),
        sparse(rng.random(rows)),
        sparse(np.array(["new", "paid", "shipped", "returned"])[rng.integers(0, 4, rows)]),
        sparse(np.array(hexes)),
        sparse(1_700_000_000_000_000 + rng.integers(0, 10**12, rows), pa.timestamp("us", "UTC")),
        sparse(rng.random(rows) < 0.1),
    ]
    return pa.table(data, names=list(COLUMNS))


def rate(rows: int, call: Callable[[], object], rounds: int = 3) -> float:
    """Rows a second of CPU time, the best of a few rounds."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return rows / best


def main(rows: int) -> None:
    pa.set_cpu_count(1)
    for nulls in (0.0, 0.1):
        table = orders(rows, nulls)
        content = encode_rows(table, SCHEMA)
        if decode_rows(content, SCHEMA) != table:
            raise SystemExit("the codec does not give back its rows")
        encoded = rate(rows, lambda table=table: encode_rows(table, SCHEMA))  # type: ignore[misc]
        decoded = rate(rows, lambda content=content: decode_rows(content, SCHEMA))  # type: ignore[misc]
        keys = rate(rows, lambda content=content: decode_rows(content, SCHEMA, columns=("order_id", "ts")))  # type: ignore[misc]
        print(f"{nulls:4.0%} nulls, {len(content) / rows:.0f} bytes a row, rows/s of CPU:")
        print(f"  encode {encoded:12,.0f}\n  decode {decoded:12,.0f}\n  decode 2 columns {keys:12,.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300_000)
