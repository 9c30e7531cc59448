"""MAE and BEiT: parity with transformers, and what the network may and may not see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from torch.nn import functional as F
from transformers import ViTMAEConfig, ViTMAEForPreTraining

from tests.support.releases import since
from vitscope.core.errors import BadData
from vitscope.teaching.teachers.base import Lesson
from vitscope.teaching.teachers.beit import Beit, BeitRecipe, block_masks, learn_codebook, nearest_words
from vitscope.teaching.teachers.mae import Mae
from vitscope.teaching.vit import patchify


def transformers_mae(teacher: Mae) -> ViTMAEForPreTraining:
    """The same network, built by transformers."""
    config = ViTMAEConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=16, patch_size=4,
        decoder_hidden_size=64, decoder_num_hidden_layers=2, decoder_num_attention_heads=4,
        decoder_intermediate_size=256, norm_pix_loss=True, mask_ratio=0.75, layer_norm_eps=1e-6,
    )  # fmt: skip
    ours, theirs = teacher.state_dict(), ViTMAEForPreTraining(config)
    renamed = {
        "vit.embeddings.cls_token": ours["vit.cls_token"],
        "vit.embeddings.position_embeddings": ours["vit.pos_embed"],
        "decoder.mask_token": ours["mask_token"],
        "decoder.decoder_pos_embed": F.pad(ours["decoder_positions"], (0, 0, 1, 0)),
    }
    for our, their in (
        ("vit.patch_embed.proj", "vit.embeddings.patch_embeddings.projection"),
        ("vit.norm", "vit.layernorm"),
        ("to_decoder", "decoder.decoder_embed"),
        ("decoder_norm", "decoder.decoder_norm"),
        ("to_pixels", "decoder.decoder_pred"),
        *(pair for i in range(2) for pair in block_names(f"vit.blocks.{i}", f"vit.layers.{i}")),
        *(pair for i in range(2) for pair in block_names(f"decoder.{i}", f"decoder.decoder_layers.{i}")),
    ):
        for kind in ("weight", "bias"):
            renamed[f"{their}.{kind}"] = ours[f"{our}.{kind}"]
    for our, their in [(f"vit.blocks.{i}", f"vit.layers.{i}") for i in range(2)] + [
        (f"decoder.{i}", f"decoder.decoder_layers.{i}") for i in range(2)
    ]:
        for kind in ("weight", "bias"):
            for name, part in zip("qkv", ours[f"{our}.attn.qkv.{kind}"].chunk(3), strict=True):
                renamed[f"{their}.attention.{name}_proj.{kind}"] = part
    theirs.load_state_dict(renamed)
    return theirs.eval()


def block_names(our: str, their: str) -> list[tuple[str, str]]:
    parts = {
        "norm1": "layernorm_before",
        "norm2": "layernorm_after",
        "attn.proj": "attention.o_proj",
        "mlp.fc1": "mlp.fc1",
        "mlp.fc2": "mlp.fc2",
    }
    return [(f"{our}.{a}", f"{their}.{b}") for a, b in parts.items()]


@since("transformers", 5)  # which names its layers otherwise
def test_mae_loss_equals_transformers(vit: VisionTransformer) -> None:
    teacher = Mae(vit).eval()
    for module in teacher.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6  # transformers has one for all
    view, noise = torch.randn(3, 3, 16, 16), torch.rand(3, 16)
    expected = transformers_mae(teacher)(view, noise=noise).loss
    torch.testing.assert_close(teacher.repaint(view, noise.argsort(1))[0], expected, atol=1e-5, rtol=1e-5)


def test_mae_hides_three_quarters(vit: VisionTransformer) -> None:
    assert Mae(vit).visible_patches == 4  # of 16


def test_mae_never_sees_hidden_patches(vit: VisionTransformer) -> None:
    teacher = Mae(vit)
    view = torch.randn(2, 3, 16, 16, requires_grad=True)
    order = torch.rand(2, 16).argsort(1)
    latent = teacher.encode(view, order[:, :4])
    latent.square().sum().backward()
    assert view.grad is not None
    touched = patchify(view.grad, (4, 4)).abs().sum(2) > 0  # (2, 16)
    expected = torch.zeros(2, 16, dtype=torch.bool).scatter_(1, order[:, :4], True)
    assert torch.equal(touched, expected)
    assert latent.shape == (2, 1 + 4, 16)


def test_mae_scores_hidden_patches_only(vit: VisionTransformer, monkeypatch: pytest.MonkeyPatch) -> None:
    teacher = Mae(vit)
    view, order = torch.randn(2, 3, 16, 16), torch.rand(2, 16).argsort(1)
    guess = teacher.decode(teacher.encode(view, order[:, :4]), order)
    guess.retain_grad()
    monkeypatch.setattr(teacher, "decode", lambda latent, order: guess)
    teacher.repaint(view, order)[0].backward()
    assert guess.grad is not None
    scored = guess.grad.abs().sum(2) > 0
    expected = torch.ones(2, 16, dtype=torch.bool).scatter_(1, order[:, :4], False)
    assert torch.equal(scored, expected)


@pytest.fixture
def beit(vit: VisionTransformer) -> Any:
    return Beit(vit, torch.rand(20, 4 * 4 * 3), BeitRecipe(words=20))


def test_beit_never_sees_masked_patches(beit: Any) -> None:
    view = torch.randn(2, 3, 16, 16, requires_grad=True)
    masked = torch.rand(2, 16) < 0.5
    beit.encode(view, masked).square().sum().backward()
    assert view.grad is not None
    touched = patchify(view.grad, (4, 4)).abs().sum(2) > 0
    assert torch.equal(touched, ~masked)


def test_beit_predicts_only_masked_tokens(beit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    masked = torch.zeros(2, 16, dtype=torch.bool)
    masked[0, [3, 7]] = masked[1, 11] = True
    monkeypatch.setattr("vitscope.teaching.teachers.beit.block_masks", lambda *_: masked)
    object.__setattr__(beit.recipe, "view", lambda images, _size: images)
    images = torch.rand(2, 3, 16, 16)
    loss, _ = beit.loss(Lesson(images))
    logits = beit.classifier(beit.encode(images * 2 - 1, masked))
    patches = patchify(images, (4, 4))
    terms = []
    for b, n in ((0, 3), (0, 7), (1, 11)):
        word = min(range(20), key=lambda w: float((patches[b, n] - beit.codebook[w]).square().sum()))
        terms.append(-float(logits[b, n].detach().double().log_softmax(0)[word]))
    assert float(loss.detach()) == pytest.approx(sum(terms) / 3, rel=1e-5)


def test_block_masks_cover_about_the_share_in_blocks() -> None:
    torch.manual_seed(0)
    masks = block_masks(300, (8, 8), 0.45)
    counts = masks.sum(1)
    assert counts.max() <= round(0.45 * 64)
    assert counts.float().mean() > 0.38 * 64
    grids = masks.view(300, 8, 8)
    beside = (grids[:, :, 1:] == grids[:, :, :-1]).float().mean()
    assert beside > 0.75  # independent patches at this share agree with probability 0.51
    assert grids.float().mean(0).min() > 0.1  # every place is hidden at times
    torch.manual_seed(0)
    assert torch.equal(masks, block_masks(300, (8, 8), 0.45))


def test_a_mask_of_a_tiny_grid_hides_something_but_not_everything() -> None:
    masks = block_masks(50, (2, 2), 0.45)
    assert ((masks.sum(1) >= 1) & (masks.sum(1) <= 2)).all()


def test_nearest_words_are_the_nearest() -> None:
    patches, codebook = torch.rand(2, 5, 12), torch.rand(7, 12)
    assert torch.equal(nearest_words(patches, codebook), torch.cdist(patches, codebook).argmin(2))


def test_the_codebook_finds_the_kinds_of_patches() -> None:
    random = np.random.default_rng(0)
    kinds = torch.from_numpy(random.random((5, 3))).float()
    colours = kinds[torch.from_numpy(random.integers(0, 5, (40, 16)))]  # (40, 16, 3)
    images = colours.view(40, 4, 4, 3).permute(0, 3, 1, 2).repeat_interleave(4, 2).repeat_interleave(4, 3)
    images = images + 0.001 * torch.randn(images.shape)
    codebook = learn_codebook(images, (4, 4), words=5, seed=0)
    means = codebook.view(5, 16, 3).mean(1)
    assert torch.cdist(kinds, means).min(1).values.max() < 0.01


def test_too_few_patches_for_a_codebook_are_refused() -> None:
    with pytest.raises(BadData, match="fewer than 30 different patches"):
        learn_codebook(torch.zeros(4, 3, 16, 16), (4, 4), words=30, seed=0)


def test_patches_are_row_by_row_and_channels_last() -> None:
    image = torch.arange(3 * 4 * 4).view(1, 3, 4, 4)
    patches = patchify(image, (2, 2))
    assert patches.shape == (1, 4, 12)
    assert patches[0, 1].tolist() == [2, 18, 34, 3, 19, 35, 6, 22, 38, 7, 23, 39]
