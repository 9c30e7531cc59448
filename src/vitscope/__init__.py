"""vitscope shows what a Vision Transformer became through the way it was taught.

import vitscope
results = vitscope.evaluate(["zoo/dino", "zoo/mae"], on=[vitscope.images("photos")])
results.table  # a tidy polars table
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOMES = {  # what is imported when it is asked for, so that `vitscope --help` need not wait for torch
    "vitscope.api": ("evaluate", "StudyResults", "load_results"),
    "vitscope.core.analysis": ("Analysis",),
    "vitscope.core.errors": ("VitscopeError",),
    "vitscope.core.results": ("Results",),
    "vitscope.data.openers": (
        *("images", "masks", "labelled", "retrieval", "video", "keypoints", "segmentation", "conflict"),
        "open_dataset",
    ),
    "vitscope.models.spec": ("load_model", "resolve"),
    "vitscope.models.listing": ("list_models",),
    "vitscope.pipeline.engines": ("Local", "Ray"),
    "vitscope.pipeline.registry": ("register",),
    "vitscope.attention.analysis": ("Attention",),
    "vitscope.attention.saliency": ("Saliency",),
    "vitscope.attention.writes": ("HeadWrites",),
    "vitscope.features.analysis": ("Features",),
    "vitscope.features.calibration": ("Calibration",),
    "vitscope.features.extraction": ("load_features",),
    "vitscope.features.objects": ("Objects",),
    "vitscope.features.pictures": ("Pictures",),
    "vitscope.features.token_analysis": ("Tokens",),
    "vitscope.teaching.probe": ("watch",),
    "vitscope.tasks.head_importance": ("HeadImportance",),
    "vitscope.tasks.knn": ("Knn",),
    "vitscope.tasks.linear_probe": ("Probe",),
    "vitscope.tasks.retrieval": ("Retrieval",),
    "vitscope.tasks.video_segmentation": ("Video",),
    "vitscope.tasks.keypoints": ("Keypoints",),
    "vitscope.tasks.segmentation": ("Segmentation",),
    "vitscope.tasks.robustness": ("Robustness",),
    "vitscope.tasks.discovery": ("Discovery",),
    "vitscope.tasks.shape_or_texture": ("ShapeOrTexture",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from vitscope.api import StudyResults as StudyResults
    from vitscope.api import evaluate as evaluate
    from vitscope.api import load_results as load_results
    from vitscope.attention.analysis import Attention as Attention
    from vitscope.attention.saliency import Saliency as Saliency
    from vitscope.attention.writes import HeadWrites as HeadWrites
    from vitscope.core.analysis import Analysis as Analysis
    from vitscope.core.errors import VitscopeError as VitscopeError
    from vitscope.core.results import Results as Results
    from vitscope.data.openers import conflict as conflict
    from vitscope.data.openers import images as images
    from vitscope.data.openers import keypoints as keypoints
    from vitscope.data.openers import labelled as labelled
    from vitscope.data.openers import masks as masks
    from vitscope.data.openers import open_dataset as open_dataset
    from vitscope.data.openers import retrieval as retrieval
    from vitscope.data.openers import segmentation as segmentation
    from vitscope.data.openers import video as video
    from vitscope.features.analysis import Features as Features
    from vitscope.features.calibration import Calibration as Calibration
    from vitscope.features.extraction import load_features as load_features
    from vitscope.features.objects import Objects as Objects
    from vitscope.features.pictures import Pictures as Pictures
    from vitscope.features.token_analysis import Tokens as Tokens
    from vitscope.models.listing import list_models as list_models
    from vitscope.models.spec import load_model as load_model
    from vitscope.models.spec import resolve as resolve
    from vitscope.pipeline.engines import Local as Local
    from vitscope.pipeline.engines import Ray as Ray
    from vitscope.pipeline.registry import register as register
    from vitscope.tasks.discovery import Discovery as Discovery
    from vitscope.tasks.head_importance import HeadImportance as HeadImportance
    from vitscope.tasks.keypoints import Keypoints as Keypoints
    from vitscope.tasks.knn import Knn as Knn
    from vitscope.tasks.linear_probe import Probe as Probe
    from vitscope.tasks.retrieval import Retrieval as Retrieval
    from vitscope.tasks.robustness import Robustness as Robustness
    from vitscope.tasks.segmentation import Segmentation as Segmentation
    from vitscope.tasks.shape_or_texture import ShapeOrTexture as ShapeOrTexture
    from vitscope.tasks.video_segmentation import Video as Video
    from vitscope.teaching.probe import watch as watch


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vitscope' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
