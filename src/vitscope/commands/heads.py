"""`vitscope heads`: what kind every head is, and whether the paper's authors saw the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from vitscope.commands.options import Limit, ModelOptions, RunOptions
from vitscope.core.errors import VitscopeError, shorten
from vitscope.core.reading import path_problem
from vitscope.core.say import say

if TYPE_CHECKING:
    from vitscope.core.results import Results


def heads(
    *what: str,
    images: Path | None = None,
    limit: Limit | None = None,
    check: bool = False,
    kind: str | None = None,
    heat: list[str] | None = None,
    against: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    maps: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    out: Path = Path("runs/heads"),
    model_options: ModelOptions = ModelOptions(),  # noqa: B008
    run_options: RunOptions = RunOptions(),  # noqa: B008
) -> None:
    """List the kind of every head: of finished runs, or of models looked at here.

    Parameters
    ----------
    what
        Folders of finished runs that have attention, or models (names, cards, weights) with --images.
    images
        Folder of images to look at models with.
    limit
        At most this many images.
    check
        Compare with the heads that the paper's authors named by eye, for whoever has the paper's weights.
    kind
        List only heads of this kind, such as "offset local".
    heat
        Draw this measure of every head as a heat map of each whole model, such as attention_distance or
        saliency_iou:cls (MEASURE:VARIANT); may be given several times.
    against
        Draw one measure of heads against another, such as attention_distance entropy: a mark for each head.
    maps
        Draw where these sources look on average, a mosaic of all heads for each: cls, all, mean (of the patch tokens),
        pool (a pooling head), or the patch token at the top, left, centre, right or bottom; with CLS above each map.
    out
        Folder for figures, and for what is computed.
    """
    from rich.console import Console

    from vitscope.attention.kinds import KINDS
    from vitscope.report.head_figures import draw_heads
    from vitscope.report.head_list import check_lines, heads_table
    from vitscope.report.style import figure_width, save_figure, styled

    if kind is not None and kind not in KINDS:
        raise VitscopeError(f"there is no kind of head '{shorten(kind, 60)}': there is {', '.join(KINDS)}")
    if against is not None and (len(against) % 2 or not against):
        raise VitscopeError(f"--against takes two measures at a time, not {len(against)}")
    results = _results(what, images, limit, out, model_options, run_options)
    console = Console(markup=False, highlight=False)
    for table in heads_table(results, kind):
        console.print(table)
    if check:
        for line in check_lines(results):
            say(line)
    pairs = list(zip((against or [])[::2], (against or [])[1::2], strict=True))
    with figure_width(run_options.width), styled():
        for name, figure in draw_heads(results, heat or [], pairs, maps or []).items():
            say(f"figure: {save_figure(figure, out / 'figures', name)[0]}")


def _results(
    what: tuple[str, ...],
    images: Path | None,
    limit: int | None,
    out: Path,
    model_options: ModelOptions,
    run_options: RunOptions,
) -> Results:
    """Results of all runs named, and of all models, which are looked at now."""
    from vitscope.attention.analysis import Attention
    from vitscope.core.results import Results
    from vitscope.data import openers

    if not what:
        raise VitscopeError("name a finished run, or a model with --images DIR")
    runs = [name for name in what if not path_problem(name) and (Path(name) / "provenance.json").is_file()]
    models = [name for name in what if name not in runs]
    found = Results()
    for run in runs:
        found.join(Results.load(run))
    if models:
        specs = model_options.specs(models)
        if images is None:
            raise VitscopeError(
                f"{models[0]} is a model, not a finished run: say which images to look at, --images DIR"
            )
        dataset = openers.images(images, limit=limit, seed=model_options.seed)
        found.join(run_options.run(specs, [dataset], [Attention()], out, model_options, command="attention"))
    if not any(name.endswith("/kind") for name in found.maps):
        raise VitscopeError(f"{what[0]} has no attention: run `vitscope attention`, or name a model with --images DIR")
    return found
