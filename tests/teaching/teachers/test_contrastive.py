"""MoCo-v3 and CLIP: losses against float64 loops and transformers; what gradients and bounds do."""

from __future__ import annotations

import math

import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from torch.nn import functional as F

from tests.support.releases import since
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.base import Lesson
from vitscope.teaching.teachers.clip import END, PAD, UNKNOWN, Clip, TextEncoder, Vocabulary
from vitscope.teaching.teachers.clip import contrast as clip_contrast
from vitscope.teaching.teachers.moco import Moco, MocoRecipe
from vitscope.teaching.teachers.moco import contrast as moco_contrast

CAPTIONS: list[tuple[str, ...]] = [("a red fox",), ("a blue whale at sea",), ("two owls",), ("a fox",)]


def test_moco_contrast_is_info_nce_written_out() -> None:
    queries, keys = torch.randn(5, 7).double(), torch.randn(5, 7).double()
    expected = 0.0
    for i in range(5):
        cosines = [float(queries[i] @ k / queries[i].norm() / k.norm()) / 0.2 for k in keys]
        expected += -cosines[i] + math.log(sum(math.exp(c) for c in cosines))
    loss, _ = moco_contrast(queries, keys, temperature=0.2)
    assert float(loss) == pytest.approx(2 * 0.2 * expected / 5)


def test_moco_is_symmetric_and_compares_each_view_with_the_other(vit: VisionTransformer) -> None:
    teacher = Moco(vit, MocoRecipe(hidden=32, joint=8))
    images = torch.rand(6, 3, 16, 16)
    views = iter([images, images.flip(3)])
    object.__setattr__(teacher.recipe, "view", lambda _images, _size: next(views))
    loss, _ = teacher.loss(Lesson(images))
    # written out with the parts of the teacher, in evaluation order of the paper's pseudo code
    first, second = images * 2 - 1, images.flip(3) * 2 - 1
    q1, q2 = (teacher.predict(teacher.project(teacher.vit(v))) for v in (first, second))
    k1, k2 = (teacher.momentum_project(teacher.momentum_vit(v)) for v in (first, second))
    expected = sum(
        2 * 0.2 * F.cross_entropy(F.normalize(q) @ F.normalize(k).T / 0.2, torch.arange(6))
        for q, k in ((q1, k2), (q2, k1))
    )
    torch.testing.assert_close(loss, expected)


def test_moco_momentum_encoder_gets_no_gradient_and_follows(vit: VisionTransformer) -> None:
    teacher = Moco(vit, MocoRecipe(hidden=32, joint=8, momentum=0.75))
    before = teacher.momentum_vit.get_parameter("blocks.0.attn.qkv.weight").clone()
    teacher.loss(Lesson(torch.rand(4, 3, 16, 16)))[0].backward()
    assert all(p.grad is None for p in teacher.momentum_vit.parameters())
    with torch.no_grad():
        for parameter in teacher.vit.parameters():
            parameter.add_(1.0)
    teacher.after_step(Schedule(warmup=0).at(5))
    torch.testing.assert_close(teacher.momentum_vit.get_parameter("blocks.0.attn.qkv.weight"), before + 0.25)
    teacher.after_step(Schedule(warmup=0, total=10, cooldown=10).at(10))  # momentum has risen to 1
    torch.testing.assert_close(teacher.momentum_vit.get_parameter("blocks.0.attn.qkv.weight"), before + 0.25)


@since("transformers", 5)
def test_clip_contrast_equals_transformers() -> None:
    from transformers.models.clip.modeling_clip import image_text_contrastive_loss

    image, text = F.normalize(torch.randn(6, 8)), F.normalize(torch.randn(6, 8))
    scale = torch.tensor(9.0)
    loss, accuracy = clip_contrast(image, text, scale)
    torch.testing.assert_close(loss, image_text_contrastive_loss(scale * text @ image.T))
    assert accuracy == ((image @ text.T).argmax(1) == torch.arange(6)).float().mean()


def test_clips_logit_scale_is_bounded(vit: VisionTransformer) -> None:
    teacher = Clip(vit, Vocabulary.of((c for said in CAPTIONS for c in said), 50))
    assert teacher.scale.detach().exp().item() == pytest.approx(1 / 0.07)
    with torch.no_grad():
        teacher.scale.fill_(50.0)
    teacher.after_step(Schedule(warmup=0).at(0))
    assert teacher.scale.detach().exp().item() == pytest.approx(100)


def test_clip_loss_teaches_both_towers(vit: VisionTransformer) -> None:
    teacher = Clip(vit, Vocabulary.of((c for said in CAPTIONS for c in said), 50))
    loss, _ = teacher.loss(Lesson(torch.rand(4, 3, 16, 16), captions=CAPTIONS))
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in teacher.parameters())


def test_words_become_numbers_by_frequency_then_alphabet() -> None:
    vocabulary = Vocabulary.of(["b a", "b c!", "B, a"], size=2)
    assert vocabulary.words == ("b", "a")
    assert vocabulary.encode(["a c B", "b"], 6).tolist() == [
        [4, UNKNOWN, 3, END, PAD, PAD],
        [3, END, *[PAD] * 4],
    ]


def test_a_long_caption_keeps_its_end_token() -> None:
    assert Vocabulary(["x"]).encode(["x x x x"], 3).tolist() == [[3, 3, END]]


def test_padding_does_not_change_what_a_caption_means() -> None:
    vocabulary = Vocabulary(["x", "y"])
    encoder = TextEncoder(len(vocabulary), length=8, width=16, depth=2, heads=2).eval()
    alone = encoder(vocabulary.encode(["x y"], 8))
    beside = encoder(vocabulary.encode(["x y", "y y y y y x"], 8))
    torch.testing.assert_close(beside[:1], alone)
