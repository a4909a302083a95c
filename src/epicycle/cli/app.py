"""The commands, and what they exit with: 0 done, 2 bad input, 130 interrupted.

A command imports what it needs when it runs, so that ``epicycle --version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app", "main"]

OK, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 2, 128 + 2, 128 + 13

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Write JSON instead of a table.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from epicycle import __version__

        typer.echo(f"epicycle {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Machine learning that shows its work."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("methods")
def _methods(
    family: Annotated[str | None, typer.Option("--family", help="Only the methods of this family.")] = None,
    json: Json = False,
) -> None:
    """List every method that exists, with its solvers, engines and kind of certificate."""
    from epicycle.cli.listing import print_methods

    print_methods(family, as_json=json)


@app.command("show")
def _show(
    model: Annotated[Path, typer.Argument(metavar="MODEL.epi", help="A file that save() wrote.")],
    json: Json = False,
) -> None:
    """Show what a model file holds."""
    from epicycle.cli.showing import print_model

    print_model(model, as_json=json)


@app.command("demo")
def _demo(
    output: Annotated[
        Path | None, typer.Option("--output", metavar="MODEL.epi", help="Keep the model file of the demo here.")
    ] = None,
) -> None:
    """Fit three models on real data, print their certificates, write and reload a model file."""
    from epicycle.cli.demo import run_demo

    run_demo(output)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process by default) and return its exit status."""
    try:
        status = app(args=None if arguments is None else list(arguments), prog_name="epicycle", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # the parser makes the second of the first
        # The reader (head, less) has seen enough. What is still buffered goes nowhere, without a complaint at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        message = _in_one_line(error)
        if message is None:
            raise
        print(f"epicycle: {message}", file=sys.stderr)
        return BAD_INPUT
    return status if isinstance(status, int) else OK


def _in_one_line(error: Exception) -> str | None:
    """What to tell the user about bad input; None for an error that is nobody's input but our fault."""
    from epicycle.exceptions import EpicycleError

    if hasattr(error, "format_message"):  # what the command line parser raises
        message = error.format_message()
    elif isinstance(error, OSError) and error.strerror and error.filename is not None:
        message = f"{os.fsdecode(error.filename)}: {error.strerror}"
    elif isinstance(error, EpicycleError | OSError):
        message = str(error)
    else:
        return None
    return " ".join(message.split())
