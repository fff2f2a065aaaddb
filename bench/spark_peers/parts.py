"""What the engines do, step by step. A part begins with the table of `orders` as it was loaded."""

from dataclasses import dataclass

UPSERTS = 10
COMMITS = 100


@dataclass(frozen=True)
class Step:
    """One measured call.

    call     the name of a method of `tables.Table`
    batches  paths of changes below the folder of batches; the call is made with each in turn
    """

    name: str
    call: str
    batches: tuple[str, ...] = ()

    @property
    def writes(self) -> bool:
        return self.call in ("bulk", "upsert", "delete", "merge", "compact")


@dataclass(frozen=True)
class Part:
    """logs     of a table with logs, deletion vectors or delete files; else of one whose files are rewritten
    changes  the last step reads the changes since before the first
    """

    name: str
    steps: tuple[Step, ...]
    logs: bool = False
    changes: bool = False


QUERIES = ("count", "filter", "sum", "scan")


def _queries(when: str) -> tuple[Step, ...]:
    return tuple(Step(f"{when} {query}", query) for query in QUERIES)


PARTS = {
    part.name: part
    for part in (
        Part("bulk", (Step("bulk load", "bulk", ("orders",)),)),
        Part("spread", (Step("upsert of `spread`", "upsert", ("spread",)),)),
        Part("recent", (Step("upsert of `recent`", "upsert", ("recent",)),)),
        Part("tiny", (Step("upsert of `tiny`", "upsert", ("tiny",)),)),
        Part("insert", (Step("upsert of new rows", "upsert", ("insert",)),)),
        Part("delete", (Step("delete by key", "delete", ("delete",)),)),
        Part("merge", (Step("MERGE with conditions", "merge", ("merge",)),)),
        Part(
            "changes",
            (
                Step("upsert of `recent`, changes kept", "upsert", ("recent",)),
                Step("changes of the last commit", "changes", ("recent",)),
            ),
            changes=True,
        ),
        Part(
            "logs",
            (
                Step("ten upserts to logs", "upsert", tuple(f"logs/commit={number}" for number in range(UPSERTS))),
                *_queries("first"),
                *_queries("second"),
                Step("compaction", "compact"),
                *_queries("compacted:"),
            ),
            logs=True,
        ),
        Part(
            "commits",
            (Step("commits of ten rows", "upsert", tuple(f"commits/commit={number}" for number in range(COMMITS))),),
            logs=True,
        ),
    )
}

COLUMNS = {
    "order_id": "string",
    "ds": "string",
    "ts": "bigint",
    "customer_id": "bigint",
    "store_id": "int",
    "quantity": "int",
    "price": "double",
    "discount": "double",
    "status": "string",
    "comment": "string",
    "updated_at": "timestamp",
    "is_gift": "boolean",
}
#: What `merge` sets of a row that is there.
SET = ("price", "quantity", "status", "ts")
FILTER = "customer_id < 100"
#: Over all columns, and the same number in Spark and in DuckDB, whatever the order of the rows.
SCAN = (
    "count(*)",
    "max(order_id)",
    "max(ds)",
    "sum(ts)",
    "sum(customer_id)",
    "sum(store_id)",
    "sum(quantity)",
    "sum(cast(round(price * 100) as bigint))",
    "sum(cast(round(discount * 100) as bigint))",
    "max(status)",
    "max(comment)",
    "count(updated_at)",
    "sum(cast(is_gift as int))",
)
