"""`createOrReplaceTempView` and `createTempView` of frames: those of a whole table are remembered as views of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hoodie.config.table import PROPERTIES_FILE
from hoodie.spark.table_views import TableView, note_view, table_of
from hoodie.storage import storage_for


def _noted(original: Callable[..., Any]) -> Callable[..., Any]:
    def make_view(self: Any, name: str) -> None:
        original(self, name)
        path = table_of(self)
        whole = path is not None and storage_for(path).exists(PROPERTIES_FILE)  # else a pattern, or a partition
        note_view(self.sparkSession, name, TableView(self, path) if path is not None and whole else None)

    return make_view


FRAME = {"createOrReplaceTempView": _noted, "createTempView": _noted}
