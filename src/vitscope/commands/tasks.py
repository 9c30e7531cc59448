"""`vitscope tasks`: what models are good for, at every layer, and the table of best layers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from vitscope.commands.options import Limit, ModelOptions, RunOptions
from vitscope.core.errors import VitscopeError


def tasks(
    *models: str,
    knn: list[Path] | None = None,
    retrieval: list[Path] | None = None,
    davis: list[Path] | None = None,
    spair: list[Path] | None = None,
    segmentation: list[Path] | None = None,
    discovery: list[Path] | None = None,
    conflict: list[Path] | None = None,
    bank: Path | None = None,
    protocol: Literal["corrected", "paper", "both"] = "corrected",
    probe: bool = True,
    robustness: bool = False,
    limit: Limit | None = None,
    masks: bool = False,
    dense: bool = True,
    out: Path = Path("runs/tasks"),
    model_options: ModelOptions = ModelOptions(),  # noqa: B008
    run_options: RunOptions = RunOptions(),  # noqa: B008
) -> None:
    """Downstream tasks at every layer, and the best layer of every model for each of them.

    Each image goes through each network once for all layers. Writes numbers (results.parquet, results.csv), where they
    came from (provenance.json), the table of best layers (table.csv, table.md, table.tex), the page and, if asked,
    figures to OUT.
    The same command again computes only what is new. Data options may be given several times.

    Parameters
    ----------
    models
        Names from `vitscope models`, timm names, random:NAME (untrained), a model card (TOML) or a weights file.
    knn
        Labelled images for k-NN and linear probe: a folder with train/ and val/ (or test/), each with one subfolder
        per class, such as ImageNet; or just one subfolder per class, a seeded fifth of which is then asked about.
    retrieval
        ROxford5k or RParis6k (gnd_*.pkl and jpg/), or a folder with one subfolder per individual.
    davis
        Videos: DAVIS-2017 (JPEGImages, Annotations, ImageSets), or a folder of frames with mask.png for the first.
    spair
        Keypoints: SPair-71k (PairAnnotation, JPEGImages, Layout), or a JSON file of pairs.
    segmentation
        Images with a class for every pixel: Pascal VOC, ADE20K, or masks by category (COCO, PartImageNet, images/ and
        masks/), a seeded fifth of which is then asked about.
    discovery
        Images with object masks, for discovery without labels: COCO, PartImageNet, or images/ and masks/.
    conflict
        Images with the shape of one class and the texture of another: a folder with cue-conflict/ (names such as
        cat1-snake2.png, as Geirhos et al. have them) and train/ in class folders; or such images, and a --bank.
    bank
        Labelled images in class folders, by which images of --conflict are recognised.
    protocol
        corrected (default), paper (as published, its mistakes included, to compare with published numbers), or both.
        They differ for the best five of k-NN, retrieval, video and keypoints.
    probe
        Fit linear probes too, where there are labelled images.
    robustness
        Ask the labelled task about corrupted images too (six corruptions, three strengths: 18 further passes).
    limit
        At most this many labelled images in each of train and val, queries, videos, images with masks, and keypoint
        pairs of each category (a seeded choice; the first videos).
    masks
        Write predicted masks of all frames and layers: masks/MODEL/PROTOCOL/layer-NN/SEQUENCE/*.png.
    dense
        Cut frames of videos into tiles at twice the input, as in the paper; --no-dense squeezes each frame into one
        input, which is several times quicker and coarser.
    out
        Folder for everything that is written.
    """
    from rich.console import Console

    from vitscope.core.analysis import Analysis
    from vitscope.core.files import write_text
    from vitscope.data import openers
    from vitscope.data.dataset import Dataset
    from vitscope.pipeline.exports import export_masks
    from vitscope.pipeline.registry import ANALYSES, in_protocols
    from vitscope.report.table_formats import to_csv, to_latex, to_markdown, to_terminal

    given = {"labelled": knn, "retrieval": retrieval, "video": davis, "keypoints": spair}
    given |= {"segmentation": segmentation, "masks": discovery, "conflict": conflict}
    if not any(given.values()):
        raise VitscopeError(
            "say what to do: --knn DIR, --retrieval DIR, --davis DIR, --spair DIR, --segmentation DIR, "
            "--discovery DIR or --conflict DIR, or several of them"
        )
    specs = model_options.specs(models)
    seed = model_options.seed
    datasets: list[Dataset] = [
        openers.OPENERS[kind](path, limit=limit, seed=seed, **({"bank": bank} if kind == "conflict" else {}))
        for kind, paths in given.items()
        for path in paths or ()
    ]
    wanted = {"seed": seed, "masks": masks, "dense": dense}
    protocols = ("corrected", "paper") if protocol == "both" else (protocol,)
    analyses: list[Analysis] = []
    for name, task in ANALYSES.items():
        left_out = {"probe": not probe, "robustness": not robustness}
        if task.domain == "why" and not left_out.get(name, task.asked_for):
            settings = {key: value for key, value in wanted.items() if key in task.model_fields}
            analyses += in_protocols(task, protocols, **settings)
    export = (lambda plan, store: export_masks(plan, store, out / "masks")) if masks else None
    results = run_options.run(specs, datasets, analyses, out, model_options, export, command="tasks")
    table = results.best_layers()
    for file, text in (("table.csv", to_csv), ("table.md", to_markdown), ("table.tex", to_latex)):
        write_text(out / file, text(table))
    shown = [to_terminal(table, Console().width)] if table.columns else []
    run_options.conclude(results, out, shown)
