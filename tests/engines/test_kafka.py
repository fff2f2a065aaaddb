"""A consumer of a real Kafka writes each record once, whatever it does not get to tell the broker."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from support.kafka import Kafka
from tools.engines import kafka_client

_TOPIC, _GROUP, _BATCH = "orders", "to-hoodie", 50


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(kafka_client()))
    import kafka

    yield kafka
    for name in [name for name in sys.modules if name.split(".")[0] == "kafka"]:
        del sys.modules[name]


def _consume(client: Any, address: str, table: Any, batches: int, *, lost: int = -1) -> list[str]:
    """Write so many batches of a partition, each of `_BATCH` offsets; the routes that they took.

    lost  the batch after whose commit the consumer dies: the broker is not told of it
    """
    partition, routes = client.TopicPartition(_TOPIC, 0), []
    consumer = client.KafkaConsumer(bootstrap_servers=address, group_id=_GROUP, enable_auto_commit=False)
    try:
        consumer.assign([partition])
        position = consumer.committed(partition) or 0
        consumer.seek(partition, position)
        rows: list[dict[str, Any]] = []
        while len(routes) < batches:
            records = (record for part in consumer.poll(timeout_ms=1000).values() for record in part)
            rows.extend(json.loads(record.value) for record in records)
            if len(rows) < _BATCH:
                continue
            batch, rows = rows[:_BATCH], rows[_BATCH:]
            number = position // _BATCH
            result = table.insert(
                pa.Table.from_pylist(batch),
                options={
                    "hoodie.datasource.write.streaming.checkpoint.identifier": f"{_TOPIC}-0",
                    "hoodie.datasource.write.streaming.batch.id": number,
                },
            )
            routes.append(result.route)
            if number == lost:
                return routes
            position += _BATCH
            consumer.commit({partition: client.OffsetAndMetadata(position, "", -1)})
        return routes
    finally:
        consumer.close(autocommit=False)


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
def test_a_batch_whose_offsets_were_not_committed_is_written_once(kafka: Kafka, client: Any, tmp_path: Path) -> None:
    producer = client.KafkaProducer(bootstrap_servers=kafka.address)
    orders = [{"id": f"o{number}", "at": number, "total": number / 4} for number in range(5 * _BATCH)]
    for order in orders:
        producer.send(_TOPIC, json.dumps(order).encode(), partition=0)
    producer.close()

    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id", ordering="at")
    first = _consume(client, kafka.address, table, 4, lost=1)
    assert len(first) == 2
    again = _consume(client, kafka.address, table, 4)
    assert again[0] == "known"
    assert "known" not in [*first, *again[1:]]
    stored = table.snapshot().to_arrow().select(["id", "at", "total"]).to_pylist()
    assert sorted(stored, key=lambda row: row["at"]) == orders
