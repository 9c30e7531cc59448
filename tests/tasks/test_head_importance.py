"""Mean replacement: heads that say nothing new, an effect by hand, and a network that is really edited, in float64."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

import vitscope
from vitscope.core.errors import BadData
from vitscope.data.batches import Batch, SkippedImages
from vitscope.data.preprocessing import Preprocessing
from vitscope.models.backbone import Backbone
from vitscope.pipeline.registry import default_analyses
from vitscope.tasks.head_importance import HeadImportance, MeanOutputs, recognised, replaced_features
from vitscope.tasks.robustness import drift


def network(name: str = "vit_tiny_patch16_224", size: int = 32, **options: Any) -> Backbone:
    """Weights large enough that heads matter: timm's would let the skip connection say everything."""
    torch.manual_seed(0)
    module = timm.create_model(name, num_classes=0, img_size=size, **options)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return Backbone(name, module, Preprocessing((size, size)))


def shown(backbone: Backbone, count: int = 6, each: int = 4) -> list[Batch]:
    pixels = torch.randint(0, 256, (count, 3, *backbone.preprocessing.size), generator=torch.Generator().manual_seed(1))
    parts = pixels.to(torch.uint8).split(each)
    return [Batch(part, torch.arange(len(part)), ["x"] * len(part), None, None) for part in parts]


def importance(backbone: Backbone, batches: list[Batch]) -> Tensor:
    """(n, L, H)"""
    means = MeanOutputs(range(backbone.depth))
    for batch in batches:
        backbone.trace(batch.images, [means])
    found = []
    for layer in range(backbone.depth):
        features = replaced_features(backbone, batches, layer, means.of(layer))
        found.append(drift(features[:, :1], features[:, 1:]))
    return torch.stack(found, 1)


