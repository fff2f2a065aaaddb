import pytest

from hoodie.commit.markers import Marker, MarkerKind, create_marker, delete_markers, read_markers
from hoodie.errors import CorruptFile, InvalidInput
from hoodie.storage import WrappedStorage
from hoodie.testing.storage import MemoryStorage

INSTANT = "20240707001302376"
FOLDER = f".hoodie/.temp/{INSTANT}"


def test_a_marker_is_an_empty_file_named_after_the_data_file():
    storage = MemoryStorage()
    create_marker(storage, INSTANT, "city=x/a-0_0-1-2_20240707001302376.parquet", MarkerKind.CREATE)
    create_marker(storage, INSTANT, "city=x/.b-0_20240707001302376.log.1_0-1-2", MarkerKind.APPEND)
    create_marker(storage, INSTANT, "c-0_0-1-2_20240707001302376.parquet", MarkerKind.MERGE)
    assert storage.snapshot() == {
        f"{FOLDER}/city=x/a-0_0-1-2_20240707001302376.parquet.marker.CREATE": b"",
        f"{FOLDER}/city=x/.b-0_20240707001302376.log.1_0-1-2.marker.APPEND": b"",
        f"{FOLDER}/c-0_0-1-2_20240707001302376.parquet.marker.MERGE": b"",
    }


def test_markers_read_back_sorted():
    storage = MemoryStorage()
    written = [
        Marker("2024/01/b.parquet", MarkerKind.MERGE),
        Marker("2024/01/.a.log.1_0-0-0", MarkerKind.APPEND),
        Marker("c.marker.CREATE.parquet", MarkerKind.CREATE),
    ]
    for marker in written:
        create_marker(storage, INSTANT, marker.path, marker.kind)
    create_marker(storage, "20240707001302377", "other.parquet", MarkerKind.CREATE)
    assert read_markers(storage, INSTANT) == tuple(sorted(written))


def test_a_marker_that_is_there_already_is_as_good():
    storage = MemoryStorage()
    create_marker(storage, INSTANT, "a.parquet", MarkerKind.CREATE)
    create_marker(storage, INSTANT, "a.parquet", MarkerKind.CREATE)
    assert len(read_markers(storage, INSTANT)) == 1


def test_a_marker_that_cannot_be_written_stops_the_write():
    class Full(WrappedStorage):
        def create_new(self, path, data):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        create_marker(Full(MemoryStorage()), INSTANT, "a.parquet", MarkerKind.CREATE)


def test_without_a_folder_there_are_no_markers():
    storage = MemoryStorage()
    assert read_markers(storage, INSTANT) == ()
    delete_markers(storage, INSTANT)


def test_markers_of_the_timeline_server_are_lines_of_text():
    storage = MemoryStorage(
        {
            f"{FOLDER}/MARKERS.type": b"TIMELINE_SERVER_BASED",
            f"{FOLDER}/MARKERS0": "p=ü/a.parquet.marker.CREATE\nb.parquet.marker.MERGE\n".encode(),
            f"{FOLDER}/MARKERS1": b"",
            f"{FOLDER}/MARKERS12": "x\u2028y/.c.log.1_0-0-0.marker.APPEND\r\nb.parquet.marker.MERGE".encode(),
            f"{FOLDER}/.MARKERS0.crc": b"crc\0",
        }
    )
    assert read_markers(storage, INSTANT) == (
        Marker("b.parquet", MarkerKind.MERGE),
        Marker("p=ü/a.parquet", MarkerKind.CREATE),
        Marker("x\u2028y/.c.log.1_0-0-0", MarkerKind.APPEND),
    )


def test_a_type_file_may_say_direct():
    storage = MemoryStorage({f"{FOLDER}/MARKERS.type": b"DIRECT\n", f"{FOLDER}/a.marker.CREATE": b""})
    assert read_markers(storage, INSTANT) == (Marker("a", MarkerKind.CREATE),)


def test_companions_are_no_markers():
    storage = MemoryStorage(
        {
            f"{FOLDER}/p/a.parquet.marker.CREATE": b"",
            f"{FOLDER}/p/.a.parquet.marker.CREATE.crc": b"crc",
            f"{FOLDER}/p/.{'0' * 32}.tmp": b"",
        }
    )
    assert read_markers(storage, INSTANT) == (Marker("p/a.parquet", MarkerKind.CREATE),)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("p/a.parquet", b""),
        ("p/a.parquet.marker.DELETE", b""),
        ("p/.marker.CREATE.x", b""),
        ("MARKERS.type", b"NONE"),
        ("MARKERS.type", b""),
        ("MARKERS.type", b"\xff"),
    ],
)
def test_what_is_no_marker_is_corrupt(name, data):
    with pytest.raises(CorruptFile) as raised:
        read_markers(MemoryStorage({f"{FOLDER}/{name}": data}), INSTANT)
    assert raised.value.path == f"{FOLDER}/{name}"


@pytest.mark.parametrize(
    "text", [b"a.parquet.marker.CREATE\nb.parq", b"a.parquet.marker.CREATE\n\xc3", b".marker.CREATE"]
)
def test_a_marker_list_cut_short_is_corrupt(text):
    storage = MemoryStorage({f"{FOLDER}/MARKERS.type": b"TIMELINE_SERVER_BASED", f"{FOLDER}/MARKERS0": text})
    with pytest.raises(CorruptFile):
        read_markers(storage, INSTANT)


def test_deleting_markers_spares_other_instants():
    storage = MemoryStorage()
    create_marker(storage, INSTANT, "p/a.parquet", MarkerKind.CREATE)
    create_marker(storage, INSTANT + "1", "p/a.parquet", MarkerKind.CREATE)
    delete_markers(storage, INSTANT)
    assert list(storage.snapshot()) == [f"{FOLDER}1/p/a.parquet.marker.CREATE"]


@pytest.mark.parametrize("instant", ["", "..", "a", "2024/01", "٢٠٢٤"])
def test_only_an_instant_has_markers(instant):
    storage = MemoryStorage({f"{FOLDER}/a.marker.CREATE": b""})
    for call in (
        lambda: create_marker(storage, instant, "a", MarkerKind.CREATE),
        lambda: read_markers(storage, instant),
        lambda: delete_markers(storage, instant),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert len(storage.snapshot()) == 1


def test_a_data_file_outside_the_table_gets_no_marker():
    with pytest.raises(InvalidInput):
        create_marker(MemoryStorage(), INSTANT, "../../../x", MarkerKind.CREATE)
