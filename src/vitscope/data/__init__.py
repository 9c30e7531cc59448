"""What the networks see: images, labels, masks, and the datasets of the study in their official layouts.

Nothing here runs a network, and of vitscope it imports only `core`. Every file that is read here is treated as hostile.
"""

from __future__ import annotations

from vitscope.data.batches import Batch, BatchAnnotations, SkippedImages, batches
from vitscope.data.dataset import Dataset, ImageSet, LabelledSet, MaskSet
from vitscope.data.davis import VideoSet
from vitscope.data.decode import BadImage, decode_image
from vitscope.data.keypoints import KeypointSet
from vitscope.data.openers import open_dataset
from vitscope.data.preprocessing import Preprocessing
from vitscope.data.revisited import RetrievalSet
from vitscope.data.samples import Annotation, Sample, SampleList

__all__ = [
    "Annotation",
    "BadImage",
    "Batch",
    "BatchAnnotations",
    "Dataset",
    "ImageSet",
    "KeypointSet",
    "LabelledSet",
    "MaskSet",
    "Preprocessing",
    "RetrievalSet",
    "Sample",
    "SampleList",
    "SkippedImages",
    "VideoSet",
    "batches",
    "decode_image",
    "open_dataset",
]
