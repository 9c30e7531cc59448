"""From a path to a dataset: one function for each kind, and one that recognises which is meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from vitscope.core.errors import BadData
from vitscope.core.reading import read_json, user_path
from vitscope.data.conflict import BANK, STIMULI, ConflictSet, open_conflict
from vitscope.data.dataset import Dataset, ImageSet, LabelledSet, MaskSet
from vitscope.data.davis import VideoSet, open_videos
from vitscope.data.folders import open_images
from vitscope.data.imagenet50 import open_imagenet50
from vitscope.data.keypoints import KeypointSet
from vitscope.data.labelled import TEST, TRAIN, open_labelled
from vitscope.data.labels import Labels, with_labels, with_masks
from vitscope.data.masks import open_masks
from vitscope.data.partimagenet import annotation_files, open_partimagenet
from vitscope.data.retrieval import open_retrieval
from vitscope.data.revisited import GROUND_TRUTH, RetrievalSet
from vitscope.data.samples import SampleList
from vitscope.data.segmentation import SegmentationSet, open_segmentation
from vitscope.data.spair import open_keypoints

Place = Path | str
Opened = TypeVar("Opened", bound=Dataset)


def images(
    path: Place | SampleList,
    *,
    labels: Labels | None = None,
    masks: Place | None = None,
    imagenet50: bool = False,
    examples: Sequence[str] = (),
    title: str = "",
    limit: int | None = None,
    seed: int = 0,
) -> ImageSet:
    """Images for attention and features: a folder (class subfolders are labels), a text file of paths, or a list.

    labels: a CSV of `path,class` lines, or a mapping. masks: regions of these same images; then it is a `MaskSet`.
    imagenet50: `path` is ImageNet's training folder, of which the study's subset of 50 classes is taken.
    examples: names of a few that the page shows one by one. limit: at most so many (seeded, balanced over classes).
    seed: of that choice and of the order.
    """
    opener = open_imagenet50 if imagenet50 else open_images
    samples = path if isinstance(path, SampleList) else opener(path)
    if masks is not None:
        samples = with_masks(samples, masks, None if isinstance(path, SampleList) else path)
    if labels is not None:
        samples = with_labels(samples, labels)
    kind = ImageSet if masks is None else MaskSet
    name = "ImageNet-50" if imagenet50 else _name(path)
    return _limited(kind(title or name, samples, seed).with_examples(examples), limit, seed)


def masks(
    path: Place,
    *,
    images: Place | None = None,
    labels: Labels | None = None,
    per_supercategory: int | None = None,
    title: str = "",
    limit: int | None = None,
    seed: int = 0,
) -> MaskSet:
    """Images with object or part masks: COCO, PartImageNet, or images/ and masks/ with files of the same names.

    images: where they are, if the layout does not say it. per_supercategory: PartImageNet's subsets of the study.
    """
    if per_supercategory is None:
        samples = open_masks(path, images)
    else:
        samples = open_partimagenet(path, per_supercategory=per_supercategory)
    if labels is not None:
        samples = with_labels(samples, labels)
    return _limited(MaskSet(title or _name(path), samples, seed), limit, seed)


def labelled(path: Place, *, title: str = "", limit: int | None = None, seed: int = 0) -> LabelledSet:
    """train/ and val/ (or test/) in class folders; or one subfolder per class, a seeded fifth of which is asked."""
    return _titled(open_labelled(path, limit=limit, seed=seed), title)


def retrieval(path: Place, *, title: str = "", limit: int | None = None, seed: int = 0) -> RetrievalSet:
    """ROxford5k or RParis6k (gnd_*.pkl and jpg/), or one subfolder per individual. limit: queries."""
    return _titled(_limited(open_retrieval(path), limit, seed), title)


def video(path: Place, *, title: str = "", limit: int | None = None, seed: int = 0) -> VideoSet:
    """DAVIS (JPEGImages, Annotations, ImageSets), or a folder of frames with mask.png for the first."""
    return _titled(_limited(open_videos(path), limit, seed), title)


def keypoints(path: Place, *, title: str = "", limit: int | None = None, seed: int = 0) -> KeypointSet:
    """SPair-71k, or a JSON file of pairs. limit: pairs of each category."""
    return _titled(_limited(open_keypoints(path), limit, seed), title)


def segmentation(
    path: Place, *, images: Place | None = None, title: str = "", limit: int | None = None, seed: int = 0
) -> SegmentationSet:
    """Images with a class for every pixel: VOC, ADE20K, or masks by category (COCO, PartImageNet, a mask folder).

    Masks are divided: a seeded fifth of the images is asked about. limit: images of each of the two lists.
    """
    return _titled(_limited(open_segmentation(path, images=images, seed=seed), limit, seed), title)


def conflict(
    path: Place, *, bank: Place | None = None, title: str = "", limit: int | None = None, seed: int = 0
) -> ConflictSet:
    """cue-conflict/ and train/; or class folders of shape1-texture2.png, as Geirhos et al. have them, with a bank.

    bank: labelled images of the same classes, in class folders. limit: images of each of the two lists.
    """
    return _titled(_limited(open_conflict(path, bank), limit, seed), title)


OPENERS: dict[str, Callable[..., Dataset]] = {
    "images": images,
    "masks": masks,
    "labelled": labelled,
    "retrieval": retrieval,
    "video": video,
    "keypoints": keypoints,
    "segmentation": segmentation,
    "conflict": conflict,
}


def open_dataset(path: Place, *, title: str = "", limit: int | None = None, seed: int = 0) -> Dataset:
    """Whatever is at a path, recognised by its layout; a folder that looks like nothing else is a folder of images."""
    return OPENERS[recognise(user_path(path))](path, title=title, limit=limit, seed=seed)


def recognise(root: Path) -> str:
    """The kind of dataset at a path."""
    if not root.exists():
        raise BadData(f"{root} does not exist: check the path")
    if root.is_file():
        return "images" if root.suffix.lower() != ".json" else _kind_of_json(root)

    def has(*names: str) -> bool:
        return all((root / name).is_dir() for name in names)

    if has("PairAnnotation"):
        return "keypoints"
    if has("SegmentationClass") or has("images/training", "annotations/training"):
        return "segmentation"
    if has("JPEGImages", "Annotations") or (root / "mask.png").is_file():
        return "video"
    if any(True for _ in root.glob(GROUND_TRUTH)):
        return "retrieval"
    if has("images", "masks") or list((root / "annotations").glob("instances_*.json")) or annotation_files(root):
        return "masks"
    if any(has(train, test) for train in TRAIN for test in TEST):
        return "labelled"
    if has(STIMULI, BANK):
        return "conflict"
    return "images"


def _kind_of_json(path: Path) -> str:
    content = read_json(path, most=2 << 30)
    return "masks" if isinstance(content, dict) and "annotations" in content else "keypoints"


def _limited(dataset: Opened, limit: int | None, seed: int) -> Opened:
    return dataset if limit is None else dataset.limit(limit, seed)


def _titled(dataset: Opened, title: str) -> Opened:
    return dataset.titled(title) if title else dataset


def _name(path: Place | SampleList) -> str:
    if isinstance(path, SampleList):
        return Path(path.origin).name or "images"
    path = user_path(path)
    return path.resolve().name if path.is_dir() else path.stem
