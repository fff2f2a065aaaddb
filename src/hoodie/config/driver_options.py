"""Options of a storage's driver among those of a call: `hoodie.storage.key` is the driver's `key`.

For the doors that take nothing but options: `spark.read.format("hudi").option(...)`, streams, views, properties files.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from hoodie.config.hudi_options import find_option
from hoodie.config.options import Options

_PREFIX = "hoodie.storage."


def is_driver_option(key: str) -> bool:
    """Whether an option is the driver's. Hudi has a few of its own with the same beginning."""
    return key.startswith(_PREFIX) and find_option(key) is None


def driver_options(options: Mapping[str, str]) -> dict[str, Any]:
    """What the options say for the driver, by its own names."""
    return {key.removeprefix(_PREFIX): driver_value(value) for key, value in options.items() if is_driver_option(key)}


def without_driver_options(options: Mapping[str, str]) -> Options:
    """The options that are not the driver's: these are for nobody but the storage, as secrets may be among them."""
    return Options({key: value for key, value in options.items() if not is_driver_option(key)})


def driver_value(text: str) -> Any:
    """A driver's option: JSON where it is an object or a truth value, else text."""
    if text[:1] == "{" or text in ("true", "false"):
        with suppress(ValueError):
            return json.loads(text)
    return text
