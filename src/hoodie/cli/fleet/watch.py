"""Commands for those who watch many tables: metrics, serve."""

from dataclasses import replace

import click

from hoodie.cli import secrets
from hoodie.cli.arguments import GRACE, LONGEST_WAIT, Seconds, cli_option, command
from hoodie.cli.calls import Call
from hoodie.cli.output_file import output_file


@command(
    "metrics",
    GRACE,
    cli_option(
        "--output",
        "file",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        example="--output /var/lib/node_exporter/hoodie.prom",
        help="Write to this file, which is replaced whole: for the textfile collector of the node exporter.",
    ),
    examples=[
        "hoodie metrics --from tables.txt",
        "hoodie metrics --from tables.txt --output /var/lib/node_exporter/hoodie.prom",
    ],
    hoodie=True,
)
def metrics(call: Call, grace: float, file: str | None) -> int:
    """Print metrics of tables for Prometheus.

    Whether each can be read, sizes, logs, what is pending, the age of the newest commit, and the doctor's findings by
    class. No data file is opened. A table that is damaged is a series with hoodie_table_up 0, and the status stays 0. A
    glob that no table matches is one, too.
    """
    from hoodie.cli.fleet.server import seen_health
    from hoodie.facts.health import health
    from hoodie.metrics.text import exposition

    outcomes = replace(call, watches=True).run(lambda target: health(target.storage, target.settings, grace=grace))
    if call.as_json:
        return call.report(outcomes, lambda result: [])
    text = exposition([(secrets.masked_path(outcome.path), seen_health(outcome)) for outcome in outcomes])
    if file is None:
        click.echo(text, nl=False)
        return 0
    with output_file(file) as sink:
        sink.write(text.encode())
    return 0


@command(
    "serve",
    GRACE,
    cli_option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8090,
        metavar="N",
        example="--port 9000",
        help="Where it listens; 0: at a free port.",
    ),
    cli_option(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        example="--host 0.0.0.0",
        help="The address that it listens at. Everybody who reaches it sees names, sizes and paths of the tables.",
    ),
    cli_option(
        "--every",
        type=Seconds(1, LONGEST_WAIT),
        default=30.0,
        metavar="SECONDS",
        example="--every 10",
        help="Seconds between two looks at the tables.",
    ),
    examples=["hoodie serve --from tables.txt", "hoodie serve '/data/lake/*' --port 9000 --every 10"],
    hoodie=True,
)
def serve_command(call: Call, grace: float, port: int, host: str, every: float) -> int:
    """Show tables on a page in the browser, live.

    All tables on one page, those with problems first, sortable, each with its report; /metrics has what `hoodie
    metrics` prints. Nothing is changed. It ends by Ctrl-C or SIGTERM.
    """
    from hoodie.cli.fleet.server import Fleet, serve_fleet

    if call.as_json:
        raise click.UsageError("serve has no JSON document: the page has one at /tables.json")
    return serve_fleet(Fleet(replace(call, watches=True), grace), host, port, every)
