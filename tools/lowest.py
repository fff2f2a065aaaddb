"""The least versions that pyproject.toml admits, as constraints for pip: `make lowest` runs tests with them."""

import re
import tomllib
from pathlib import Path

#: What users install. The other extras are tools of those who work on the library, and servers of `make stores`.
_EXTRAS = ("spark", "s3", "polars", "duckdb", "zookeeper", "hbase", "hive", "notebook", "prometheus", "opentelemetry")


def lowest(pyproject: Path) -> list[str]:
    project = tomllib.loads(pyproject.read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(each for extra in _EXTRAS for each in extras[extra])]
    bounds = (re.match(r"([\w.-]+)(?:\[\w+\])?>=([\w.]+)", each) for each in needed)
    return sorted({f"{bound[1]}=={bound[2]}" for bound in bounds if bound})


if __name__ == "__main__":
    print("\n".join(lowest(Path(__file__).parents[1] / "pyproject.toml")))
