"""`vitscope tasks`: what models are good for, at every layer, and the table of best layers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from rich.console import Console

from vitscope.data.davis import open_videos
from vitscope.data.retrieval import open_retrieval
from vitscope.data.spair import open_keypoints
from vitscope.errors import VitscopeError
from vitscope.models.backbone import Backbone
from vitscope.models.registry import load
from vitscope.progress import shown
from vitscope.report.attention_figures import slug_of
from vitscope.report.tasks_figures import draw_tasks
from vitscope.results import Results, make_folder, write_atomically
from vitscope.tasks.labelled import open_labelled
from vitscope.tasks.pooled import IN_MEMORY, bytes_in_memory
from vitscope.tasks.study import TaskConfig, TaskData, study_tasks
from vitscope.tasks.table import best_layers
from vitscope.tasks.table_formats import to_csv, to_latex, to_markdown, to_terminal


def tasks(
    *models: str,
    knn: Path | None = None,
    retrieval: list[Path] | None = None,
    davis: Path | None = None,
    spair: Path | None = None,
    protocol: Literal["corrected", "paper", "both"] = "corrected",
    probe: bool = True,
    limit: int | None = None,
    masks: bool = True,
    features: Path | None = None,
    out: Path = Path("runs/tasks"),
    arch: str | None = None,
    size: int | None = None,
    device: str = "auto",
    seed: int = 0,
    download: bool = False,
) -> None:
    """Downstream tasks at every layer, and the best layer of every model for each of them.

    Each picture goes through each network once for all layers. Writes numbers (results.parquet, results.csv), where
    they came from (provenance.json), the table of best layers (table.csv, table.md, table.tex), figures and pictures
    (PNG, curves also as SVG), and predicted masks (masks/MODEL/layer-NN/SEQUENCE/*.png) to OUT.

    Parameters
    ----------
    models
        Names from `vitscope models`, timm names, random:ARCH (untrained), a model card (TOML) or a weights file.
    knn
        Labelled pictures for k-NN and linear probe: a folder with train/ and val/ (or test/), each with one subfolder
        per class, such as ImageNet; or just one subfolder per class, a seeded fifth of which is then asked about.
    retrieval
        ROxford5k or RParis6k (gnd_*.pkl and jpg/), or a folder with one subfolder per individual; may be given several
        times.
    davis
        Videos: DAVIS-2017 (JPEGImages, Annotations, ImageSets), or a folder of frames with mask.png for the first.
    spair
        Keypoints: SPair-71k (PairAnnotation, JPEGImages, Layout), or a JSON file of pairs.
    protocol
        corrected (default), paper (as published, its mistakes included, to compare with published numbers), or both.
        They differ for retrieval, video and keypoints.
    probe
        Fit linear probes too, where there are labelled pictures.
    limit
        At most this many labelled pictures in each of train and val, videos, and keypoint pairs of each category (a
        seeded choice; the first videos). Retrieval is always complete.
    masks
        Write predicted masks.
    features
        Folder for the pooled features of labelled pictures, which the next run uses again. Without it they are held in
        memory, or in OUT/features if they take more than 256 MB.
    out
        Folder for everything that is written.
    arch
        Architecture (timm name) of a weights file given as model.
    size
        Input size in pixels, if not the model's own; position embeddings are resampled.
    device
        cpu, cuda, cuda:N, mps, or auto.
    seed
        Seed of untrained networks, of choices and divisions of pictures, and of resampling for intervals.
    download
        Fetch missing weights from the hub. Nothing is fetched otherwise.
    """
    if not models:
        raise VitscopeError("name at least one model: `vitscope models` lists them")
    if not (knn or retrieval or davis or spair):
        raise VitscopeError(
            "say what to do: --knn DIR, --retrieval DIR, --davis DIR or --spair DIR, or several of them"
        )
    make_folder(out)
    console = Console()
    data = open_data(knn=knn, retrieval=retrieval or [], davis=davis, spair=spair, limit=limit, seed=seed)
    backbones = [load(m, arch=arch, size=size, device=device, seed=seed, download=download) for m in models]
    results, evidence = Results(), []
    for backbone in backbones:
        config = TaskConfig(
            protocols=("corrected", "paper") if protocol == "both" else (protocol,),
            probe=probe,
            seed=seed,
            masks=out / "masks" / slug_of(backbone.title) if masks else None,
            store=features or (out / "features" if _is_large(backbone, data) else None),
        )
        found, seen = study_tasks(backbone, data, config, progress=shown)
        results.join(found)
        results.save(out)  # what is done stays, whatever happens to the next model
        evidence.append(seen)
    table = best_layers(results.table)
    for name, text in (("table.csv", to_csv), ("table.md", to_markdown), ("table.tex", to_latex)):
        write_atomically(out / name, lambda path, text=text: path.write_text(text(table), encoding="utf-8"))  # type: ignore[misc]
    written = draw_tasks(results, data, evidence, out)
    if table.columns:
        console.print(to_terminal(table, console.width))
    for note in results.notes:
        console.print(f"note: {note}", style="yellow", highlight=False)
    for picture, reason in results.skipped.items():
        console.print(f"skipped: {picture} {reason}", style="yellow", highlight=False)
    files = "results.parquet, results.csv, provenance.json, table.csv, table.md, table.tex"
    console.print(f"wrote {files} and {len(written)} figures to {out}", highlight=False)
    if data.videos and masks:
        console.print(f"wrote the predicted masks of every layer to {out / 'masks'}", highlight=False)


def _is_large(backbone: Backbone, data: TaskData) -> bool:
    pictures = len(data.labelled.train) + len(data.labelled.test) if data.labelled else 0
    return bytes_in_memory(backbone, pictures) > IN_MEMORY


def open_data(
    *,
    knn: Path | None,
    retrieval: list[Path],
    davis: Path | None,
    spair: Path | None,
    limit: int | None = None,
    seed: int = 0,
) -> TaskData:
    """Open and check everything before long work starts."""
    videos = open_videos(davis) if davis else None
    keypoints = open_keypoints(spair) if spair else None
    if limit is not None:
        videos = replace(videos, sequences=videos.sequences[: max(limit, 1)]) if videos else None
        keypoints = keypoints.limit(limit, seed) if keypoints else None
    return TaskData(
        labelled=open_labelled(knn, limit=limit, seed=seed) if knn else None,
        retrieval=tuple(open_retrieval(path) for path in retrieval),
        videos=videos,
        keypoints=keypoints,
    )
