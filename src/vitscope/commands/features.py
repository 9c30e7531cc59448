"""`vitscope features`: what models represent, and how alike they are; `vitscope extract`: a feature store."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rich.console import Console

from vitscope.errors import VitscopeError
from vitscope.features.clustering import SEEDS
from vitscope.features.extract import extract as extract_features
from vitscope.features.pictures import gather
from vitscope.features.study import features as study
from vitscope.models.registry import load
from vitscope.progress import shown
from vitscope.report.features_figures import draw_features
from vitscope.report.features_summary import summarise_features
from vitscope.results import make_folder


def features(
    *models: str,
    images: Path | None = None,
    labels: Path | None = None,
    masks: Path | None = None,
    imagenet50: bool = False,
    dense: bool = False,
    limit: int | None = None,
    out: Path = Path("runs/features"),
    protocol: Literal["corrected", "paper"] = "corrected",
    seeds: int = SEEDS,
    arch: str | None = None,
    size: int | None = None,
    device: str = "auto",
    seed: int = 0,
    workers: int = 0,
    skip_limit: int = 50,
    download: bool = False,
) -> None:
    """What models represent at every layer, and how alike they are.

    Similarity of all layers of all models (CKA), what the residual stream carries, clusters against classes and
    objects, and how many dimensions features use. Writes tables (results.parquet, results.csv, pairs.parquet), arrays
    (maps.safetensors), where they came from (provenance.json) and figures (PNG and SVG) to OUT. What each model's pass
    computed stays in OUT/records: run again with more models, and only the new ones are run.

    Parameters
    ----------
    models
        Names from `vitscope models`, timm names, random:ARCH (untrained), a model card (TOML) or a weights file.
    images
        Folder of pictures, flat or in class folders (then the folders are the classes), or a text file of paths.
    labels
        Classes of the pictures, for clusters: a CSV file of `path,class` lines, paths as below the image folder.
    masks
        Objects or parts, for clusters of regions: COCO or PartImageNet annotations (JSON, or the dataset's folder), or
        a folder with images/ and masks/. Masks that come with their pictures need no --images.
    imagenet50
        IMAGES is ImageNet's training folder: take the study's subset of 50 classes.
    dense
        Pool regions from tiles at twice the size, as published; several forward passes per picture.
    limit
        Study at most this many pictures (a seeded choice, balanced over classes).
    out
        Folder for everything that is written.
    protocol
        corrected, or paper for numbers comparable with the published ones (blocks of 8 in class order, scaled Grams,
        clusters of raw features).
    seeds
        Runs of k-means, each the best of ten initialisations; their spread is shown.
    arch
        Architecture (timm name) of a weights file given as model.
    size
        Input size in pixels, if not the model's own; position embeddings are resampled.
    device
        cpu, cuda, cuda:N, mps, or auto.
    seed
        Seed of untrained networks and of the choice and order of pictures.
    workers
        Decode pictures in this many processes instead of threads.
    skip_limit
        Stop when more pictures than this cannot be read.
    download
        Fetch missing weights from the hub. Nothing is fetched otherwise.
    """
    if not models:
        raise VitscopeError("name at least one model: `vitscope models` lists them")
    if images is None and masks is None:
        raise VitscopeError("say which pictures to look at: --images DIR, or --masks ANNOTATIONS")
    if seeds < 1:
        raise VitscopeError(f"--seeds {seeds} leaves nothing to cluster with: use 1 or more")
    make_folder(out)
    results = study(
        models,
        images,
        labels=labels,
        masks=masks,
        imagenet50=imagenet50,
        dense=dense,
        limit=limit,
        protocol=protocol,
        out=out,
        seeds=seeds,
        arch=arch,
        size=size,
        device=device,
        seed=seed,
        workers=workers,
        skip_limit=skip_limit,
        download=download,
        progress=shown,
    )
    written = draw_features(results, out)
    console = Console()
    for table in summarise_features(results):
        console.print(table)
    for note in results.notes:
        console.print(f"note: {note}", style="yellow", highlight=False)
    _tell_skipped(console, results.skipped)
    files = ["results.parquet", "results.csv", "pairs.parquet", "maps.safetensors", "provenance.json"]
    console.print(f"wrote {', '.join(files)} and {len(written)} figures to {out}", highlight=False)


def extract(
    model: str,
    *,
    images: Path,
    out: Path,
    labels: Path | None = None,
    limit: int | None = None,
    pooling: list[Literal["cls", "mean", "max", "tokens"]] | None = None,
    dtype: Literal["float16", "float32"] = "float16",
    arch: str | None = None,
    size: int | None = None,
    device: str = "auto",
    seed: int = 0,
    batch_size: int | None = None,
    workers: int = 0,
    skip_limit: int = 50,
    download: bool = False,
) -> None:
    """Write the features of all layers of a model for every picture to a store on disk.

    Interrupted, it continues where it was when started again; a store of other pictures or other weights is never mixed
    with this one. Read it with `vitscope.features.store.FeatureStore(OUT)`: `.features("cls", layer)`, `.blocks(...)`
    if it does not fit in memory; `manifest.parquet` names the picture of every row.

    Parameters
    ----------
    model
        A name from `vitscope models`, a timm name, random:ARCH (untrained), a model card (TOML) or a weights file.
    images
        Folder of pictures, flat or in class folders, or a text file of paths.
    out
        Folder of the store.
    labels
        Classes of the pictures: a CSV file of `path,class` lines.
    limit
        At most this many pictures (a seeded choice, balanced over classes).
    pooling
        What to keep of each layer: cls, mean or max (of the spatial tokens), or tokens (all of them: large). May be
        given several times; cls and mean if not given.
    dtype
        float16 halves the store; float32 keeps every digit.
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
    skip_limit
        Stop when more pictures than this cannot be read.
    download
        Fetch missing weights from the hub. Nothing is fetched otherwise.
    """
    samples = gather(images, labels=labels)
    samples = samples.limit(limit, seed) if limit else samples
    make_folder(out)
    backbone = load(model, arch=arch, size=size, device=device, seed=seed, download=download)
    store = extract_features(
        backbone,
        samples,
        out,
        poolings=pooling or ("cls", "mean"),
        dtype=dtype,
        batch_size=batch_size,
        workers=workers,
        skip_limit=skip_limit,
        progress=shown,
    )
    console = Console()
    about = store.contents
    for note in samples.notes:
        console.print(f"note: {note}", style="yellow", highlight=False)
    if pooling and "cls" in pooling and "cls" not in about.poolings:
        console.print(f"note: {backbone.title} has no CLS token: there are no cls features", style="yellow")
    _tell_skipped(console, store.skipped)
    size_mb = sum(path.stat().st_size for path in out.glob(f"{about.digest}-*.safetensors")) / 1e6
    what = f"{' and '.join(about.poolings)} features of {len(store)} pictures, {about.layers} layers x {about.width}"
    how = f"{about.dtype}, {size_mb:.1f} MB, {about.shards} shard{'s' if about.shards > 1 else ''}"
    console.print(f"wrote {what} ({how}) to {out}", highlight=False)


def _tell_skipped(console: Console, skipped: dict[str, str]) -> None:
    for picture, reason in skipped.items():
        console.print(f"skipped: {picture} {reason}", style="yellow", highlight=False)
