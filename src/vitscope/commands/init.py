"""`vitscope init`: a commented study file to start from."""

from __future__ import annotations

from pathlib import Path

from vitscope.core.errors import VitscopeError, printable
from vitscope.core.files import write_text
from vitscope.core.reading import user_path
from vitscope.core.say import say

TEMPLATE = """\
# A study of Vision Transformers. `vitscope run {name}` runs it; run again, it computes only what is new.
# Paths are relative to this file. Every setting: docs/study-file.md.

title = "My study"
out = "runs/my-study"            # everything is written here
# protocols = ["corrected"]      # add "paper" to compare with published numbers
# baselines = true               # the untrained network of each shape is added: no score means much without it
# seed = 0
# engine = "local"               # or "ray": a cluster that shares this folder (pip install 'vitscope[ray]')
# processes = 1                  # jobs side by side: worth it for small networks, or several GPUs

# --- models: names from `vitscope models`, timm names, random:ARCH, model cards, or your own weights -------------

[[models]]
name = "zoo/dino"

# [[models]]
# name = "mine"
# weights = "checkpoints/mine.pth"   # any official format, or a timm state dict
# arch = "vit_small_patch16_224"
# teaching = "dino"                  # colour and kind: fs clip dino moco mae beit none other

# --- data by role: any may be absent; each brings its analyses -----------------------------------------------------

[data.images]                    # attention and features; class folders give labels for clustering
path = "world/imagefolder/val"   # written by `vitscope menagerie --out world`: put your own folder here
limit = 1000

# [data.masks]                   # saliency, discovery, object and part clusters: COCO, PartImageNet, images/ + masks/
# path = "coco/annotations/instances_val2017.json"
# images = "coco/val2017"

# [data.labelled]                # k-NN and linear probe: train/ and val/ in class folders
# path = "imagenet"

# [data.retrieval]               # ROxford5k, RParis6k, or one folder per individual
# path = "roxford5k"

# [data.video]                   # DAVIS-2017, or folders of frames with a first mask
# path = "DAVIS"

# [data.keypoints]               # SPair-71k, or a JSON of pairs
# path = "SPair-71k"

# [data.segmentation]            # a class for every pixel: VOC, ADE20K, or masks by category
# path = "VOC2012"

# [data.conflict]                # shape or texture: cue-conflict/ (names such as cat1-snake2.png) and train/
# path = "world/imagefolder"
"""


def init(path: Path = Path("study.toml"), /) -> None:
    """Write a commented study file to start from.

    Parameters
    ----------
    path
        The file to write; an existing one is never overwritten.
    """
    path = user_path(path)
    if path.exists():
        raise VitscopeError(f"{path} exists already: name another file, nothing was overwritten")
    if not path.parent.is_dir():
        raise VitscopeError(f"there is no folder {path.parent}")
    write_text(path, TEMPLATE.replace("{name}", printable(path)))
    say(f"wrote {path}: edit it, then `vitscope run {path}`")
