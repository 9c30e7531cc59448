"""`vitscope attention`: the whole attention study on somebody's pictures."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from vitscope.attention.study import attention as study
from vitscope.errors import VitscopeError
from vitscope.models.registry import load
from vitscope.progress import shown
from vitscope.report.attention_figures import draw_attention
from vitscope.report.attention_show import draw_picture
from vitscope.report.attention_summary import summarise
from vitscope.results import make_folder


def attention(
    *models: str,
    images: Path | None = None,
    masks: Path | None = None,
    limit: int | None = None,
    out: Path = Path("runs/attention"),
    show: list[Path] | None = None,
    arch: str | None = None,
    size: int | None = None,
    device: str = "auto",
    seed: int = 0,
    batch_size: int | None = None,
    workers: int = 0,
    download: bool = False,
) -> None:
    """Where the heads of models look, how far, and what kind of head each is.

    Writes tables (results.parquet, results.csv), maps (maps.safetensors), where they came from (provenance.json) and
    figures (PNG and SVG) to OUT.

    Parameters
    ----------
    models
        Names from `vitscope models`, timm names, random:ARCH (untrained), a model card (TOML) or a weights file.
    images
        Folder of pictures, flat or in class folders.
    masks
        Object masks for saliency: COCO or PartImageNet annotations (JSON, or the dataset's folder), or a folder with
        images/ and masks/. The annotated pictures are then the ones studied.
    limit
        Study at most this many pictures (a seeded choice, balanced over classes).
    out
        Folder for everything that is written.
    show
        Draw this picture beside its attention maps, for every model; may be given several times.
    arch
        Architecture (timm name) of a weights file given as model.
    size
        Input size in pixels, if not the model's own; position embeddings are resampled.
    device
        cpu, cuda, cuda:N, mps, or auto.
    seed
        Seed of untrained networks and of the choice of pictures.
    batch_size
        Pictures at a time; chosen by the number of tokens if not given.
    workers
        Decode pictures in this many processes instead of threads.
    download
        Fetch missing weights from the hub. Nothing is fetched otherwise.
    """
    if not models:
        raise VitscopeError("name at least one model: `vitscope models` lists them")
    if images is None and masks is None and not show:
        raise VitscopeError("say which pictures to look at: --images DIR, --masks ANNOTATIONS or --show PICTURE")
    make_folder(out)
    console = Console()
    backbones = [load(m, arch=arch, size=size, device=device, seed=seed, download=download) for m in models]
    for picture in show or []:
        for path in draw_picture(backbones, picture, out):
            console.print(f"wrote {path}", highlight=False)
    if images is None and masks is None:
        return
    results = study(
        backbones,
        images,
        masks=masks,
        limit=limit,
        seed=seed,
        batch_size=batch_size,
        workers=workers,
        progress=shown,
    )
    results.save(out)
    written = draw_attention(results, out)
    console.print(summarise(results))
    for note in results.notes:
        console.print(f"note: {note}", style="yellow", highlight=False)
    for picture_id, reason in results.skipped.items():
        console.print(f"skipped: {picture_id} {reason}", style="yellow", highlight=False)
    files = ["results.parquet", "results.csv", "maps.safetensors", "provenance.json"]
    console.print(f"wrote {', '.join(files)} and {len(written)} figures to {out}", highlight=False)
