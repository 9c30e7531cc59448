"""The observed forward pass: completeness, restoration, refusals, and every family's token layout."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from vitscope.core.errors import UnsupportedModel
from vitscope.core.observer import Observer
from vitscope.data.preprocessing import Preprocessing
from vitscope.models import watched_attention
from vitscope.models.backbone import Backbone
from vitscope.models.layout import Grid, TokenLayout
from vitscope.models.trace import SIGNALS, attention_module, trace


class Recorder(Observer):
    """Keeps everything it is shown."""

    def __init__(self, *wants: str) -> None:
        self.wants = frozenset(wants or SIGNALS)
        self.seen: dict[str, list[tuple[Any, ...]]] = {signal: [] for signal in SIGNALS}

    def attention(self, layer: int, probs: Tensor) -> None:
        self.seen["attention"].append((layer, probs.clone()))

    def tokens(self, layer: int, x: Tensor) -> None:
        self.seen["tokens"].append((layer, x.clone()))

    def norms(self, layer: int, part: str, x: Tensor) -> None:
        self.seen["norms"].append((layer, part, x.clone()))

    def branches(self, layer: int, part: str, skip: Tensor, branch: Tensor) -> None:
        self.seen["branches"].append((layer, part, skip.clone(), branch.clone()))

    def writes(self, layer: int, mixed: Tensor, weight: Tensor) -> None:
        self.seen["writes"].append((layer, mixed.clone(), weight.clone()))

    def pool(self, layer: int, probs: Tensor, x: Tensor) -> None:
        self.seen["pool"].append((layer, probs.clone(), x.clone()))


def make(name: str, size: int | tuple[int, int], **options: Any) -> Backbone:
    torch.manual_seed(0)
    module = timm.create_model(name, num_classes=0, img_size=size, **options)
    pixels = (size, size) if isinstance(size, int) else size
    return Backbone(name, module, Preprocessing(pixels))


def inside(backbone: Backbone) -> Any:
    """The network itself, for looking at its parts."""
    return backbone.module


FAMILIES = [  # name, size, options, prefix, has CLS, grid
    ("vit_tiny_patch16_224", 64, {}, 1, True, (4, 4)),
    ("vit_tiny_patch16_224", (64, 96), {}, 1, True, (4, 6)),
    ("vit_tiny_patch16_224", 64, {"qk_norm": True, "init_values": 0.1}, 1, True, (4, 4)),
    ("deit_tiny_distilled_patch16_224", 64, {}, 2, True, (4, 4)),
    ("vit_base_patch16_siglip_224", 64, {"embed_dim": 96, "num_heads": 3}, 0, False, (4, 4)),
    ("vit_small_patch14_reg4_dinov2", 56, {}, 5, True, (4, 4)),
    ("vit_base_patch16_clip_quickgelu_224", 64, {"embed_dim": 96, "num_heads": 3}, 1, True, (4, 4)),
    ("vit_huge_patch14_gap_224", 56, {"embed_dim": 96, "num_heads": 3}, 0, False, (4, 4)),
    ("beit_base_patch16_224", 64, {"embed_dim": 96, "num_heads": 3}, 1, True, (4, 4)),
    ("beit_base_patch16_224", (64, 96), {"embed_dim": 96, "num_heads": 3}, 1, True, (4, 6)),
    ("eva02_tiny_patch14_224", (56, 84), {}, 1, True, (4, 6)),
    ("vit_small_patch16_dinov3", 64, {}, 5, True, (4, 4)),
    ("deit3_small_patch16_224", 64, {}, 1, True, (4, 4)),
    ("vit_base_patch16_rope_mixed_224", 64, {"embed_dim": 96, "num_heads": 3}, 1, True, (4, 4)),
]


@pytest.mark.parametrize(("name", "size", "options", "prefix", "has_cls", "grid"), FAMILIES)
def test_every_family_is_seen_completely(
    name: str, size: int, options: dict[str, Any], prefix: int, has_cls: bool, grid: Grid
) -> None:
    backbone = make(name, size, depth=3, **options)
    assert backbone.layout == TokenLayout(grid, prefix, has_cls)
    images = torch.randint(0, 256, (2, 3, *backbone.preprocessing.size), dtype=torch.uint8)
    recorder = Recorder()
    flags = [attention_module(block).fused_attn for block in inside(backbone).blocks]
    observed = backbone.trace(images, [recorder])
    assert flags == [attention_module(block).fused_attn for block in inside(backbone).blocks]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in inside(backbone).modules())
    tokens = prefix + grid[0] * grid[1]
    assert [layer for layer, _ in recorder.seen["attention"]] == [0, 1, 2]
    for _, probs in recorder.seen["attention"]:
        assert probs.shape == (2, backbone.heads, tokens, tokens)
        torch.testing.assert_close(probs.sum(-1), torch.ones(probs.shape[:-1]), rtol=0, atol=1e-5)
    with torch.no_grad():  # the fused kernels, unobserved, compute the same
        bare = inside(backbone).forward_features(backbone.preprocessing.normalise(images))
    torch.testing.assert_close(observed, bare, rtol=1e-3, atol=1e-4)
    # branches add up to the tokens: output = skip + attention branch + mlp branch
    for layer in range(3):
        (_, _, skip, attention), (_, _, after, mlp) = recorder.seen["branches"][2 * layer : 2 * layer + 2]
        torch.testing.assert_close(after, skip + attention)
        _, mixed, weight = recorder.seen["writes"][layer]
        rest = attention - mixed @ weight.T  # the projection's bias, the same for every token
        torch.testing.assert_close(rest, rest[:1, :1].expand_as(rest), rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(recorder.seen["tokens"][layer][1], after + mlp)
    assert [(layer, part) for layer, part, _ in recorder.seen["norms"][:2]] == [(0, "attention"), (0, "mlp")]


def test_attention_is_the_softmax_of_queries_and_keys() -> None:
    backbone = make("vit_tiny_patch16_224", 64, depth=2)
    images = torch.randint(0, 256, (1, 3, 64, 64), dtype=torch.uint8)
    recorder = Recorder("attention", "norms")
    backbone.trace(images, [recorder])
    block = inside(backbone).blocks[1]
    x = next(x for layer, part, x in recorder.seen["norms"] if (layer, part) == (1, "attention"))
    q, k, _ = block.attn.qkv(x).reshape(1, 17, 3, 3, 64).permute(2, 0, 3, 1, 4)
    expected = (q.double() @ k.double().transpose(-1, -2) / 8).softmax(-1)
    torch.testing.assert_close(recorder.seen["attention"][1][1].double(), expected, rtol=1e-4, atol=1e-6)


POOLING = [  # name, size, options; whether the head reads prefix tokens too
    ("vit_base_patch16_siglip_224", 64, {"embed_dim": 96, "num_heads": 3}, True),
    ("vit_pe_core_tiny_patch16_384", 64, {}, True),
    ("vit_tiny_patch16_224", 64, {"global_pool": "map", "pool_include_prefix": False}, False),
]


@pytest.mark.parametrize(("name", "size", "options", "whole"), POOLING)
def test_a_pooling_head_shows_where_it_looks_and_what_it_makes_of_the_image(
    name: str, size: int, options: dict[str, Any], whole: bool
) -> None:
    backbone = make(name, size, depth=2, **options)
    assert "pool" in backbone.shape.signals
    images = torch.randint(0, 256, (3, 3, size, size), dtype=torch.uint8)
    recorder = Recorder("pool")
    tokens = backbone.trace(images, [recorder])
    ((layer, probs, x),) = recorder.seen["pool"]
    head, spatial = inside(backbone).attn_pool.double(), backbone.layout.spatial
    assert layer == 1
    assert probs.shape == (3, head.num_heads, spatial)
    read = (tokens if whole else tokens[:, backbone.layout.prefix :]).double()
    query = head.q(head.latent).reshape(head.num_heads, 1, head.head_dim)
    key = head.kv(read)[..., : head.num_heads * head.head_dim].unflatten(-1, (head.num_heads, head.head_dim))
    scores = query @ head.k_norm(key.permute(0, 2, 3, 1)) / head.head_dim**0.5  # (B, H, 1, T)
    expected = scores.softmax(-1)[:, :, 0, -spatial:]
    torch.testing.assert_close(probs.double(), expected, rtol=1e-4, atol=1e-6)
    inside(backbone).float()
    with torch.no_grad():
        torch.testing.assert_close(x, inside(backbone).pool(tokens), rtol=1e-4, atol=1e-5)


def test_most_networks_have_no_pooling_head_to_show() -> None:
    backbone = make("vit_tiny_patch16_224", 64, depth=2)
    recorder = Recorder("pool")
    backbone.trace(torch.zeros(1, 3, 64, 64, dtype=torch.uint8), [recorder])
    assert recorder.seen["pool"] == []
    assert "pool" not in backbone.shape.signals


class Operations(TorchDispatchMode):
    """Names of all operations that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def test_without_attention_observers_the_fused_kernel_stays_on() -> None:
    backbone = make("vit_tiny_patch16_224", 64, depth=2)
    images = torch.zeros(1, 3, 64, 64, dtype=torch.uint8)
    for wants, fused in ((("tokens",), 2), (("tokens", "attention"), 0)):
        with Operations() as operations:
            backbone.trace(images, [Recorder(*wants)])
        assert sum("scaled_dot_product" in name for name in operations.names) == fused


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "beit_base_patch16_224"])  # without and with a bias
def test_attention_by_parts_is_that_of_the_unfused_path(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = make(name, 64, depth=2, embed_dim=96, num_heads=3)
    images = torch.randint(0, 256, (7, 3, 64, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(watched_attention, "CACHE", 3 * 4 * 3 * 17 * 17)  # three images
    shown: list[tuple[int, Tensor, Tensor | None]] = []

    class Sweeping(Recorder):
        def sweep(self, layer: int, probs: Tensor, scores: Tensor | None) -> None:
            shown.append((layer, probs.clone(), None if scores is None else scores.clone()))

    parts, whole = Sweeping("attention", "tokens"), Recorder("attention", "tokens")
    backbone.trace(images, [parts])
    for block in inside(backbone).blocks:
        attention_module(block).fused_attn = False  # type: ignore[assignment]
    backbone.trace(images, [whole])
    assert [(layer, len(probs)) for layer, probs, _ in shown] == [(layer, n) for layer in (0, 1) for n in (3, 3, 1)]
    for layer in (0, 1):
        torch.testing.assert_close(
            torch.cat([p for at, p, _ in shown if at == layer]), whole.seen["attention"][layer][1]
        )
        torch.testing.assert_close(parts.seen["attention"][layer][1], whole.seen["attention"][layer][1])
        torch.testing.assert_close(parts.seen["tokens"][layer][1], whole.seen["tokens"][layer][1])
    for _, probs, scores in shown:
        assert (scores is None) == name.startswith("beit")
        if scores is not None:
            assert scores.amax(-1).count_nonzero() == 0
            torch.testing.assert_close(scores.softmax(-1), probs)


def test_an_observer_that_writes_is_caught_and_the_module_is_restored() -> None:
    backbone = make("vit_tiny_patch16_224", 64, depth=2)

    class Vandal(Recorder):
        def attention(self, layer: int, probs: Tensor) -> None:
            probs[..., 0] = 0

    with pytest.raises(RuntimeError, match="Vandal wrote into the attention"):
        backbone.trace(torch.zeros(1, 3, 64, 64, dtype=torch.uint8), [Vandal("attention")])
    assert all(attention_module(block).fused_attn for block in inside(backbone).blocks)
    assert not inside(backbone).blocks[0].attn.attn_drop._forward_pre_hooks


def test_a_block_that_does_not_report_is_an_error() -> None:
    backbone = make("vit_tiny_patch16_224", 64, depth=3)
    lazy = inside(backbone).blocks[1]
    lazy.forward = lambda x: x  # as if its kernel skipped the module that hooks listen to
    with pytest.raises(UnsupportedModel, match="block 2 reported its  attention 0 times"):
        backbone.trace(torch.zeros(1, 3, 64, 64, dtype=torch.uint8), [Recorder("attention")])


def test_unknown_signals_are_refused() -> None:
    backbone = make("vit_tiny_patch16_224", 64, depth=1)
    with pytest.raises(ValueError, match="unknown signals"):
        trace(backbone.module, torch.zeros(1, 3, 64, 64), [Recorder("gradients")], layout=backbone.layout)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("samvit_base_patch16_224", "within windows"),
        ("swin_tiny_patch4_window7_224", "no single stack of blocks"),
        ("hiera_tiny_224", "cannot be observed"),
        ("cait_xxs24_224", "cannot be observed"),
        ("resnet18", "no single stack of blocks"),
    ],
)
def test_models_that_cannot_be_observed_are_refused_by_name(name: str, reason: str) -> None:
    with pytest.raises(UnsupportedModel, match=reason) as error:
        Backbone(name, timm.create_model(name, num_classes=0), Preprocessing((224, 224)))
    assert name in str(error.value)


def test_what_a_block_cannot_show_is_refused() -> None:
    backbone = make("vit_tiny_patch16_224", 64, depth=2, block_fn=timm.models.vision_transformer.ParallelScalingBlock)
    images = torch.zeros(1, 3, 64, 64, dtype=torch.uint8)
    backbone.trace(images, [Recorder("attention", "tokens")])  # these it shows
    with pytest.raises(UnsupportedModel, match="residual branches"):
        backbone.trace(images, [Recorder("branches")])
    with pytest.raises(UnsupportedModel, match="input of each branch"):
        backbone.trace(images, [Recorder("norms")])


def test_differential_attention_is_refused() -> None:
    block = timm.models.vision_transformer.DiffParallelScalingBlock
    with pytest.raises(UnsupportedModel, match="differential"):
        make("vit_tiny_patch16_224", 64, depth=2, block_fn=block)


def test_pictures_of_another_size_are_an_error() -> None:
    backbone = make("vit_tiny_patch16_224", 64, depth=1)
    with pytest.raises(ValueError, match="takes"):
        backbone.trace(torch.zeros(1, 3, 32, 32, dtype=torch.uint8))
