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

from vitscope.core.digest import digest_of
from vitscope.core.errors import BadCheckpoint, shorten
from vitscope.core.files import write_atomically
from vitscope.core.reading import STRANGE, open_regular

FORMAT = 2
PLAIN = ("identity", "step", "cpu_seconds", "changes", "curve", "summed")
# What a file that is not a whole checkpoint raises while it is read or used.
DAMAGED: tuple[type[Exception], ...] = (pickle.UnpicklingError, zipfile.BadZipFile, *STRANGE)


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Whoever looks sees the old checkpoint or the new one, complete; the new one survives a loss of power."""

    def write(to: Path) -> None:
        with to.open("wb") as file:
            torch.save({"format": FORMAT, "sum": _sum(state), **state}, file)
            file.flush()
            os.fsync(file.fileno())

    write_atomically(path, write)


def load_checkpoint(path: Path, identity: dict[str, Any], changeable: Sequence[str] = ()) -> dict[str, Any]:
    """The state saved at `path`, if it belongs to the run that `identity` describes.

    changeable: what could have been changed, had it been asked for.
    """
    with open_regular(path, error=BadCheckpoint) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                if (entry := archive.testzip()) is not None:  # PyTorch writes checksums, and does not look at them
                    raise ValueError(f"the checksum of {entry} is another")
            file.seek(0)
            state = torch.load(file, map_location="cpu", weights_only=True)
        except DAMAGED as error:
            raise damaged(path) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise BadCheckpoint(f"'{path}' is not a checkpoint of vitscope teach (format {FORMAT})")
    known = state.get("identity")
    if not isinstance(known, dict) or state.get("sum", _sum(state)) != _sum(state):  # the first ones had no sum
        raise damaged(path)
    for what, wanted in identity.items():
        found = known.get(what, wanted)  # a setting that is newer than the checkpoint was at its default
        if found != wanted:
            remedy = f"choose another --out, or the same {what}"
            if what in changeable:
                remedy += ", or --change to go on with it"
            raise BadCheckpoint(f"'{path}' was made with {what} '{shorten(found)}', not '{wanted}': {remedy}")
    return state


def _sum(state: dict[str, Any]) -> str:
    """Of what a checkpoint says in words and numbers; PyTorch sees to the tensors."""
    return digest_of({key: state.get(key) for key in PLAIN})


def damaged(path: Path) -> BadCheckpoint:
    return BadCheckpoint(f"'{path}' is damaged or cut short: delete it to begin again, or put back a copy of it")
