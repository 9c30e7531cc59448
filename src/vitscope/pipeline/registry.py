"""All analyses there are. A new one is a file in its room and a line here; commands, study files, tables, the page and
the docs follow from this list."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import entry_points

from vitscope.attention.analysis import Attention
from vitscope.attention.saliency import Saliency
from vitscope.attention.writes import HeadWrites
from vitscope.core.analysis import Analysis
from vitscope.core.errors import VitscopeError
from vitscope.features.analysis import Features
from vitscope.features.calibration import Calibration
from vitscope.features.objects import Objects
from vitscope.features.pictures import Pictures
from vitscope.features.token_analysis import Tokens
from vitscope.tasks.discovery import Discovery
from vitscope.tasks.head_importance import HeadImportance
from vitscope.tasks.keypoints import Keypoints
from vitscope.tasks.knn import Knn
from vitscope.tasks.linear_probe import Probe
from vitscope.tasks.retrieval import Retrieval
from vitscope.tasks.robustness import Robustness
from vitscope.tasks.segmentation import Segmentation
from vitscope.tasks.shape_or_texture import ShapeOrTexture
from vitscope.tasks.video_segmentation import Video

_SHIPPED: tuple[type[Analysis], ...] = (
    *(Attention, HeadWrites, HeadImportance, Features, Calibration, Tokens, Pictures, Saliency, Objects),
    *(Knn, Probe, Retrieval, Video, Keypoints, Segmentation, Discovery, Robustness, ShapeOrTexture),
)
ANALYSES: dict[str, type[Analysis]] = {kind.name: kind for kind in _SHIPPED}


def register(kind: type[Analysis]) -> type[Analysis]:
    """Make an analysis known by its name; usable as a decorator."""
    if kind.name in ANALYSES and ANALYSES[kind.name] is not kind:
        raise VitscopeError(f"there is an analysis called '{kind.name}' already: give this one another name")
    ANALYSES[kind.name] = kind
    return kind


def default_analyses(
    kinds: Collection[str], protocols: Sequence[str] = ("corrected",), names: Collection[str] | None = None
) -> list[Analysis]:
    """Every analysis (or those of these names) that datasets of these kinds allow, under each protocol it has.

    Those that cost much more than the others are done only by name.
    """
    found = []
    for name, kind in ANALYSES.items():
        wanted = not kind.asked_for if names is None else name in names
        if kind.kind in kinds and wanted:
            found += in_protocols(kind, protocols)
    return found


def in_protocols(kind: type[Analysis], protocols: Sequence[str], **settings: object) -> list[Analysis]:
    """An analysis under each protocol, or once if protocols make no difference to it."""
    if kind.has_protocols() and "protocol" not in settings:
        return [kind(protocol=protocol, **settings) for protocol in protocols]  # type: ignore[call-arg]
    return [kind(**settings)]


def load_installed() -> None:
    """Analyses of other installed packages, named as entry points of the group "vitscope.analyses"."""
    for point in entry_points(group="vitscope.analyses"):
        register(point.load())


load_installed()
