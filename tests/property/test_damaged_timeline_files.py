"""Damaged timeline files are refused as such, or read as something: never another error, never a hang."""

import io
import zipfile
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFile
from hoodie.formats.timeline import services
from hoodie.formats.timeline.commit_avro import decode_avro_commit
from hoodie.formats.timeline.commit_json import decode_commit
from hoodie.formats.timeline.plans import decode_compaction_plan, decode_replace_plan
from support.oracles import TABLES

FILES = {
    "clean_plan": ("hudi-0.15/cow_savepoint", ".clean.requested", services.decode_clean_plan),
    "clean": ("hudi-0.15/cow_savepoint", ".clean", services.decode_clean_metadata),
    "savepoint": ("hudi-0.15/cow_savepoint", ".savepoint", services.decode_savepoint),
    "clustering": ("hudi-0.15/cow_clustering", ".replacecommit.requested", decode_replace_plan),
    "compaction": ("hudi-0.15/mor_compacted", ".compaction.requested", decode_compaction_plan),
    "rollback_plan": ("hudi-0.15/mor_rolled_back", ".rollback.requested", services.decode_rollback_plan),
    "rollback": ("hudi-0.15/mor_rolled_back", ".rollback", services.decode_rollback_metadata),
    "commit": ("hudi-tables/v9_cow_txns", ".commit", decode_avro_commit),
    "json": ("hudi-0.15/mor_logs", ".deltacommit", decode_commit),
}


@cache
def original(kind):
    table, suffix, _ = FILES[kind]
    with zipfile.ZipFile(io.BytesIO((TABLES / f"{table}.zip").read_bytes())) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(suffix) and "__MACOSX" not in name)
        return archive.read(names[-1])


def read(kind, data):
    with suppress(CorruptFile):
        FILES[kind][2](data, "damaged")


@pytest.mark.parametrize("kind", FILES)
def test_the_originals_read(kind):
    FILES[kind][2](original(kind), "whole")


@given(st.sampled_from(list(FILES)), st.data())
def test_a_damaged_file_is_corrupt_or_means_something(kind, data):
    whole = original(kind)
    at = data.draw(st.integers(0, len(whole) - 1))
    match data.draw(st.sampled_from(["cut", "byte", "insert", "remove"])):
        case "cut":
            read(kind, whole[:at])
        case "byte":
            read(kind, whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :])
        case "insert":
            read(kind, whole[:at] + data.draw(st.binary(min_size=1, max_size=9)) + whole[at:])
        case "remove":
            read(kind, whole[:at] + whole[at + data.draw(st.integers(1, 9)) :])


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind != "json"])
def test_every_file_cut_short_is_corrupt(kind):
    whole = original(kind)
    for length in [*range(1, 40), *range(len(whole) - 40, len(whole)), *range(40, len(whole) - 40, 97)]:
        with pytest.raises(CorruptFile):
            FILES[kind][2](whole[:length], "damaged")


@given(st.sampled_from(list(FILES)), st.binary(max_size=60))
def test_any_bytes_are_corrupt(kind, tail):
    read(kind, tail)
    read(kind, b"Obj\x01" + tail)
    read(kind, original(kind) + tail)
