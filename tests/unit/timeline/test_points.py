"""Points in time as people write them: text, datetimes and dates mean an instant in the table's zone."""

import datetime as dt
import time
from collections.abc import Iterator

import pandas as pd
import pytest

from hoodie.config.table import TimelineZone
from hoodie.errors import InvalidInput
from hoodie.timeline.points import Point, query_instant

OSLO = dt.timezone(dt.timedelta(hours=1))


@pytest.mark.parametrize(
    ("point", "instant"),
    [
        ("20240301123045678", "20240301123045678"),
        ("20240301123045", "20240301123045999"),
        ("2024", "20239999999999999"),
        ("202403", "20240299999999999"),
        ("202403011230", "20240301122999999"),
        ("2024030112304567", "20240301123045669"),
        ("2024030112304", "20240301123039999"),
        ("1709296245", "20240301123045000"),
        ("1709296245678", "20240301123045678"),
        ("1999999999", "20330518033319000"),
        ("2024-03-01", "20240301000000000"),
        ("2024-03-01 12:30:45", "20240301123045999"),
        ("2024-03-01 12:30:45.678", "20240301123045678"),
        ("2024-03-01T12:30:45", "20240301123045999"),
        ("2024-03-01T12:30:45Z", "20240301123045999"),
        ("2024-03-01T12:30:45.678Z", "20240301123045678"),
        ("2024-03-01T12:30:45.678901Z", "20240301123045678"),
        ("2024-03-01T12:30:45.6Z", "20240301123045600"),
        ("2024-03-01 12:30", "20240301123059999"),
        ("2024-03-01T01:30:45+02:00", "20240229233045999"),
        ("2024-03-01T12:30:45-0530", "20240301180045999"),
        ("2024-03-01 12:30:45.678 +01", "20240301113045678"),
        (dt.date(2024, 3, 1), "20240301000000000"),
        (dt.datetime(2024, 3, 1, 12, 30, 45), "20240301123045000"),
        (dt.datetime(2024, 3, 1, 12, 30, 45, 678_901), "20240301123045678"),
        (dt.datetime(2024, 3, 1, 0, 30, tzinfo=OSLO), "20240229233000000"),
    ],
)
def test_a_point_in_time_means_an_instant(point: Point, instant: str) -> None:
    assert query_instant(point) == instant


@pytest.mark.parametrize(
    "point",
    [
        "",
        "today",
        "202",
        "202403011230456789",
        "2024-13-01",
        "2024-03-01 25:00:00",
        "\uff11" * 14,
        "2024-03-01Z",
        "2024-03-01T",
        "2024-03-01T12",
        "2024-03-01T12:30:45+25:00",
        "9999-12-31T23:59:59-05:00",
        dt.datetime.min,
        pd.NaT,
        20240301,
        None,
    ],
)
def test_other_points_are_refused(point: Point) -> None:
    with pytest.raises(InvalidInput, match=r"is not a point in time.*expected yyyyMMddHHmmss"):
        query_instant(point)


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
def test_a_zone_is_converted_to_the_tables() -> None:
    local = TimelineZone.LOCAL
    assert query_instant("2024-03-01T12:30:45.678Z", local) == "20240301213045678"
    assert query_instant(dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC), local) == "20240301210000000"
    assert query_instant("2024-03-01 12:30:45.678", local) == "20240301123045678"  # no zone: the table's
    assert query_instant(dt.datetime(2024, 3, 1, 12), local) == "20240301120000000"
    assert query_instant("2024-03-01T12:30:45.678Z") == "20240301123045678"
    assert query_instant("1709296245678", local) == "20240301213045678"


@pytest.mark.usefixtures("in_tokyo")
def test_what_names_no_zone_is_local_as_in_python() -> None:
    moment = dt.datetime(2024, 3, 1, 12, 30, 45, 678_000)
    for point in ("2024-03-01 12:30:45.678", moment, pd.Timestamp(moment), pd.Timestamp(moment, tz="Asia/Tokyo")):
        assert query_instant(point) == "20240301033045678"
        assert query_instant(point, TimelineZone.LOCAL) == "20240301123045678"
    assert query_instant("2024-03-01") == query_instant(dt.date(2024, 3, 1)) == "20240229150000000"
