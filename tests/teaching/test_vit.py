"""Networks with rotary positions: the quick way through their blocks against timm's own, and patches left out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor

from tests.teaching.tiny import ROTARY as OPTIONS
from tests.teaching.tiny import ROTARY_ARCH as ARCH
from tests.teaching.tiny import squares
from vitscope.core.observer import Observer
from vitscope.data.preprocessing import Preprocessing
from vitscope.models.backbone import Backbone
from vitscope.teaching.teachers.base import Lesson
from vitscope.teaching.teachers.registry import TEACHERS, create_teacher, recipe_for
from vitscope.teaching.vit import MLP, Tokens, blockwise, create_encoder, run_blocks, summary, tokens_of


@pytest.fixture
def rotary() -> Any:
    vit = create_encoder(ARCH, OPTIONS, 0)
    for parameter in vit.parameters():  # beginnings of zero would hide a bias that is left out
        torch.nn.init.normal_(parameter, std=0.6)
    return vit


@pytest.mark.parametrize("changes", [{}, {"attn_type": "eva"}, {"rope_rotate_half": True}, {"init_values": 0.5}])
def test_the_quick_way_computes_what_timm_does(changes: dict[str, Any]) -> None:
    vit = create_encoder(ARCH, {**OPTIONS, **changes}, 0)
    images = torch.rand(3, 3, 16, 16)
    torch.testing.assert_close(run_blocks(vit, tokens_of(vit, vit.patch_embed(images))), vit.forward_features(images))
    torch.testing.assert_close(summary(vit, images), vit(images))


@pytest.mark.parametrize("fitting", [1, 2, 100])
def test_a_few_images_at_a_time_are_the_same(rotary: Any, fitting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tokens_of(rotary, rotary.patch_embed(torch.rand(5, 3, 16, 16)))
    some = whole.keep(torch.rand(5, whole.x.shape[1] - whole.prefix).argsort(1)[:, :3])  # each image has its own
    wanted = [rotary.norm([*blockwise(rotary, tokens)][-1]) for tokens in (whole, some)]
    monkeypatch.setattr("vitscope.teaching.vit.CACHE", fitting * MLP * some.x[0].numel() * 4)
    assert len(some.parts()) == {1: 5, 2: 3, 100: 1}[fitting]
    for tokens, expected in zip((whole, some), wanted, strict=True):
        torch.testing.assert_close(run_blocks(rotary, tokens), expected)


def test_gradients_are_timms(rotary: Any) -> None:
    images = torch.rand(3, 3, 16, 16)
    rotary(images).square().sum().backward()
    wanted = {name: parameter.grad.clone() for name, parameter in rotary.named_parameters()}
    rotary.zero_grad()
    summary(rotary, images).square().sum().backward()
    for name, parameter in rotary.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name], rtol=1e-3, atol=1e-4)


def test_patches_that_are_kept_keep_their_positions(rotary: Any) -> None:
    """With a mask that hides the others in timm's own blocks, the same outputs."""
    images, kept = torch.rand(2, 3, 16, 16), torch.tensor([[0, 5, 6], [15, 2, 9]])
    tokens = tokens_of(rotary, rotary.patch_embed(images))
    found = run_blocks(rotary, tokens.keep(kept))  # (2, 1 + 3, D)
    for image, patches in enumerate(kept):
        seen = torch.zeros(17, dtype=torch.bool)
        seen[[0, *(patches + 1).tolist()]] = True
        x = tokens.x[image : image + 1]
        for block in rotary.blocks:
            x = block(x, rope=tokens.rope, attn_mask=seen[None, None, None, :])
        wanted = rotary.norm(x)[0][[0, *(patches + 1).tolist()]]
        torch.testing.assert_close(found[image], wanted, rtol=1e-4, atol=1e-4)


def test_rotations_matter(rotary: Any) -> None:
    tokens = tokens_of(rotary, rotary.patch_embed(torch.rand(2, 3, 16, 16)))
    without = run_blocks(rotary, Tokens(tokens.x, tokens.prefix))
    assert (run_blocks(rotary, tokens) - without).abs().max() > 0.05


def test_the_same_seed_gives_the_same_network_and_every_size_shares_it() -> None:
    first, again = create_encoder(ARCH, OPTIONS, 3), create_encoder(ARCH, OPTIONS, 3, any_size=True)
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in first.state_dict().items())
    assert summary(again, torch.rand(2, 3, 8, 8)).shape == (2, 16)


@pytest.mark.parametrize("key", TEACHERS)
def test_every_teacher_teaches_it(key: Any) -> None:
    images = squares()
    changes = {"words": 32} if key == "beit" else {}
    teacher = create_teacher(key, ARCH, OPTIONS, images, seed=0, recipe=recipe_for(key, changes)).train()
    indices = list(range(8))
    loss, _ = teacher(images.lesson(indices, images.take(indices)))
    loss.backward()
    taught = [name for name, p in teacher.named_parameters() if p.requires_grad and p.grad is None]
    assert not [name for name in taught if "blocks" in name]


def test_its_attention_is_observed_and_layers_are_what_the_trace_sees(rotary: Any) -> None:
    backbone = Backbone("rotary", rotary, Preprocessing((16, 16), (0.5,) * 3, (0.5,) * 3, "bicubic"))

    class Eyes(Observer):
        wants = frozenset({"attention", "tokens", "norms", "branches"})

        def __init__(self) -> None:
            self.maps: list[Tensor] = []
            self.outputs: list[Tensor] = []

        def attention(self, layer: int, probs: Tensor) -> None:
            self.maps.append(probs)

        def tokens(self, layer: int, x: Tensor) -> None:
            self.outputs.append(x)

    eyes, images = Eyes(), torch.randint(256, (3, 3, 16, 16), dtype=torch.uint8)
    backbone.trace(images, [eyes])
    assert [probs.shape for probs in eyes.maps] == [(3, 2, 17, 17)] * 2
    torch.testing.assert_close(eyes.maps[0].sum(-1), torch.ones(3, 2, 17))


def test_a_lesson_needs_no_rotation(vit: VisionTransformer) -> None:
    """The networks of before take the same way."""
    images = torch.rand(2, 3, 16, 16)
    torch.testing.assert_close(summary(vit, images), vit(images))
    assert summary(vit, images, kept=0.25).shape == (2, 16)
    assert Lesson(images).labels is None
