"""`vitscope features`: what models represent, and how alike they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vitscope.commands.options import Limit, ModelOptions, RunOptions
from vitscope.core.errors import BadData, VitscopeError, shorten

if TYPE_CHECKING:
    from vitscope.data.dataset import Dataset

MOST_SEEDS = 100


def features(
    *models: str,
    images: Path | None = None,
    labels: Path | None = None,
    masks: Path | None = None,
    imagenet50: bool = False,
    dense: bool = False,
    limit: Limit | None = None,
    out: Path = Path("runs/features"),
    protocol: Literal["corrected", "paper", "both"] = "corrected",
    seeds: int = 5,
    model_options: ModelOptions = ModelOptions(),  # noqa: B008
    run_options: RunOptions = RunOptions(),  # noqa: B008
) -> None:
    """What models represent at every layer, and how alike they are.

    Similarity of all layers of all models (CKA, also calibrated by chance), what the residual stream carries, clusters
    against classes and objects, how many dimensions features use, what becomes of tokens (outliers, likeness,
    position), and a few images in the colours of their features. Writes tables (results.parquet, results.csv,
    pairs.parquet), arrays (maps.safetensors), where they came from (provenance.json), the page and, if asked, figures
    to OUT. What
    each model's pass computed stays there: run again with more models, and only the new ones are run.

    Parameters
    ----------
    models
        Names from `vitscope models`, timm names, random:NAME (untrained), a model card (TOML) or a weights file.
    images
        Folder of images, flat or in class folders (then the folders are the classes), or a text file of paths.
    labels
        Classes of the images, for clusters: a CSV file of `path,class` lines, paths as below the image folder.
    masks
        Objects or parts, for clusters of regions: COCO or PartImageNet annotations (JSON, or the dataset's folder), or
        a folder with images/ and masks/. Masks that come with their images need no --images.
    imagenet50
        IMAGES is ImageNet's training folder: take the study's subset of 50 classes.
    dense
        Pool regions from tiles at twice the size, as published; several forward passes per image.
    limit
        Study at most this many images (a seeded choice, balanced over classes).
    out
        Folder for everything that is written.
    protocol
        corrected, paper for numbers comparable with the published ones (blocks of 8 in class order, scaled Grams,
        clusters of raw features), or both.
    seeds
        Runs of k-means, each the best of ten initialisations; their spread is shown.
    """
    from vitscope.core.analysis import Analysis
    from vitscope.data import openers
    from vitscope.data.dataset import ImageSet, MaskSet
    from vitscope.features.analysis import Features
    from vitscope.features.calibration import Calibration
    from vitscope.features.hsic import LEAST
    from vitscope.features.objects import Objects
    from vitscope.features.pictures import Pictures
    from vitscope.features.token_analysis import Tokens
    from vitscope.report.features_summary import summarise_features

    if images is None and masks is None:
        raise VitscopeError("say which images to look at: --images DIR, or --masks ANNOTATIONS")
    if not 1 <= seeds <= MOST_SEEDS:
        raise VitscopeError(f"--seeds {shorten(seeds, 40)} runs of k-means cannot be done: use 1 to {MOST_SEEDS}")
    if dense and masks is None:
        raise BadData("dense extraction pools the regions of masks, and there are no masks: give --masks")
    specs = model_options.specs(models)
    seed = model_options.seed
    found: dict[str, Any] = {"labels": labels, "limit": limit, "seed": seed}
    datasets: list[Dataset] = []
    if images is None:
        assert masks is not None
        masked = openers.masks(masks, **found)
        datasets = [ImageSet(masked.title, masked.samples, seed), masked]
    else:
        first = openers.images(images, masks=masks, imagenet50=imagenet50, **found)
        plain = ImageSet(first.title, first.samples, seed)
        datasets = [plain, first] if isinstance(first, MaskSet) else [plain]
    if datasets[0].count < LEAST:
        raise BadData(f"{datasets[0].count} images are too few to compare features: give at least {LEAST}")
    analyses: list[Analysis] = [Tokens(), Calibration(), Pictures()]
    for name in ("corrected", "paper") if protocol == "both" else (protocol,):
        analyses.append(Features(protocol=name, cluster_seeds=seeds))
        analyses.append(Objects(protocol=name, cluster_seeds=seeds, dense=dense))
    results = run_options.run(specs, datasets, analyses, out, model_options, command="features")
    run_options.conclude(results, out, summarise_features(results))
