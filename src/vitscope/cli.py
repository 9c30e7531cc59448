"""The command: `vitscope --help`. Bad input is one sentence on standard error and exit status 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError
from rich.console import Console
from rich.markup import escape

COMMANDS = {
    "demo": "Run the complete study on the built-in zoo and world.",
    "init": "Write a commented study file to start from.",
    "run": "Run a study, or go on with it: only what is new is computed.",
    "results": "Print the results of a run as CSV, Markdown or LaTeX.",
    "models": "List the models that have names, and how to get their weights.",
    "attention": "How: where heads look, how far, and what kind of head each is.",
    "features": "What: similarity of layers and models, clusters, residual streams.",
    "extract": "Write pooled features of all layers to a store.",
    "tasks": "Why: downstream tasks at every layer, and the best layers.",
    "menagerie": "Render the built-in world in the layouts of official datasets.",
    "teach": "Teach a ViT on your own images, in one of six ways.",
}


def make_app(chosen: str = "") -> App:
    """The command with its subcommands, each imported only when it is used, so that --help is quick.

    The list of commands shows one line for each; the chosen one shows its whole docstring.
    """
    app = App(
        name="vitscope",
        help="See what a Vision Transformer became through the way it was taught.",
        version_flags=["--version"],
    )
    for number, (name, text) in enumerate(COMMANDS.items()):
        module = "features" if name == "extract" else name
        line = {} if name == chosen else {"help": text}
        app.command(f"vitscope.commands.{module}:{name}", name=name, sort_key=number, **line)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    from vitscope.errors import VitscopeError

    words = list(sys.argv[1:] if arguments is None else arguments)
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    app = make_app(words[0] if words else "")
    try:
        app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except VitscopeError as error:
        errors.print(f"[bold red]error:[/] {escape(str(error))}")
        sys.exit(2)
    except CycloptsError as error:
        errors.print(f"[bold red]error:[/] {escape(str(error))}")
        errors.print("`vitscope --help` and `vitscope COMMAND --help` say what there is.")
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("stopped; what was written stays")
        sys.exit(130)


if __name__ == "__main__":
    main()
