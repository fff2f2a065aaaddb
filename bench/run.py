"""Runs cases in alternating rounds and prints a table of ratios: python -m bench.run --help."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession

import hoodie
from bench import compaction, floor, merging, peers, reading, workload
from bench.cases import ASKED, PATHS, SNAPSHOTS, Bench, Case, Contender, Phases, files_below
from bench.meter import Meter, Reading
from bench.spark_peers import page as peers_page
from bench.spark_peers import run as peers_run
from bench.spark_peers.engines import ENGINES, USUAL
from bench.spark_peers.parts import COMMITS, PARTS
from hoodie.spark.session import local_session

UPSERTS = ("spread", "recent", "tiny")
SMALL = ("tiny", "recent")
NO_SMALL_FILES = {"hoodie.parquet.small.file.limit": 0}
#: In processes of their own.
APART = ("memory", "memory-snapshot", "growth")
CASES = (
    "bulk",
    "bulk-sort",
    *UPSERTS,
    "peers",
    "floor",
    "merge",
    "query",
    *SNAPSHOTS,
    "incremental",
    "keys",
    "compaction",
    *APART,
)
#: Only by its name: it needs real engines, and options of its own.
SPARK_PEERS = "spark-peers"
OF_LOGS = (*SNAPSHOTS, "compaction", "memory-snapshot")
MiB = 2**20


@dataclass(frozen=True)
class Run:
    """One contender in one round; written: bytes of the files it added or replaced."""

    reading: Reading
    written: int
    phases: Phases


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.probe:
        return probe(options)
    options.data = options.data.absolute()
    options.data.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="made-", dir=options.data))
    try:
        if SPARK_PEERS in options.cases:
            spark_peers(options, made)
        if cases := [name for name in options.cases if name != SPARK_PEERS]:
            in_this_session(options, cases, made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def spark_peers(options: argparse.Namespace, made: Path) -> None:
    results = options.data / f"spark-peers-{options.n}.jsonl"
    if not options.add:
        results.unlink(missing_ok=True)
    what = (options.engines, options.parts, options.commits)
    peers_run.add(peers_run.run(options.n, options.rounds, *what, options.data, made), results)
    print("\n" + peers_page.page(options.n, peers_run.read(results)))


def in_this_session(options: argparse.Namespace, cases: Sequence[str], made: Path) -> None:
    """The cases that compare with plain Spark in the library's own session, and those in processes that it starts."""
    spark = session(options, "6g")
    load = workload.prepare(spark, options.n, options.data)
    bench = Bench(spark, load, made, options.indexes, options.paths, options.table_type)
    print(f"\n{options.n:,} rows, {options.table_type}, {options.rounds} rounds, {options.cores} cores\n")
    print(HEADER, flush=True)
    for name in cases:
        if name not in APART:
            for case in _cases(bench, name):
                report(case, measure(spark, case, options.rounds, made, options.warm_ups))
    spark.stop()
    if "memory" in cases:
        memory(options)
    if "memory-snapshot" in cases:
        memory_of_snapshots(options)
    if "growth" in cases:
        growth(options)


