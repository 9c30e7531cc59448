"""Checkpoints: everything that the next step depends on, written whole or not at all.

Randomness is not in them: every step draws from a generator that is seeded with the run's seed, the step's number and
the process, and the order of the images follows from the seed and the position. Resuming is therefore exact.
"""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from vitscope.core.errors import BadCheckpoint
from vitscope.core.files import write_atomically

FORMAT = 2


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Whoever looks sees the old checkpoint or the new one, complete; the new one survives a loss of power."""

    def write(to: Path) -> None:
        with to.open("wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            file.flush()
            os.fsync(file.fileno())

    write_atomically(path, write)


def load_checkpoint(path: Path, identity: dict[str, Any], changeable: Sequence[str] = ()) -> dict[str, Any]:
    """The state saved at `path`, if it belongs to the run that `identity` describes.

    changeable: what could have been changed, had it been asked for.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, OSError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        raise BadCheckpoint(
            f"'{path}' is damaged or cut short: delete it to begin again, or put back a copy of it"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise BadCheckpoint(f"'{path}' is not a checkpoint of vitscope teach (format {FORMAT})")
    for what, wanted in identity.items():
        found = state["identity"].get(what, wanted)  # a setting that is newer than the checkpoint was at its default
        if found != wanted:
            remedy = f"choose another --out, or the same {what}"
            if what in changeable:
                remedy += ", or --change to go on with it"
            raise BadCheckpoint(f"'{path}' was made with {what} '{found}', not '{wanted}': {remedy}")
    return state
