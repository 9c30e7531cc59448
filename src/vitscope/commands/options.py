"""Options that several commands share, declared once; and what they do at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from vitscope.core.errors import VitscopeError
from vitscope.core.say import Figures, say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from vitscope.api import StudyResults
    from vitscope.core.analysis import Analysis
    from vitscope.data.dataset import Dataset
    from vitscope.models.spec import Spec
    from vitscope.pipeline.plan import Plan
    from vitscope.pipeline.store import Store


def whole(low: int, high: int, text: str = "") -> Parameter:
    """An option that takes a whole number within bounds, and tells any other instead of changing it.

    text: its help; what the command's docstring says of it if not given.
    """
    bounds = Parameter(validator=Number(gte=low, lte=high))
    return Parameter.combine(bounds, Parameter(help=text)) if text else bounds


Limit = Annotated[int, whole(1, 10**9)]  # images, queries, videos or pairs
DRAWN = "Draw none, the images of the page, or all: figures for papers too, as PNG, SVG and PDF."
Drawn = Annotated[Figures, Parameter(help=DRAWN)]


FigureWidth = Annotated[
    Literal["column", "page"] | None,
    Parameter(help="Width of figures: column (3.25 in) or page (6.75 in) of a paper, if not as they like."),
]


@Parameter(name="*")
@dataclass(frozen=True)
class ModelOptions:
    """How models are found and loaded."""

    arch: Annotated[
        str | None,
        Parameter(help="Architecture (timm name) of a weights file given as model, where its tensors leave a choice."),
    ] = None
    ignore_keys: Annotated[
        list[str] | None,
        Parameter(
            help="Patterns, such as 'head2.*', of keys of a weights file that are not part of the network.",
            consume_multiple=True,
            negative="",
        ),
    ] = None
    size: Annotated[
        list[int] | None,
        Parameter(
            help="Input size in pixels (one number, or height and width), if not the model's own; position embeddings "
            "are resampled.",
            consume_multiple=True,
        ),
    ] = None
    device: Annotated[str, Parameter(help="cpu, cuda, cuda:N, mps, or auto.")] = "auto"
    seed: Annotated[
        int, whole(0, 2**63 - 1, "Seed of untrained networks, of every choice and order of images, and of resampling.")
    ] = 0
    download: Annotated[
        bool, Parameter(help="Fetch missing weights from the hub. Nothing is fetched otherwise.", negative="")
    ] = False

    def specs(self, models: Sequence[str]) -> list[Spec]:
        """What the models named stand for."""
        from vitscope.pipeline.evaluate import specs_of

        if not models:
            raise VitscopeError("name at least one model: `vitscope models` lists them")
        found = {"arch": self.arch, "ignore_keys": tuple(self.ignore_keys or ())}
        return specs_of(models, size=self.input_size, seed=self.seed, download=self.download, **found)

    @property
    def input_size(self) -> int | tuple[int, int] | None:
        if self.size is None:
            return None
        if len(self.size) not in (1, 2) or min(self.size) < 1:
            raise VitscopeError(f"--size takes one number or two (height, width), from 1 up, not {self.size}")
        return self.size[0] if len(self.size) == 1 else (self.size[0], self.size[1])


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """How work is done; every command divides it, resumes it and can write the page."""

    processes: Annotated[int, whole(1, 4096, "Shards done side by side; they share the cores.")] = 1
    engine: Annotated[
        Literal["local", "ray"], Parameter(help="This machine, or a Ray cluster (RAY_ADDRESS, or one started here).")
    ] = "local"
    workers: Annotated[int, whole(0, 256, "Decode images in this many processes instead of threads.")] = 0
    skip_limit: Annotated[int, whole(0, 10**9, "Stop when more images than this cannot be read.")] = 50
    page: Annotated[bool, Parameter(help="Write the page, report.html.")] = True
    figures: Drawn = "page"
    width: FigureWidth = None

    def run(
        self,
        specs: Sequence[Spec],
        datasets: Sequence[Dataset],
        analyses: Sequence[Analysis],
        out: Path,
        models: ModelOptions,
        export: Callable[[Plan, Store], None] | None = None,
        *,
        command: str,
    ) -> StudyResults:
        """Evaluate into OUT, and save the results there; a folder of another command, or of a study, is refused."""
        from vitscope.api import evaluate
        from vitscope.core.progress import shown
        from vitscope.pipeline.engines import Local, Ray
        from vitscope.pipeline.store import Store

        Store(out, f"vitscope {command}")
        engine = Ray(self.processes if self.processes > 1 else None) if self.engine == "ray" else Local(self.processes)
        results = evaluate(
            specs,
            datasets,
            analyses,
            store=out,
            engine=engine,
            device=models.device,
            seed=models.seed,
            skip_limit=self.skip_limit,
            workers=self.workers,
            settings={"analyses": {a.name: a.model_dump(mode="json") for a in analyses}, "seed": models.seed},
            export=export,
            progress=shown,
        )
        results.save(out)
        return results

    def conclude(self, results: StudyResults, out: Path, tables: Sequence[RenderableType]) -> None:
        conclude(results, out, tables, page=self.page, figures=self.figures, width=self.width)


def conclude(
    results: StudyResults,
    out: Path,
    tables: Sequence[RenderableType] = (),
    *,
    page: bool,
    figures: Figures,
    width: FigureWidth = None,
) -> None:
    """Print what came of a run and write the page and figures; exit status 2 if something could not be done."""
    from rich.console import Console

    from vitscope.core.say import level, show

    show(*tables)
    for note in results.notes:
        say(f"note: {note}", style="yellow")
    for name, reason in results.skipped.items():
        say(f"skipped: {name} {reason}", style="yellow")
    for part in results.coverage:
        if not part.complete:
            say(f"incomplete: {part.model} saw {part.seen} of {part.planned} ({part.dataset})", style="yellow")
    say(f"results: {out / 'results.parquet'} (and results.csv, maps.safetensors, provenance.json)")
    if page:
        say(f"page: {results.write_report(out / 'report.html', images=figures != 'none')}")
    if figures == "all":
        with Console(quiet=level() == "quiet").status("drawing the figures"):
            written = results.write_figures(out / "figures", width)
        say(f"figures: {len(written)} files in {out / 'figures'}")
    elif figures == "page":
        say("figures for papers: the same again with --figures all; nothing else is made anew")
    if results.failures:
        for failure in results.failures:
            say(f"failed: {failure}", style="bold red")
        raise VitscopeError(f"{len(results.failures)} parts of the work could not be done; the rest is in {out}")