def _cases(bench: Bench, name: str) -> Iterator[Case]:
    """The cases of that name."""
    if name == "incremental":
        yield from reading.incremental(bench)
    elif name == "keys":
        yield from reading.keys(bench)
    elif name == "floor":
        yield from floor.cases(bench)
    elif name == "peers":
        yield from peers.cases(bench)
    elif name == "merge":
        yield from merging.cases(bench)
    elif name == "compaction":
        yield from compaction.cases(bench)
    else:
        yield from bench.case(name)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench.run", description=__doc__)

    def names(allowed: Sequence[str], usual: Sequence[str] = ()) -> dict[str, object]:
        def split(text: str) -> tuple[str, ...]:
            chosen = tuple(text.split(","))
            if wrong := set(chosen) - set(allowed):
                raise argparse.ArgumentTypeError(f"{', '.join(sorted(wrong))}: not one of {', '.join(allowed)}")
            return chosen

        return {"type": split, "default": tuple(usual or allowed), "metavar": ",".join(allowed)}

    parser.add_argument("--n", type=int, default=2_000_000, help="rows of the table")
    parser.add_argument("--rounds", type=int, default=3, help="that count")
    parser.add_argument(
        "--warm-ups",
        type=_at_least_one,
        default=1,
        help="rounds before; short queries take some until the JVM has compiled them",
    )
    parser.add_argument(
        "--cases",
        **names((*CASES, SPARK_PEERS), CASES),
        help=f"all, but for those of logs with COPY_ON_WRITE, and but for {SPARK_PEERS}",
    )
    parser.add_argument("--engines", **names(tuple(ENGINES), USUAL), help=f"of {SPARK_PEERS}")
    parser.add_argument("--add", action="store_true", help=f"to what {SPARK_PEERS} of as many rows measured before")
    parser.add_argument("--commits", type=_at_least_one, default=COMMITS, help=f"of ten rows, of {SPARK_PEERS}")
    parser.add_argument("--parts", **names(tuple(PARTS)), help=f"of {SPARK_PEERS}")
    parser.add_argument("--indexes", **names(("BLOOM", "SIMPLE")))
    parser.add_argument("--paths", **names(tuple(PATHS)))
    parser.add_argument("--table-type", default="COPY_ON_WRITE", choices=("COPY_ON_WRITE", "MERGE_ON_READ"))
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--data", type=Path, default=Path("bench-data"), help="where rows are kept between runs")
    parser.add_argument("--probe", choices=("build", "logs", "snapshot", "growth", *PATHS), help=argparse.SUPPRESS)
    parser.add_argument("--batch-of", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--made", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.table_type == "COPY_ON_WRITE" and options.cases == CASES:
        options.cases = tuple(name for name in CASES if name not in OF_LOGS)
    if options.table_type == "COPY_ON_WRITE" and (wrong := [name for name in options.cases if name in OF_LOGS]):
        parser.error(f"--cases {','.join(wrong)} need --table-type MERGE_ON_READ")
    return options


def _at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("expected at least 1")
    return number


def session(options: argparse.Namespace, memory: str) -> SparkSession:
    spark = local_session(
        "hoodie-bench",
        cores=options.cores,
        memory=memory,
        **{
            "spark.sql.shuffle.partitions": 8,
            "spark.sql.session.timeZone": "UTC",
            # ds stays the string that it is; as a date it would hash differently
            "spark.sql.sources.partitionColumnTypeInference.enabled": False,
        },
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def measure(spark: SparkSession, case: Case, rounds: int, made: Path, warm_ups: int = 1) -> dict[str, list[Run]]:
    """Each contender's runs. The order rotates from round to round; the first is checked, and only warms up."""
    runs: dict[str, list[Run]] = {contender.name: [] for contender in case.contenders}
    checks = {}
    for number in range(warm_ups + rounds):
        turn = number % len(case.contenders)
        for contender in case.contenders[turn:] + case.contenders[:turn]:
            folder = Path(tempfile.mkdtemp(dir=made))
            run = one(spark, contender, folder)
            if number == 0:
                checks[contender.name] = contender.check(folder)
            if number >= warm_ups:
                runs[contender.name].append(run)
            shutil.rmtree(folder)
    for name, found in checks.items():
        first = case.contenders[0].name
        if found != checks[first]:
            raise SystemExit(f"{case.name}: {name} gave {found}, {first} {checks[first]}")
    return runs


def one(spark: SparkSession, contender: Contender, folder: Path) -> Run:
    contender.prepare(folder)
    before = files_below(folder)
    spark.sparkContext._jvm.System.gc()  # a contender does not pay for what the one before it left
    with Meter() as meter:
        phases = contender.work(folder)
    contender.after(folder)
    after = files_below(folder)
    return Run(meter.reading, sum(size for file, size in after.items() if before.get(file) != size), phases)


HEADER = """\
| case | how | wall s | CPU s | wall ratio | CPU ratio | written / changed | peak MB: driver, JVM, workers | phases, s |
|---|---|---|---|---|---|---|---|---|"""


def report(case: Case, runs: dict[str, list[Run]]) -> None:
    """One line a contender: medians over the rounds; a ratio is to the first, plain Spark, in the same round."""
    for name, own in runs.items():
        pairs = list(zip(own, runs[case.contenders[0].name], strict=True))
        cells = [
            case.name,
            name,
            f"{median(run.reading.wall for run in own):.2f}",
            f"{median(run.reading.cpu for run in own):.2f}",
            spread([run.reading.wall / plain.reading.wall for run, plain in pairs]),
            spread([run.reading.cpu / plain.reading.cpu for run, plain in pairs]),
            f"{median(run.written for run in own) / case.changed:.1f}" if case.changed else "",
            peaks([run.reading for run in own]),
            " ".join(f"{phase} {median(run.phases.get(phase, 0.0) for run in own):.2f}" for phase in own[0].phases),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


def spread(ratios: list[float]) -> str:
    """The median and, as one number says too much, the range."""
    return f"{median(ratios):.2f} [{min(ratios):.2f}-{max(ratios):.2f}]"


def peaks(readings: list[Reading]) -> str:
    columns = zip(*((r.peak_driver, r.peak_jvm, r.peak_workers) for r in readings), strict=True)
    return ", ".join(f"{max(column) / MiB:.0f}" for column in columns)


def memory(options: argparse.Namespace) -> None:
    """The same batch upserted into a table and into one four times as large, each in processes of its own."""
    print("\n| memory: table rows | way | peak MB: driver, JVM, workers | wall s |\n|---|---|---|---|", flush=True)
    for n in (options.n, 4 * options.n):
        with tempfile.TemporaryDirectory(prefix="made-", dir=options.data) as made:
            child(options, "build", n, made)
            for path in options.paths:
                reading = Reading(**json.loads(child(options, path, n, made).splitlines()[-1]))
                print(f"| {n:,} | {path} | {peaks([reading])} | {reading.wall:.2f} |", flush=True)


def memory_of_snapshots(options: argparse.Namespace) -> None:
    """Queries on a table with the logs of one batch, and on one ten times as large with as many changes."""
    print("\n| memory: table rows | snapshot | peak MB: driver, JVM, workers | wall s |\n|---|---|---|---|", flush=True)
    for n in (options.n, 10 * options.n):
        with tempfile.TemporaryDirectory(prefix="made-", dir=options.data) as made:
            child(options, "logs", n, made)
            for line in child(options, "snapshot", n, made).splitlines()[-len(ASKED) :]:
                what, told = line.split("\t")
                reading = Reading(**json.loads(told))
                print(f"| {n:,} | {what} | {peaks([reading])} | {reading.wall:.2f} |", flush=True)


def growth(options: argparse.Namespace) -> None:
    """The same batches upserted into a table, and into one ten times as large."""
    print("\n| growth: table rows | batch | wall s | CPU s |\n|---|---|---|---|", flush=True)
    for n in (options.n, 10 * options.n):
        with tempfile.TemporaryDirectory(prefix="made-", dir=options.data) as made:
            child(options, "build", n, made)
            for line in child(options, "growth", n, made).splitlines()[-len(SMALL) :]:
                batch, told = line.split("\t")
                readings = [Reading(**one) for one in json.loads(told)]
                wall, cpu = median(one.wall for one in readings), median(one.cpu for one in readings)
                print(f"| {n:,} | {batch} | {wall:.2f} | {cpu:.2f} |", flush=True)


def child(options: argparse.Namespace, what: str, n: int, made: str) -> str:
    command = [sys.executable, "-m", "bench.run", "--probe", what, "--n", str(n), "--batch-of", str(options.n)]
    command += ["--made", made, "--data", str(options.data), "--cores", str(options.cores)]
    command += ["--table-type", options.table_type]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def probe(options: argparse.Namespace) -> None:
    """Do the step of that name with the table in --made, and batches of a table of --batch-of rows; in a JVM of 2 GB.

    build     make the table
    logs      and upsert `spread` into it
    snapshot  queries, each three times, as the JVM takes some memory for code
    growth    upsert small batches, each into three copies
    a path    upsert `spread` into a copy so
    """
    spark = session(options, "2g")
    load = workload.prepare(spark, options.n, options.data)
    batches = workload.prepare(spark, options.batch_of, options.data)
    batch = batches.batch("spread")
    table = Bench(spark, load, options.made, (), (), options.table_type).base_table()
    if options.probe == "build":
        return
    if options.probe == "logs":
        hoodie.open_table(str(table), spark=spark).upsert(spark.read.parquet(str(batch)))
        return
    if options.probe == "snapshot":
        for what, run in ASKED.items():
            with Meter() as meter:
                for _ in range(3):
                    run(hoodie.open_table(str(table), spark=spark).snapshot())
            print(what, json.dumps(asdict(meter.reading)), sep="\t")
        return
    if options.probe == "growth":
        for name in SMALL:
            changes = spark.read.parquet(str(batches.batch(name)))
            copies = [options.made / f"{name}-{number}" for number in range(3)]
            readings = [_upsert(spark, table, copy, changes, NO_SMALL_FILES) for copy in copies]
            print(name, json.dumps([asdict(reading) for reading in readings]), sep="\t")
        return
    rows = spark.read.parquet(str(batch))
    reading = _upsert(spark, table, options.made / options.probe, rows, PATHS[options.probe])
    print(json.dumps(asdict(reading)))


def _upsert(
    spark: SparkSession, table: Path, copy: Path, rows: DataFrame, options: Mapping[str, object] | None = None
) -> Reading:
    """What an upsert into a copy of a table takes."""
    shutil.copytree(table, copy)
    opened = hoodie.open_table(str(copy), spark=spark, options=options)
    with Meter() as meter:
        opened.upsert(rows)
    return meter.reading


if __name__ == "__main__":
    main()
