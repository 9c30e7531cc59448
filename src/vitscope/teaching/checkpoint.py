"""Checkpoints: everything that the next step depends on, written whole or not at all.

Randomness is not in them: every step draws from a generator that is seeded with the run's seed, the step's number and
the process, and the order of the images follows from the seed and the position. Resuming is therefore exact.
"""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch

from vitscope.errors import BadCheckpoint

FORMAT = 1


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write under a temporary name, then rename: whoever looks sees the old or the new one, complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load_checkpoint(path: Path, identity: dict[str, Any]) -> dict[str, Any]:
    """The state saved at `path`, if it belongs to the run that `identity` describes."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, OSError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        raise BadCheckpoint(
            f"'{path}' is damaged or cut short: delete it to begin again, or put back a copy of it"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise BadCheckpoint(f"'{path}' is not a checkpoint of vitscope teach (format {FORMAT})")
    for what, wanted in identity.items():
        found = state["identity"].get(what)
        if found != wanted:
            raise BadCheckpoint(
                f"'{path}' was made with {what} '{found}', not '{wanted}': choose another --out, or the same {what}"
            )
    return state
