"""One observed forward pass: observers see each block's attention and tokens as they stream by.

Only what somebody wants is materialised. With no attention observer the fused kernels stay on; with one, attention is
computed a few images at a time in their place (`watched_attention`), or by the block's own unfused path, which hooks
listen to. It is verified that every block reported exactly once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.core.errors import UnsupportedModel
from vitscope.core.observer import Observer, Sweeper
from vitscope.models.layout import TokenLayout
from vitscope.models.watched_attention import WatchedAttention

SIGNALS = frozenset({"attention", "tokens", "norms", "branches", "writes", "pool"})
PARTS = ("attention", "mlp")


def attention_module(block: nn.Module) -> nn.Module:
    """The module of a block that owns `attn_drop` and the fused-attention flag."""
    attention = getattr(block, "attn", None)
    return attention if isinstance(attention, nn.Module) and hasattr(attention, "attn_drop") else block


def pools_by_attention(module: nn.Module) -> bool:
    """Whether one learned query sums up the last layer's tokens, as in SigLIP and Perception Encoder."""
    head = getattr(module, "attn_pool", None)
    return getattr(head, "latent_len", 0) == 1


def check_observable(module: nn.Module, name: str) -> None:
    """Refuse, by name and with the reason, a model whose attention cannot be observed completely."""
    blocks = getattr(module, "blocks", None)
    if not isinstance(blocks, nn.ModuleList | nn.Sequential) or len(blocks) == 0:
        raise UnsupportedModel(f"'{name}' is not a plain Vision Transformer: it has no single stack of blocks")
    if not hasattr(module, "forward_features"):
        raise UnsupportedModel(f"'{name}' has no forward_features: it is not a timm Vision Transformer")
    for block in blocks:
        if getattr(block, "window_size", 0):
            raise UnsupportedModel(
                f"'{name}' attends within windows (block size {block.window_size}): its attention is per window, "
                "not between all tokens of the image, so maps and distances would be wrong"
            )
        attention = attention_module(block)
        if not (hasattr(attention, "attn_drop") and hasattr(attention, "fused_attn")):
            raise UnsupportedModel(
                f"'{name}' uses {type(attention).__name__}, whose attention probabilities cannot be observed"
            )
        if "Diff" in type(attention).__name__ or "Diff" in type(block).__name__:
            raise UnsupportedModel(
                f"'{name}' uses differential attention: the difference of two softmaxes is not a probability"
            )


def trace(
    module: nn.Module, images: Tensor, observers: Sequence[Observer], *, layout: TokenLayout, name: str = "model"
) -> Tensor:
    """Run `module.forward_features(images)` (normalised input) under the eyes of `observers`.

    Returns the final tokens (B, T, D), normed as the model does. The module is left exactly as it was found.
    """
    wanted = frozenset().union(*(observer.wants for observer in observers))
    if unknown := wanted - SIGNALS:
        raise ValueError(f"observers want unknown signals: {sorted(unknown)}")
    calls: Counter[tuple[str, int, str]] = Counter()
    notify = _notifier(observers, calls, layout, name)
    with ExitStack() as stack:
        for layer, block in enumerate(module.blocks):  # type: ignore[arg-type]
            for handle in _attach(block, layer, wanted, notify, name):
                stack.callback(handle.remove)
        if "attention" in wanted:
            watched = _watched(observers, notify)
            for layer, block in enumerate(module.blocks):  # type: ignore[arg-type]
                for handle in _follow(block, layer, watched):
                    stack.callback(handle.remove)
            stack.enter_context(watched)
        stack.enter_context(torch.no_grad())
        out: Tensor = module.forward_features(images)  # type: ignore[operator]
        if "pool" in wanted and pools_by_attention(module):
            notify("pool", len(module.blocks) - 1, "", _pooled(module, out, layout, name))  # type: ignore[arg-type]
    _verify(calls, wanted, len(module.blocks), name)  # type: ignore[arg-type]
    return out


def _pooled(module: nn.Module, tokens: Tensor, layout: TokenLayout, name: str) -> tuple[Tensor, Tensor]:
    """Run the pooling head: its attention to the spatial tokens (B, H, N) and its output (B, D)."""
    shown: list[Tensor] = []

    def show(_layer: int, probs: Tensor) -> None:
        shown.append(probs)

    def pass_by(_layer: int, _probs: Tensor, _scores: Tensor | None) -> None: ...

    with WatchedAttention(pass_by, show, reuse=False) as watched:
        watched.layer = len(module.blocks)  # type: ignore[arg-type]
        x: Tensor = module.pool(tokens)  # type: ignore[operator]
    if len(shown) != 1:
        raise UnsupportedModel(f"the pooling head of '{name}' reported its attention {len(shown)} times, not once")
    return shown[0][:, :, 0, -layout.spatial :], x


def _watched(observers: Sequence[Observer], notify: Notify) -> WatchedAttention:
    watchers = [observer for observer in observers if "attention" in observer.wants]
    sweepers = [observer for observer in watchers if isinstance(observer, Sweeper)]

    def sweep(layer: int, probs: Tensor, scores: Tensor | None) -> None:
        for sweeper in sweepers:
            before = probs._version
            sweeper.sweep(layer, probs, scores)
            if probs._version != before:
                raise RuntimeError(f"{type(sweeper).__name__} wrote into the attention it was shown")

    def show(layer: int, probs: Tensor) -> None:
        notify("attention", layer, "", (probs,))

    return WatchedAttention(sweep, show, reuse=len(sweepers) == len(watchers))


