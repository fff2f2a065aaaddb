"""Arguments that several commands take."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hoodie.config.datasource import door_options

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_path(parser: argparse.ArgumentParser) -> None:
    """The table's folder, as `options.path`."""
    parser.add_argument("path", help="the table's folder: local, or a URI such as s3://bucket/table")


def add_options(parser: argparse.ArgumentParser) -> None:
    """`--option hoodie.key=value`, any number of times; `hoodie_options` reads them."""
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=pair,
        metavar="KEY=VALUE",
        help="a hoodie.* option of the table's writes; may be repeated",
    )


def add_conf(parser: argparse.ArgumentParser) -> None:
    """`--conf spark.key=value`, any number of times; `spark_conf` reads them."""
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=pair,
        metavar="KEY=VALUE",
        help="a Spark setting, such as spark.master=spark://host:7077; may be repeated",
    )


def hoodie_options(options: argparse.Namespace) -> Options:
    """What `--option` gave, the last value of a key. Raises InvalidOption naming an unknown key."""
    return door_options(dict(options.option))


def spark_conf(options: argparse.Namespace) -> dict[str, str]:
    """What `--conf` gave, the last value of a key."""
    return dict(options.conf)


def pair(text: str) -> tuple[str, str]:
    """A KEY=VALUE of the command line."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value
