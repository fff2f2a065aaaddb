"""Commands about the command itself: version, completion."""

import platform
from dataclasses import dataclass
from importlib import metadata

import click
from click.shell_completion import get_completion_class

from hoodie.cli.arguments import command
from hoodie.cli.calls import Call
from hoodie.config.table import NEWEST_VERSION
from hoodie.model.table_version import WRITTEN

_PACKAGES = ("pyarrow", "pandas", "pyspark", "fsspec", "s3fs")


@dataclass(frozen=True, slots=True)
class Version:
    """What is installed.

    packages  version by name; "" for one that is not installed
    reads     versions of the table format, the oldest and the newest
    writes    those that are written
    """

    hoodie: str
    python: str
    packages: dict[str, str]
    reads: tuple[int, int]
    writes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A script for a shell."""

    shell: str
    script: str


@command("version", tables=False, examples=["hoodie version", "hoodie version --json"])
def version(call: Call) -> int:
    """Show the versions of Hoodie and its packages."""
    versions = Version(
        _installed("hoodie") or "0+unknown",
        platform.python_version(),
        {name: _installed(name) for name in _PACKAGES},
        (0, NEWEST_VERSION),
        WRITTEN,
    )
    packages = ", ".join(f"{name} {release or '(not installed)'}" for name, release in versions.packages.items())
    return call.print_result(
        versions,
        [
            f"hoodie {versions.hoodie}, Python {versions.python}",
            packages,
            f"reads tables up to version {versions.reads[1]}, writes versions {', '.join(map(str, versions.writes))}",
        ],
    )


@command(
    "completion",
    click.argument("shell", type=click.Choice(["bash", "zsh", "fish"])),
    tables=False,
    examples=['eval "$(hoodie completion bash)"', "hoodie completion fish > ~/.config/fish/completions/hoodie.fish"],
)
def completion(call: Call, shell: str) -> int:
    """Print the script that completes commands.

    Put the line of the example into ~/.bashrc or ~/.zshrc.
    """
    from hoodie.cli.main import cli  # here: the commands are of it

    completion_class = get_completion_class(shell)
    assert completion_class is not None  # of the choices
    script = completion_class(cli, {}, "hoodie", "_HOODIE_COMPLETE").source()
    return call.print_result(Script(shell, script), [script])


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
