"""One entry for all data with masks: what is at a path is recognised by its layout."""

from __future__ import annotations

from pathlib import Path

from vitscope.core.errors import BadData
from vitscope.core.reading import user_path
from vitscope.data.coco import open_coco
from vitscope.data.folders import list_images
from vitscope.data.layouts import found_in
from vitscope.data.mask_folder import open_mask_folder
from vitscope.data.partimagenet import annotation_files, open_partimagenet
from vitscope.data.samples import SampleList

EXPECTED = (
    "expected images/ and masks/ with files of the same names, or COCO's annotations/instances_*.json with an image "
    "folder, or PartImageNet's train.json, val.json, test.json with image folders"
)


def open_masks(masks: Path | str, images: Path | str | None = None) -> SampleList:
    """Images with annotated regions.

    masks: a dataset folder in one of the layouts above, a COCO JSON, or (with `images`) a folder of mask files.
    images: where the images are, if the layout does not say it.
    """
    path = user_path(masks)
    if not path.exists():
        raise BadData(f"{path} does not exist: {EXPECTED}")
    if path.is_file():
        if path.suffix.lower() != ".json":
            raise BadData(f"{path} is not a mask dataset: {EXPECTED}")
        return open_coco(path, images or _images_beside(path))
    if (path / "masks").is_dir() and (images or (path / "images").is_dir()):
        return open_mask_folder(images or path / "images", path / "masks")
    if found := sorted((path / "annotations").glob("instances_*.json")):
        return _open_coco_folder(path, found, images)
    if annotation_files(path):
        return open_partimagenet(path)
    if images is not None and list_images(path):
        return open_mask_folder(images, path)
    raise BadData(f"no masks were recognised in {path}: {EXPECTED}; found {found_in(path)}")


def _open_coco_folder(root: Path, found: list[Path], images: Path | str | None) -> SampleList:
    """The official layout: which of the instance files is meant follows from the image folders that are there."""
    usable = [file for file in found if images or _image_folder(file)]
    if len(usable) == 1:
        return open_coco(usable[0], images or _images_beside(usable[0]))
    names = ", ".join(file.name for file in found)
    if usable:
        raise BadData(f"{root} holds several COCO annotation files ({names}): give the one to use")
    raise BadData(f"{root} holds {names} but no images: expected a folder such as {root / _split(found[0])}")


def _images_beside(annotations: Path) -> Path:
    folder = _image_folder(annotations)
    if folder is None:
        raise BadData(f"the images of {annotations} were not found beside it: say where they are")
    return folder


def _image_folder(annotations: Path) -> Path | None:
    """Where COCO keeps the images of an annotation file: `<root>/val2017` or `<root>/images/val2017`."""
    split = _split(annotations)
    for root in (annotations.parent.parent, annotations.parent):
        for folder in (root / split, root / "images" / split, root / "images"):
            if folder.is_dir():
                return folder
    return None


def _split(annotations: Path) -> str:
    """
    >>> _split(Path("instances_val2017.json"))
    'val2017'
    """
    return annotations.stem.removeprefix("instances_")