def _follow(block: nn.Module, layer: int, watched: WatchedAttention) -> list[Any]:
    """Hooks that tell whose attention is computed."""

    def enter(_m: nn.Module, _args: Any) -> None:
        watched.layer = layer

    def leave(_m: nn.Module, _args: Any, _out: Any) -> None:
        watched.layer = None

    return [block.register_forward_pre_hook(enter), block.register_forward_hook(leave)]


Notify = Callable[[str, int, str, tuple[Tensor, ...]], None]


def _notifier(
    observers: Sequence[Observer], calls: Counter[tuple[str, int, str]], layout: TokenLayout, name: str
) -> Notify:
    def notify(signal: str, layer: int, part: str, tensors: tuple[Tensor, ...]) -> None:
        calls[signal, layer, part] += 1
        expected = layout.tokens
        shown = tensors[: {"writes": 1, "pool": 0}.get(signal)]  # the others are not made of tokens
        if any(t.shape[-2] != expected for t in shown) or (
            signal == "attention" and (tensors[0].ndim != 4 or tensors[0].shape[-1] != expected)
        ):
            raise UnsupportedModel(
                f"'{name}', block {layer + 1}: {signal} has shape {tuple(tensors[0].shape)}, but the layout promises "
                f"{expected} tokens ({layout.prefix} prefix + {layout.grid[0]} x {layout.grid[1]})"
            )
        versions = [t._version for t in tensors]
        for observer in observers:
            if signal not in observer.wants:
                continue
            if signal in ("attention", "tokens", "writes", "pool"):
                getattr(observer, signal)(layer, *tensors)
            else:
                getattr(observer, signal)(layer, part, *tensors)
            if [t._version for t in tensors] != versions:
                raise RuntimeError(f"{type(observer).__name__} wrote into the {signal} it was shown")

    return notify


def _attach(block: nn.Module, layer: int, wanted: frozenset[str], notify: Notify, name: str) -> list[Any]:
    """Hooks on one block for every wanted signal; their handles."""
    handles = []
    if "attention" in wanted:

        def see_attention(_m: nn.Module, args: tuple[Tensor, ...]) -> None:
            notify("attention", layer, "", (args[0].detach(),))

        dropout: nn.Module = attention_module(block).attn_drop  # type: ignore[assignment]
        handles.append(dropout.register_forward_pre_hook(see_attention))
    if "norms" in wanted:
        _require(block, ("norm1", "norm2"), "the input of each branch", name)
        if "Post" in type(block).__name__:
            raise UnsupportedModel(f"'{name}' normalises after its branches: it has no pre-branch norms to observe")
        for part, norm in zip(PARTS, (block.norm1, block.norm2), strict=True):

            def see_norm(_m: nn.Module, _a: Any, out: Tensor, part: str = part) -> None:
                notify("norms", layer, part, (out.detach(),))

            handles.append(norm.register_forward_hook(see_norm))  # type: ignore[union-attr]
    if "branches" in wanted:
        _require(block, ("drop_path1", "drop_path2"), "its residual branches", name)
        skip: dict[str, Tensor] = {}

        def see_input(_m: nn.Module, args: tuple[Tensor, ...]) -> None:
            skip["attention"] = args[0].detach()

        def see_attention_branch(_m: nn.Module, _a: Any, out: Tensor) -> None:
            skip["mlp"] = skip["attention"] + out.detach()
            notify("branches", layer, "attention", (skip["attention"], out.detach()))

        def see_mlp_branch(_m: nn.Module, _a: Any, out: Tensor) -> None:
            notify("branches", layer, "mlp", (skip["mlp"], out.detach()))
            skip.clear()

        handles.append(block.register_forward_pre_hook(see_input))
        handles.append(block.drop_path1.register_forward_hook(see_attention_branch))  # type: ignore[union-attr]
        handles.append(block.drop_path2.register_forward_hook(see_mlp_branch))  # type: ignore[union-attr]
    if "writes" in wanted:
        attention = attention_module(block)
        _require(attention, ("proj",), "what its heads write", name)
        projection: Any = attention.proj
        weight = projection.weight.detach()
        scale = getattr(getattr(block, "ls1", None), "gamma", getattr(block, "gamma_1", None))
        weight = weight if scale is None else weight * scale.detach().unsqueeze(1)

        def see_writes(_m: nn.Module, args: tuple[Tensor, ...]) -> None:
            notify("writes", layer, "", (args[0].detach(), weight))

        handles.append(projection.register_forward_pre_hook(see_writes))
    if "tokens" in wanted:

        def see_tokens(_m: nn.Module, _a: Any, out: Tensor) -> None:
            notify("tokens", layer, "", (out.detach(),))

        handles.append(block.register_forward_hook(see_tokens))
    return handles


def _require(block: nn.Module, names: Sequence[str], what: str, model: str) -> None:
    if missing := [n for n in names if not isinstance(getattr(block, n, None), nn.Module)]:
        raise UnsupportedModel(
            f"'{model}' does not show {what}: {type(block).__name__} has no {' and no '.join(missing)}"
        )


def _verify(calls: Counter[tuple[str, int, str]], wanted: frozenset[str], depth: int, name: str) -> None:
    for signal in sorted(wanted - {"pool"}):
        parts = PARTS if signal in ("norms", "branches") else ("",)
        for layer in range(depth):
            for part in parts:
                seen = calls[signal, layer, part]
                if seen != 1:
                    raise UnsupportedModel(
                        f"'{name}' cannot be observed completely: block {layer + 1} reported its {part} {signal} "
                        f"{seen} times instead of once"
                    )
