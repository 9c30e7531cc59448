"""What the networks see: images, labels, masks, and the datasets of the study in their official layouts.

Nothing here runs a network, and of vitscope it imports only `errors` and `digest`. Every file that is read here is
treated as hostile.
"""

from __future__ import annotations

from vitscope.data.batches import Batch, BatchAnnotations, SkippedImages, batches
from vitscope.data.decode import BadImage, decode_image
from vitscope.data.folders import open_images
from vitscope.data.masks import open_masks
from vitscope.data.samples import Annotation, Sample, SampleList

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
    "open_masks",
]
