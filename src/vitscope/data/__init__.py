"""What the networks see: images, labels, masks, and the datasets of the study in their official layouts.

Nothing here runs a network, and of vitscope it imports only `errors` and `digest`. Every file that is read here is
treated as hostile.
"""

from __future__ import annotations

from vitscope.data.batches import Batch, BatchAnnotations, SkippedImages, batches
from vitscope.data.davis import open_videos
from vitscope.data.decode import BadImage, decode_image
from vitscope.data.folders import open_images
from vitscope.data.masks import open_masks
from vitscope.data.retrieval import open_retrieval
from vitscope.data.samples import Annotation, Sample, SampleList
from vitscope.data.spair import open_keypoints

__all__ = [
    "Annotation",
    "BadImage",
    "Batch",
    "BatchAnnotations",
    "Sample",
    "SampleList",
    "SkippedImages",
    "batches",
    "decode_image",
    "open_images",
    "open_keypoints",
    "open_masks",
    "open_retrieval",
    "open_videos",
]