class Edited(nn.Module):
    """timm's attention, written out; one head's output is what it was told to be."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.attention = attention
        self.head: int | None = None
        self.told: Tensor | None = None  # (T, d)
        self.seen: Tensor | None = None  # (B, H, T, d)

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        inner = self.attention
        batch, tokens, width = x.shape
        q, k, v = inner.qkv(x).reshape(batch, tokens, 3, inner.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k = inner.q_norm(q), inner.k_norm(k)
        self.seen = ((q @ k.mT) / q.shape[-1] ** 0.5).softmax(-1) @ v
        mixed = self.seen.clone()
        if self.head is not None:
            assert self.told is not None
            mixed[:, self.head] = self.told
        projected: Tensor = inner.proj(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return projected


FAMILIES = [
    ("vit_tiny_patch16_224", {}),
    ("vit_tiny_patch16_224", {"qk_norm": True, "init_values": 0.5}),
    ("vit_base_patch16_siglip_224", {"embed_dim": 96, "num_heads": 3}),  # no CLS: the mean patch
    ("vit_small_patch16_224", {"reg_tokens": 4, "num_heads": 2, "embed_dim": 64}),
]


@pytest.mark.parametrize(("name", "options"), FAMILIES)
def test_it_is_what_editing_the_network_does(name: str, options: dict[str, Any]) -> None:
    backbone = network(name, depth=3, **options)
    batches = shown(backbone)
    found = importance(backbone, batches)

    slow: Any = copy.deepcopy(backbone.module).double()
    pixels = torch.cat([batch.images for batch in batches])
    images = backbone.preprocessing.normalise(pixels).double()
    for block in slow.blocks:
        block.attn = Edited(block.attn)

    def feature() -> Tensor:
        tokens: list[Tensor] = []
        handle = slow.blocks[-1].register_forward_hook(lambda _m, _a, out: tokens.append(out))
        slow.forward_features(images)
        handle.remove()
        prefix = backbone.layout.prefix
        return tokens[0][:, 0] if backbone.layout.has_cls else tokens[0][:, prefix:].mean(1)

    with torch.no_grad():
        whole = feature()
        usual = [block.attn.seen.mean(0) for block in slow.blocks]  # (H, T, d)
        for layer, block in enumerate(slow.blocks):
            for head in range(backbone.heads):
                block.attn.head, block.attn.told = head, usual[layer][head]
                expected = 1 - (F.normalize(whole, dim=1) * F.normalize(feature(), dim=1)).sum(1)
                torch.testing.assert_close(found[:, layer, head], expected, rtol=2e-3, atol=2e-6)
                block.attn.head = None
    assert found.mean() > 1e-4  # far above what rounding leaves


def test_a_head_that_says_the_same_of_every_image_has_none() -> None:
    backbone = network(depth=2)
    module: Any = backbone.module
    width = backbone.width // backbone.heads
    with torch.no_grad():  # the values of head 2 in block 1 are their bias, whatever the image
        module.blocks[0].attn.qkv.weight[2 * backbone.width + width : 2 * backbone.width + 2 * width] = 0
    found = importance(backbone, shown(backbone))
    assert found[:, 0, 1].abs().max() < 1e-6
    assert found[:, 0, 0].min() > 1e-4


def test_an_effect_that_can_be_worked_out_by_hand() -> None:
    """One block without MLP and with even attention: CLS gets the mean token, two channels from each of two heads."""
    backbone = network(depth=1, embed_dim=4, num_heads=2)
    module: Any = backbone.module
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        block = module.blocks[0]
        block.norm1 = nn.Identity()
        block.attn.qkv.weight[8:] = torch.eye(4)  # values are tokens; queries and keys 0: attention is even
        block.attn.proj.weight += torch.eye(4)
        module.cls_token[0, 0] = torch.tensor([0.0, 0.0, 0.0, 5.0])
        module.patch_embed.proj.weight[0, 0] = 1 / 256  # channel 0: mean red of a patch
        module.patch_embed.proj.weight[2, 1] = 1 / 256  # channel 2: mean green of it
    backbone.preprocessing = Preprocessing((32, 32), mean=(0, 0, 0), std=(1, 1, 1))
    pixels = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)
    pixels[0, 0], pixels[1, 1] = 255, 255  # one image is red, the other green
    batches = [Batch(pixels, torch.arange(2), ["red", "green"], None, None)]
    found = importance(backbone, batches)[:, 0]  # (2, H)
    # CLS becomes (0, 0, 0, 5) + mean of five tokens: (.8 r, 0, .8 g, 6); a head of two channels each
    red, without_first, without_second = np.array([0.8, 0, 0, 6]), np.array([0.4, 0, 0, 6]), np.array([0.8, 0, 0.4, 6])
    expected = [
        1 - red @ other / np.linalg.norm(red) / np.linalg.norm(other) for other in (without_first, without_second)
    ]
    assert found[0].tolist() == pytest.approx(expected, abs=1e-6)
    green, without_first, without_second = (
        np.array([0, 0, 0.8, 6]),
        np.array([0.4, 0, 0.8, 6]),
        np.array([0, 0, 0.4, 6]),
    )
    expected = [
        1 - green @ other / np.linalg.norm(green) / np.linalg.norm(other) for other in (without_first, without_second)
    ]
    assert found[1].tolist() == pytest.approx(expected, abs=1e-6)


def test_nearest_others_vote() -> None:
    features = torch.tensor([[1.0, 0], [1, 0.1], [0, 1], [0.1, 1], [1, 0.05]])
    assert recognised(features, torch.tensor([0, 0, 1, 1, 1])).tolist() == [False, False, True, True, False]
    assert recognised(features[:4], torch.tensor([0, 0, 1, 1])).all()


def test_the_network_is_left_as_it_was() -> None:
    backbone = network(depth=2)
    before = backbone.trace(shown(backbone)[0].images)
    importance(backbone, shown(backbone))
    assert torch.equal(backbone.trace(shown(backbone)[0].images), before)


def coloured(root: Path, count: int = 5) -> Path:
    generator = np.random.default_rng(0)
    for channel, name in enumerate(("blue", "green", "red")):
        for number in range(count):
            pixels = generator.integers(0, 90, (40, 40, 3), dtype=np.uint8)
            pixels[..., 2 - channel] += 120
            (root / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(root / name / f"{number}.png")
    return root


def test_every_head_of_a_study(tmp_path: Path) -> None:
    assert "importance" not in {a.name for a in default_analyses({"images"})}  # asked for by name
    photos = coloured(tmp_path / "photos")
    options: dict[str, Any] = {"on": vitscope.images(photos), "analyses": [HeadImportance(images=9)]}
    results = vitscope.evaluate("zoo/dino", **options)
    rows = results["head_importance"]
    shape = vitscope.resolve("zoo/dino").shape
    assert len(rows) == shape.depth * shape.heads
    assert set(rows["variant"]) == {"cls"}
    assert set(rows["n"]) == {9}
    assert (rows["ci_low"] <= rows["value"]).all()
    assert (rows["value"] <= rows["ci_high"]).all()
    assert rows["value"].is_between(0, 2).all()
    assert rows["value"].max() > 1e-4  # type: ignore[operator]
    assert results["head_importance_knn"]["value"].is_between(-1, 1).all()
    results.write_report(tmp_path / "page.html")
    assert "head_importance" in (tmp_path / "page.html").read_text()
    (photos / "green" / "0.png").write_bytes(b"no image")
    again = vitscope.evaluate("zoo/dino", on=vitscope.images(photos), analyses=[HeadImportance()])
    assert set(again["head_importance"]["n"]) == {14}
    assert list(again.skipped) == ["photos/green/0.png"]


def test_one_image_has_no_mean_of_its_own(tmp_path: Path) -> None:
    photos = coloured(tmp_path, 1)
    dataset = vitscope.images(photos).limit(1)
    with pytest.raises(BadData, match="two images"):
        HeadImportance().drive(network(depth=1), dataset, range(1), SkippedImages())
