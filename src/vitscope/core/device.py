"""Every decision about devices and number formats, in one place."""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache

import torch

from vitscope.core.errors import VitscopeError

BATCH_MEMORY = 4 << 30  # bytes of a GPU for each batch of 32: ViT-L's blocks with their attention, at 224 pixels
MOST_TOGETHER = 8  # batches: beyond, a GPU is busy anyway
# glibc's names of the sizes from which memory is taken from the system and given back to it, and what they are set to.
MALLOC_SIZES = {-3: 128 << 20, -1: 512 << 20}  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD


def choose_device(name: str | torch.device | None = None) -> torch.device:
    """The device asked for, or the best one present: CUDA, then MPS, then CPU."""
    if isinstance(name, torch.device):
        return name
    if name is None or name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        if torch.backends.mps.is_available():
            return torch.device("mps")
        return torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise VitscopeError(f"unknown device '{name}': use cpu, cuda, cuda:N, mps or auto") from error
    present = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if not present.get(device.type, False):
        raise VitscopeError(f"device '{name}' is not present on this machine: use --device cpu")
    return device


def nth_device(name: str, number: int) -> str:
    """The device for one of several processes: they take turns over the GPUs, unless one is named."""
    if name in ("auto", "cuda") and torch.cuda.is_available():
        return f"cuda:{number % torch.cuda.device_count()}"
    return name


def compute_dtype(device: torch.device) -> torch.dtype:
    """Half precision where it is fast (bfloat16 if supported, else float16 on CUDA); float32 elsewhere.

    Only the network computes in it: everything that is accumulated is float32 or float64.
    """
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    return torch.float32


def autocast(device: torch.device, dtype: torch.dtype | None = None) -> AbstractContextManager[object]:
    """The context in which a network runs on `device`; nothing at all where that is float32."""
    dtype = dtype or compute_dtype(device)
    if dtype == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype)


def accumulation_dtype(device: torch.device) -> torch.dtype:
    """float64 where the device has it (not MPS)."""
    return torch.float32 if device.type == "mps" else torch.float64


def batches_together(device: torch.device) -> int:
    """How many batches of a CPU are traced at a time: as many as fit the smallest GPU of a machine, elsewhere one.

    It decides the last digit of numbers, and so is part of the digest and of the provenance.
    """
    if device.type != "cuda":
        return 1
    gpus = range(torch.cuda.device_count())
    memory = min(torch.cuda.get_device_properties(gpu).total_memory for gpu in gpus)
    return int(min(max(memory // BATCH_MEMORY, 1), MOST_TOGETHER))


@cache
def keep_freed_memory() -> None:
    """Have this process use freed memory again instead of giving it back to the system after every layer.

    The activations of a layer are megabytes: by default glibc maps them anew each time, and the system clears every
    page. That took a fifteenth of a pass, and more of it where several processes work beside each other. Elsewhere
    (macOS, Windows, musl) nothing is done.
    """
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, size in MALLOC_SIZES.items():
            mallopt(name, size)
