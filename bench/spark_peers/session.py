"""An engine's own process: a request a line on standard input, an answer a line on the file given.

    python -m bench.spark_peers.session CLASS FOLDER SETTINGS ANSWERS

A request is {"call": a method of `tables.Table`, "with": [its arguments]}; an answer is {"value": ...} or
{"error": text}.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from bench.spark_peers.tables import TABLES, Table


def main() -> None:
    kind, folder, settings, path = sys.argv[1:]
    with open(path, "w") as answers:

        def tell(answer: dict[str, Any]) -> None:
            print(json.dumps(answer), file=answers, flush=True)

        table = TABLES[kind](Path(folder), json.loads(settings))
        tell({"value": table.spark.version})
        for line in sys.stdin:
            tell(answer(table, json.loads(line)))
    table.spark.stop()


def answer(table: Table, request: dict[str, Any]) -> dict[str, Any]:
    """What a call gave, or the error of the engine: the next request is answered all the same."""
    try:
        return {"value": getattr(table, request["call"])(*request["with"])}
    except Exception as error:  # of any engine: it is in the table of figures
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}


if __name__ == "__main__":
    main()
