"""The command: `vitscope --help`. Bad input is one sentence on standard error and exit status 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError
from rich.console import Console

app = App(
    name="vitscope",
    help="See what a Vision Transformer became through the way it was taught.",
    version_flags=["--version"],
)
# Commands are imported only when they are used, so that --help is quick.
app.command("vitscope.commands.demo:demo", name="demo")
app.command("vitscope.commands.init:init", name="init")
app.command("vitscope.commands.run:run", name="run")
app.command("vitscope.commands.results:results", name="results")
app.command("vitscope.commands.models:models", name="models")
app.command("vitscope.commands.attention:attention", name="attention")
app.command("vitscope.commands.tasks:tasks", name="tasks")
app.command("vitscope.commands.menagerie:menagerie", name="menagerie")
app.command("vitscope.commands.teach:teach", name="teach")


def main(arguments: Sequence[str] | None = None) -> None:
    from vitscope.errors import VitscopeError

    words = list(sys.argv[1:] if arguments is None else arguments)
    errors = Console(stderr=True, soft_wrap=True)
    try:
        app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except VitscopeError as error:
        errors.print(f"[bold red]error:[/] {_plain(error)}", highlight=False)
        sys.exit(2)
    except CycloptsError as error:
        errors.print(f"[bold red]error:[/] {_plain(error)}", highlight=False)
        errors.print("`vitscope --help` and `vitscope COMMAND --help` say what there is.", highlight=False)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("stopped; what was written stays")
        sys.exit(130)


def _plain(error: Exception) -> str:
    from rich.markup import escape

    return escape(str(error))


if __name__ == "__main__":
    main()
