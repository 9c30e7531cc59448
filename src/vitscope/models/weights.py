"""Where weights are looked for, and what to say when they are not there. Nothing is fetched unless asked for."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from vitscope.core.errors import MissingWeights
from vitscope.core.place import data_root
from vitscope.models.catalogue import Entry

HUB_FILES = ("model.safetensors", "open_clip_model.safetensors", "pytorch_model.bin", "open_clip_pytorch_model.bin")


def weights_folder(root: Path | None = None) -> Path:
    """The folder for official weight files. root: of weights and datasets, if not $VITSCOPE_DATA."""
    return (root or data_root()) / "weights"


def find_weights(entry: Entry, root: Path | None = None) -> Path | None:
    """The file that holds an entry's weights on this machine, or None."""
    for name in entry.files:
        for path in (weights_folder(root) / name, Path("weights") / name):
            if path.is_file():
                return path
    if entry.hub:
        for name in HUB_FILES:
            cached = try_to_load_from_cache(entry.hub, name)
            if isinstance(cached, str):
                return Path(cached)
    return None


def get_weights(entry: Entry, *, download: bool, root: Path | None = None) -> Path:
    """The weights of an entry; with `download`, fetched from the hub if they are missing."""
    if found := find_weights(entry, root):
        return found
    if download and entry.hub:
        for name in HUB_FILES:
            try:
                return Path(hf_hub_download(entry.hub, name))
            except (HfHubHTTPError, LocalEntryNotFoundError, OSError):
                continue
        raise MissingWeights(
            f"'{entry.name}': {entry.hub} could not be fetched: check the network, or {remedy(entry, root)}"
        )
    raise MissingWeights(
        f"'{entry.name}': weights are not on this machine; looked for {places(entry, root)}: {remedy(entry, root)}"
    )


def places(entry: Entry, root: Path | None = None) -> str:
    """Where the weights of an entry were looked for."""
    looked = [f"{name} in {weights_folder(root)} and ./weights" for name in entry.files]
    if entry.hub:
        looked.append(f"{entry.hub} in the Hugging Face cache {constants.HF_HUB_CACHE}")
    return " and ".join(looked)


def remedy(entry: Entry, root: Path | None = None) -> str:
    """How to get the weights of an entry, in a few words."""
    ways = []
    if entry.hub:
        ways.append(f"run again with --download (fetches {entry.hub})")
    if entry.url and entry.files:
        ways.append(f"put {entry.files[0]} from {entry.url} into {weights_folder(root)}")
    elif entry.files:
        ways.append(f"put {entry.files[0]} into {weights_folder(root)}")
    return ", or ".join(ways)
