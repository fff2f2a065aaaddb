"""Partition values out of partition paths, and which partitions of a metastore entry change. Pure rules.

Source: docs/format/engines.md 4.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from hoodie.errors import InvalidOption, SyncRefused
from hoodie.keygen.keygen import escape_path

Values = tuple[str, ...]
#: From the parts of a partition path to its values; None: the path is not of that form.
Extractor = Callable[[Sequence[str]], Values | None]


def _multi(parts: Sequence[str]) -> Values | None:
    """`a/b`, `x=a/y=b`: the text after "=" of each part."""
    if any(part.count("=") > 1 for part in parts):
        return None
    return tuple(part.rpartition("=")[2] for part in parts)


def _hive_style(parts: Sequence[str]) -> Values | None:
    """`x=a`."""
    text = "/".join(parts)
    name, _, value = text.partition("=")
    return (value,) if text.count("=") == 1 and name and value else None


def _date(parts: Sequence[str], count: int) -> Values | None:
    if len(parts) != count:
        return None
    numbers = [part.rpartition("=")[2] for part in parts]
    if not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    return ("-".join(number if place == 0 else number.zfill(2) for place, number in enumerate(numbers)),)


_EXTRACTORS: Mapping[str, tuple[Extractor, str]] = {
    "MultiPartKeysValueExtractor": (_multi, "one folder for each column, such as a/b or x=a/y=b"),
    "HiveStylePartitionValueExtractor": (_hive_style, "column=value"),
    "SinglePartPartitionValueExtractor": (lambda parts: ("-".join(parts),), "any path, as one value"),
    "SlashEncodedDayPartitionValueExtractor": (lambda parts: _date(parts, 3), "year/month/day"),
    "SlashEncodedHourPartitionValueExtractor": (lambda parts: _date(parts, 4), "year/month/day/hour"),
    "NonPartitionedExtractor": (lambda parts: (), "no partitions"),
}


def extractor_name(extractor: str, fields: Sequence[str], *, hive_style: bool) -> str:
    """The simple name of the extractor class.

    extractor  of the options, with or without its package; "": chosen by the fields as Hudi does
    Raises     InvalidOption on an unknown one
    """
    if not extractor:
        if not fields:
            return "NonPartitionedExtractor"
        if len(fields) > 1:
            return "MultiPartKeysValueExtractor"
        return "HiveStylePartitionValueExtractor" if hive_style else "SinglePartPartitionValueExtractor"
    name = extractor.rpartition(".")[2]
    if name not in _EXTRACTORS:
        raise InvalidOption(
            f"hoodie.datasource.hive_sync.partition_extractor_class={extractor}: expected one of "
            + ", ".join(_EXTRACTORS)
        )
    return name


def values_of(path: str, extractor: str, fields: Sequence[str], *, decode: bool = False) -> Values:
    """The values of a partition, one for each field.

    decode  the path is URL-encoded
    Raises  SyncRefused when the path is not of the extractor's form, or has another number of values
    """
    form, expected = _EXTRACTORS[extractor]
    parts = path.split("/")
    values = form(parts)
    if values is None or len(values) != len(fields):
        how = "is of another form" if values is None else f"gives {len(values)} values"
        raise SyncRefused(
            f"partition {path!r}",
            f"it {how} for the partition columns ({', '.join(fields)}) by {extractor}, which expects {expected}. Set "
            "hoodie.datasource.hive_sync.partition_extractor_class and partition_fields to what the paths are",
        )
    if any(value == "" for value in values):
        raise SyncRefused(f"partition {path!r}", "an empty value, which Hive cannot hold")
    return tuple(unquote(value) for value in values) if decode else values


def partition_name(fields: Sequence[str], values: Sequence[str]) -> str:
    """How a metastore names a partition: `column=value/...`, values escaped, columns in lower case."""
    pairs = zip(fields, values, strict=True)
    return "/".join(f"{escape_path(field.lower())}={escape_path(value)}" for field, value in pairs)


@dataclass(frozen=True, slots=True)
class PartitionEvents:
    """What changes in the metastore: values of partitions, with the partition path that they get."""

    add: Mapping[Values, str]
    alter: Mapping[Values, str]
    drop: tuple[Values, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.alter or self.drop)


def partition_events(
    storage: Mapping[Values, str],
    metastore: Mapping[Values, str],
    *,
    whole: bool,
    dropped: Iterable[Values] = (),
    location: Callable[[str], str],
) -> PartitionEvents:
    """Compare partitions of the table with those of the metastore.

    storage    values -> partition path, of those to be there
    metastore  values -> location
    whole      both are complete: what the table lacks goes from the metastore
    dropped    partitions that commits or cleans have deleted
    location   of a partition path
    """
    add = {values: path for values, path in storage.items() if values not in metastore}
    alter = {
        values: path
        for values, path in storage.items()
        if values in metastore and without_scheme(metastore[values]) != without_scheme(location(path))
    }
    vanished = metastore.keys() - storage.keys() if whole else {values for values in dropped if values in metastore}
    return PartitionEvents(add, alter, tuple(sorted(vanished - storage.keys())))


def without_scheme(location: str) -> str:
    """A location to compare: Hive and Hadoop write the scheme of one place in several ways."""
    text = location.rstrip("/")
    scheme, colon, rest = text.partition(":")
    if colon and "/" not in scheme:
        text = rest
    while text.startswith("//"):
        text = text[1:]
    return text
