"""A weights file into a timm module: read, convert, fit, load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from vitscope.core.errors import BadCheckpoint
from vitscope.core.reading import STRANGE, reason
from vitscope.models.checkpoints.fit import Fitted, fit
from vitscope.models.checkpoints.formats import convert
from vitscope.models.checkpoints.parts import some
from vitscope.models.checkpoints.read import read_checkpoint
from vitscope.models.checkpoints.shape import Shape
from vitscope.models.checkpoints.wrappers import IGNORED


@dataclass(frozen=True)
class LoadReport:
    """What became of every key of a file.

    used: names in the module; dropped: names in the file -> why; resampled: name -> "14 x 14 -> 28 x 28".
    """

    family: str
    used: tuple[str, ...]
    dropped: dict[str, str]
    resampled: dict[str, str]
    shape: Shape
    note: str = ""

    @property
    def ignored(self) -> str:
        """What was left out because somebody asked for it, in a sentence."""
        keys = [key for key, why in self.dropped.items() if why.startswith(IGNORED)]
        return f"left out of its file, as was asked for ({len(keys)} in all): {some(keys)}" if keys else ""


def load_checkpoint(module: nn.Module, path: Path, ignore: Sequence[str] = ()) -> LoadReport:
    """Load an official, timm or Hugging Face weights file into a timm module, strictly.

    ignore: patterns of keys that are not part of the network, such as further heads.

    The module's classifier is removed: heads are never loaded, and none must stay behind with random weights.
    No weight is changed unless everything fits. Raises BadCheckpoint with the file's name and the remedy.
    """
    fitted, report = _fitted(module, path, ignore)
    module.load_state_dict(fitted.state, strict=True)
    return report


def check_checkpoint(module: nn.Module, path: Path, ignore: Sequence[str] = ()) -> LoadReport:
    """Whether a weights file fits a module (which may be on torch's meta device); nothing is loaded."""
    return _fitted(module, path, ignore)[1]


def _fitted(module: nn.Module, path: Path, ignore: Sequence[str]) -> tuple[Fitted, LoadReport]:
    raw = read_checkpoint(path)
    _remove_classifier(module)
    try:
        converted = convert(raw, ignore)
        fitted = fit(converted, module)
    except BadCheckpoint as error:
        raise BadCheckpoint(f"{path}: {error}") from error
    except STRANGE as error:  # tensors of shapes that no converter foresaw
        raise BadCheckpoint(f"{path}: its tensors do not have the shapes of such a file: {reason(error)}") from error
    return fitted, LoadReport(
        family=converted.family,
        used=tuple(sorted(fitted.state)),
        dropped={**converted.dropped, **fitted.dropped},
        resampled=fitted.resampled,
        shape=converted.shape,
        note=converted.hints.note,
    )


def _remove_classifier(module: nn.Module) -> None:
    if any(key.startswith(("head.", "head_dist.")) for key in module.state_dict()):
        module.reset_classifier(0)  # type: ignore[operator]
