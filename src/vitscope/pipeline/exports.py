"""Files for other programs, from what passes left in the store."""

from __future__ import annotations

from pathlib import Path

from vitscope.core.files import file_names
from vitscope.data.dataset import ImageSet
from vitscope.data.davis import VideoSet
from vitscope.features.extraction import Extraction, write_index
from vitscope.pipeline.found import StoredFound
from vitscope.pipeline.plan import Plan
from vitscope.pipeline.store import Store
from vitscope.tasks.video_segmentation import Video, write_masks


def export_features(plan: Plan, store: Store) -> None:
    """Say in the store's folder where the features of an `Extraction` lie: `load_features` reads them."""
    dataset, models = None, {}
    for task in plan.tasks:
        if isinstance(task.analysis, Extraction) and store.has_outcome(task.digest):
            dataset, spec = plan.datasets[task.dataset], plan.models[task.model]
            key, shards = task.keys["images"]["pooled"]
            files = [str(store.state_path(key, shard).relative_to(store.root)) for shard in range(shards)]
            shape = {"depth": spec.shape.depth, "width": spec.shape.width, "dtype": task.analysis.dtype}
            models[spec.title] = {"files": files, **shape}
    if isinstance(dataset, ImageSet):
        write_index(store.root, dataset, models)


def export_masks(plan: Plan, store: Store, folder: Path) -> None:
    """Predicted masks as the official DAVIS evaluation takes them: MODEL/PROTOCOL/layer-NN/SEQUENCE/*.png."""
    names = file_names(spec.title for spec in plan.models)
    for task in plan.tasks:
        dataset = plan.datasets[task.dataset]
        if isinstance(task.analysis, Video) and task.analysis.masks and isinstance(dataset, VideoSet):
            place = folder / names[plan.models[task.model].title] / task.analysis.protocol
            write_masks(place, dataset, StoredFound(plan, task, store).states())
