"""`vitscope attention`: the whole attention analysis on somebody's images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from vitscope.commands.options import Limit, ModelOptions, RunOptions
from vitscope.core.errors import VitscopeError

if TYPE_CHECKING:
    from vitscope.data.dataset import Dataset


def attention(
    *models: str,
    images: Path | None = None,
    masks: Path | None = None,
    limit: Limit | None = None,
    importance: bool = False,
    mass: Annotated[float | None, Parameter(validator=Number(gt=0, lt=1))] = None,
    out: Path = Path("runs/attention"),
    show: list[Path] | None = None,
    model_options: ModelOptions = ModelOptions(),  # noqa: B008
    run_options: RunOptions = RunOptions(),  # noqa: B008
) -> None:
    """Where the heads of models look, how far, and what kind of head each is.

    Writes tables (results.parquet, results.csv), maps (maps.safetensors), where they came from (provenance.json), the
    page (report.html) and, with --figures all, figures to OUT. The same command again goes on where it was interrupted.

    Parameters
    ----------
    models
        Names from `vitscope models`, timm names, random:NAME (untrained), a model card (TOML) or a weights file.
    images
        Folder of images, flat or in class folders.
    masks
        Object masks for saliency: COCO or PartImageNet annotations (JSON, or the dataset's folder), or a folder with
        images/ and masks/. The annotated images are then the ones studied.
    limit
        Study at most this many images (a seeded choice, balanced over classes).
    importance
        Ask also how much each head matters (its output replaced by its mean over images), on at most 64 of the images:
        about half as many further passes per image as a layer has heads.
    mass
        Share of a map that the mask of saliency's IoU must hold, instead of the protocols' 0.6; its rows say so.
    out
        Folder for everything that is written.
    show
        Draw this image beside its attention maps, for every model; may be given several times.
    """
    from vitscope.attention.analysis import Attention
    from vitscope.attention.saliency import Saliency
    from vitscope.attention.writes import HeadWrites
    from vitscope.core.analysis import Analysis
    from vitscope.data import openers
    from vitscope.data.dataset import ImageSet
    from vitscope.report.attention_summary import summarise
    from vitscope.tasks.head_importance import HeadImportance

    if images is None and masks is None and not show:
        raise VitscopeError("say which images to look at: --images DIR, --masks ANNOTATIONS or --show IMAGE")
    specs = model_options.specs(models)
    if show:
        from vitscope.report.attention_show import draw_images
        from vitscope.report.style import figure_width

        with figure_width(run_options.width):
            draw_images(specs, show, out / "figures", model_options.device)
    datasets: list[Dataset] = []
    if masks is not None:
        masked = openers.masks(masks, images=images, limit=limit, seed=model_options.seed)
        datasets = [ImageSet(masked.title, masked.samples, masked.seed), masked]
    elif images is not None:
        datasets = [openers.images(images, limit=limit, seed=model_options.seed)]
    if not datasets:
        return
    analyses: list[Analysis] = [Attention(), HeadWrites(), Saliency() if mass is None else Saliency(mass=mass)]
    if importance:
        analyses.append(HeadImportance())
    results = run_options.run(specs, datasets, analyses, out, model_options, command="attention")
    run_options.conclude(results, out, [summarise(results)])
