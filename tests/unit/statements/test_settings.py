"""What a session's settings say to statements on tables of ours."""

from types import SimpleNamespace
from typing import Any

import pytest

from hoodie.errors import InvalidOption
from hoodie.statements.rows import session_options


def session(**settings: str) -> Any:
    return SimpleNamespace(
        conf=SimpleNamespace(getAll={key.replace("__", "."): value for key, value in settings.items()})
    )


def test_settings_of_spark_lie_below_those_of_the_session() -> None:
    kept = session_options(
        session(
            spark__hoodie__insert__shuffle__parallelism="2",
            spark__hoodie__datasource__write__operation="insert",
            hoodie__datasource__write__operation="upsert",
            spark__hoodie__catalog__trips="/data/trips",
            spark__sql__shuffle__partitions="2",
        )
    )
    assert kept == {"hoodie.datasource.write.operation": "upsert"}


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(InvalidOption, match="RESET removes it"):
        session_options(session(spark__hoodie__datasource__write__opertaion="insert"))
