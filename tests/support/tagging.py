"""What `tag_location` is to say of twenty keys."""

from collections.abc import Iterable, Mapping
from typing import Any

from hoodie.model.files import FileSlice


def assert_tagged(rows: Iterable[Mapping[str, Any]], slices: Iterable[FileSlice], *, deleted_is_new: bool) -> None:
    """Twenty keys: k0007 and k0089 are in the table, k0092 is not, k0001 was deleted.

    deleted_is_new  else an upsert would find the row of a deleted key in its base file
    """
    places = {(found.group.partition, found.group.file_id): found for found in slices}
    tagged = {row["id"]: row for row in rows}
    assert len(tagged) == 20
    for key in ("k0007", "k0089"):
        place = places[tagged[key]["p"], tagged[key]["_hoodie_file_id"]]
        assert tagged[key]["_hoodie_instant_time"] == place.base_instant
        assert tagged[key]["_hoodie_partition_path"] == tagged[key]["p"]
    assert (tagged["k0092"]["_hoodie_file_id"], tagged["k0092"]["_hoodie_instant_time"]) == (None, None)
    assert tagged["k0092"]["_hoodie_record_key"] == "k0092"
    assert (tagged["k0001"]["_hoodie_file_id"] is None) == deleted_is_new
