"""Settings that Hudi's pages tell people to make: unset, or named with the line to remove."""

import pickle
import warnings
from typing import Any, cast

import pytest

from hoodie.errors import HudiSettings
from hoodie.sources.register import unset_settings

CATALOG = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog"}
REGISTRATOR = {"spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar"}
EXTENSIONS = {"spark.sql.extensions": "com.acme.Own, org.apache.spark.sql.hudi.HoodieSparkSessionExtension"}


class Session:
    """What `unset_settings` asks of a session."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = dict(settings)
        self.conf = self

    def get(self, key: str, default: str) -> str:
        return self.settings.get(key, default)

    def unset(self, key: str) -> None:
        del self.settings[key]


def settled(settings: dict[str, str]) -> dict[str, str]:
    session = Session(settings)
    unset_settings(cast(Any, session))
    return session.settings


def test_the_catalog_is_unset_and_others_stay() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert settled(CATALOG) == {}
        for own in (
            {"spark.sql.catalog.spark_catalog": "com.acme.Catalog"},
            {"spark.sql.extensions": "com.acme.Own"},
            {},
        ):
            assert settled(own) == own


def test_what_cannot_be_unset_is_named_with_the_line_to_remove() -> None:
    with pytest.warns(HudiSettings) as caught:
        assert settled({**CATALOG, **REGISTRATOR, **EXTENSIONS}) == {**REGISTRATOR, **EXTENSIONS}
    (warning,) = caught
    text = str(warning.message)
    assert "spark.kryo.registrator=org.apache.spark.HoodieSparkKryoRegistrar (each job of this session fails" in text
    assert "spark.sql.extensions=org.apache.spark.sql.hudi.HoodieSparkSessionExtension (Spark leaves" in text
    assert "com.acme" not in text
    assert str(pickle.loads(pickle.dumps(warning.message))) == text
