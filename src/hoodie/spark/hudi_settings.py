"""Settings of a session that Hudi's pages tell people to make, and that need the jar which is not there."""

from __future__ import annotations

import warnings

from pyspark.sql import SparkSession

from hoodie.errors import HudiSettings

_CATALOG = "spark.sql.catalog.spark_catalog"
_REGISTRATOR = "spark.kryo.registrator"
_EXTENSIONS = "spark.sql.extensions"
_PACKAGES = ("org.apache.spark.sql.hudi.", "org.apache.hudi.", "org.apache.spark.Hoodie")


def unset_settings(session: SparkSession) -> None:
    """Unset what a session can unset, and name the lines to remove of what it cannot. Warns HudiSettings"""
    if _of_hudi(session, _CATALOG):
        session.conf.unset(_CATALOG)
    consequences = {
        _REGISTRATOR: "each job of this session fails, and a session cannot unset it",
        _EXTENSIONS: "Spark leaves the class out",
    }
    left = {key: named for key in consequences if (named := _of_hudi(session, key))}
    if left:
        warnings.warn(HudiSettings({key: (value, consequences[key]) for key, value in left.items()}), stacklevel=3)


def _of_hudi(session: SparkSession, key: str) -> str:
    """The classes of Hudi's that a setting names; "" for none."""
    names = (session.conf.get(key, "") or "").split(",")
    return ",".join(name.strip() for name in names if name.strip().startswith(_PACKAGES))
