"""Where people watch their runs: TensorBoard's files where it is installed, and a run of Weights & Biases."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.core.digest import digest_of
from vitscope.core.errors import VitscopeError


class Trackers:
    """Told named numbers by step. folder: of TensorBoard's files; resumed: the step from which they are told anew."""

    def __init__(self, folder: Path, resumed: int = 0) -> None:
        self._tensorboard = _tensorboard(folder, resumed)

    def tell(self, step: int, values: Mapping[str, float]) -> None:
        if self._tensorboard is not None:
            for name, value in values.items():
                self._tensorboard.add_scalar(name, value, step)
            self._tensorboard.flush()
        wandb = sys.modules.get("wandb")
        if wandb is not None and wandb.run is not None:  # the run that somebody opened
            wandb.log({**values, "vitscope/step": step})

    def close(self) -> None:
        if self._tensorboard is not None:
            self._tensorboard.close()


def open_wandb(project: str, folder: Path, config: Mapping[str, Any]) -> None:
    """Open a run of Weights & Biases, or go on with that of the folder; it closes when the process ends."""
    try:
        import wandb
    except ImportError as error:
        raise VitscopeError("Weights & Biases is not installed: pip install wandb, or leave --wandb out") from error
    place = folder.resolve()  # two folders of one name are two runs
    own = digest_of([str(place)])
    wandb.init(project=project, dir=str(folder), name=place.name, id=own, resume="allow", config=dict(config))


def _tensorboard(folder: Path, resumed: int) -> Any:
    """Its writer, or None where it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=resumed or None)
