"""What a vector of tests/vectors/keygen.json is about: the key generator and its settings."""

from typing import Any

from hoodie.config.keygen import TimestampType, TimeUnit
from hoodie.keygen.keygen import Kind
from hoodie.keygen.timebased import TimestampSettings

#: Of a vector's generator: the kind, and whether a single key has its field's name in front.
GENERATORS = {
    "simple": (Kind.SIMPLE, False),
    "complex": (Kind.COMPLEX, False),
    "complex single field, 0.14.1/0.15.0/1.0.x": (Kind.COMPLEX, False),
    "complex single field, <=0.14.0 and >=1.1 default": (Kind.COMPLEX, True),
    "global_delete": (Kind.GLOBAL_DELETE, False),
}


def timestamp_settings(vector: dict[str, Any]) -> TimestampSettings:
    kind = TimestampType(vector["type"])
    zones = {"(none)": ("", ""), "in=America/New_York out=UTC": ("America/New_York", "UTC"), "GMT+8:00": ("", "+08:00")}
    into, out = zones.get(vector["zone"], (vector["zone"], vector["zone"]))
    units = {TimestampType.UNIX_TIMESTAMP: TimeUnit.SECONDS, TimestampType.EPOCHMILLISECONDS: TimeUnit.MILLISECONDS}
    unit = TimeUnit[vector["unit"]] if kind is TimestampType.SCALAR else units.get(kind)
    formats = tuple(vector.get("input_format", "").split(",")) if kind is TimestampType.DATE_STRING else ()
    return TimestampSettings(kind, unit, formats, into, out, vector["output_format"])
