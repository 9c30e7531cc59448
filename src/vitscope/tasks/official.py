"""Names for datasets: the official one where it is all there, so that scores may stand beside published ones."""

from __future__ import annotations

from pathlib import Path

from vitscope.data.davis import VideoSet
from vitscope.data.keypoints import KeypointSet
from vitscope.data.revisited import RetrievalSet
from vitscope.tasks.labelled import LabelledSet

RETRIEVAL = {"roxford5k": ("ROxford5k", 70, 4993), "rparis6k": ("RParis6k", 70, 6322)}  # queries, database
DAVIS_SEQUENCES = 30  # of DAVIS-2017 val
SPAIR_PAIRS = 12234  # of SPair-71k test
IMAGENET_QUERIES = 50000


def name_of_labelled(data: LabelledSet) -> str:
    official = "ImageNet"
    return data.name if data.name != official or len(data.test) == IMAGENET_QUERIES else f"{official} (part)"


def name_of_retrieval(data: RetrievalSet) -> str:
    title, queries, database = RETRIEVAL.get(data.name, (data.name, 0, 0))
    complete = (len(data.queries), len(data.database)) == (queries, database)
    return title if complete or not queries else f"{title} (part)"


def name_of_videos(data: VideoSet) -> str:
    complete = data.origin.startswith("DAVIS val") and len(data) == DAVIS_SEQUENCES
    return "DAVIS-2017 val" if complete else _folder(data.origin)


def name_of_keypoints(data: KeypointSet) -> str:
    complete = data.images.origin.startswith("SPair-71k test") and len(data.pairs) == SPAIR_PAIRS
    return "SPair-71k test" if complete else _folder(data.images.origin)


def _folder(origin: str) -> str:
    """The last name of a path, which origins have after a few words."""
    return Path(origin.rpartition(" of ")[2]).name
