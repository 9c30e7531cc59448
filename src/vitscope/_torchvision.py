"""Lets torchvision import beside a CPU-only torch.

timm imports torchvision for its image transforms. The published torchvision wheel carries compiled operators
that may not load beside a CPU build of torch, and its import then fails while it registers fake kernels for
`torchvision::nms` and `torchvision::qnms`. Declaring those two schemas first, only when they are missing, makes
the import work; vitscope uses none of these operators. timm is imported from here, so that this always comes first.
"""

from __future__ import annotations

import torch


def declare_missing_operators() -> None:
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        pass
    else:
        return
    import sys

    for name in [m for m in sys.modules if m == "torchvision" or m.startswith("torchvision.")]:
        del sys.modules[name]
    for operator in ("nms", "qnms"):
        try:
            torch.library.define(
                f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
        except RuntimeError:  # already declared
            continue


declare_missing_operators()

import timm as timm
