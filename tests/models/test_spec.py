"""Names to models: catalogue, timm, baselines, files, cards, and clear refusals; the same model is known again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import Tensor

import vitscope
from tests.models.checkpoints.conftest import clip_image_tower
from vitscope.core.errors import MissingWeights, UnsupportedModel, VitscopeError
from vitscope.core.observer import Observer
from vitscope.data.preprocessing import HALF, IMAGENET
from vitscope.models.card import read_card
from vitscope.models.catalogue import CATALOGUE
from vitscope.models.listing import listings
from vitscope.models.several import distinct
from vitscope.models.spec import load_model, resolve

TINY = "random:vit_tiny_patch16_224"


@pytest.fixture(autouse=True)
def no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITSCOPE_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_missing_weights_name_the_file_and_the_places() -> None:
    with pytest.raises(MissingWeights) as error:
        load_model("moco-b16")
    text = str(error.value)
    assert "vit-b-300ep.pth.tar" in text
    assert "weights" in text
    with pytest.raises(MissingWeights, match=r"timm/vit_base_patch16_224\.mae"):
        load_model("mae-b16")
    with pytest.raises(MissingWeights, match=r"timm/vit_base_patch14_dinov2\.lvd142m"):
        load_model("vit_base_patch14_dinov2.lvd142m")


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(VitscopeError, match="dino-b16"):
        load_model("dino-b61")
    with pytest.raises(VitscopeError, match="did you mean"):
        load_model("random:vit_bose_patch16_224")


def test_untrained_networks_are_seeded() -> None:
    first, again, other = (load_model("random:vit_tiny_patch16_224", size=64, seed=s) for s in (3, 3, 4))
    assert first.weights_digest == again.weights_digest != other.weights_digest
    assert first.teaching == "none"
    state = torch.random.get_rng_state()
    load_model("random:vit_tiny_patch16_224", size=64)
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_tag_brings_its_preprocessing() -> None:
    assert load_model("random:vit_small_patch16_224.dino", size=64).preprocessing.mean == IMAGENET[0]
    assert load_model("random:vit_small_patch16_224.augreg_in1k", size=64).preprocessing.mean == HALF[0]


class Attention(Observer):
    wants = frozenset({"attention", "tokens"})

    def __init__(self) -> None:
        self.probs: list[Tensor] = []
        self.features: list[Tensor] = []

    def attention(self, layer: int, probs: Tensor) -> None:
        self.probs.append(probs)

    def tokens(self, layer: int, x: Tensor) -> None:
        self.features.append(x)


@pytest.mark.parametrize(("kind", "axis"), [("noise", 3), ("noise-paper", 2)])
def test_noise_baselines(kind: str, axis: int) -> None:
    backbone = load_model(f"{kind}:vit_tiny_patch16_224", size=64)
    images = torch.randint(0, 256, (3, 3, 64, 64), dtype=torch.uint8)
    whole, single = Attention(), Attention()
    backbone.trace(images, [whole])
    backbone.trace(images[1:2], [single])
    assert torch.equal(whole.probs[5][1], single.probs[5][0])  # an image meets the same noise in any batch
    assert torch.equal(whole.features[5][1], single.features[5][0])
    assert not torch.equal(whole.probs[5][0], whole.probs[5][1])
    sums = whole.probs[0].sum(axis)
    torch.testing.assert_close(sums, torch.full_like(sums, 1.0 if kind == "noise" else 17.0), rtol=1e-5, atol=0)


def small_file(path: Path, **options: Any) -> Any:
    torch.manual_seed(1)
    module = timm.create_model("vit_tiny_patch16_224", num_classes=0, depth=2, img_size=64, **options)
    save_file(module.state_dict(), path)
    return module


def test_a_model_card(tmp_path: Path) -> None:
    module = small_file(tmp_path / "my.safetensors")
    (tmp_path / "my.toml").write_text(
        'name = "mine"\narchitecture = "vit_tiny_patch16_224"\nweights = "my.safetensors"\nteaching = "dino"\n'
        "[options]\ndepth = 2\nimg_size = 64\n[preprocessing]\nmean = [0.1, 0.2, 0.3]\n[provenance]\nepochs = 3\n"
    )
    backbone = load_model(tmp_path / "my.toml")
    found: Any = backbone.module
    assert (backbone.name, backbone.teaching, backbone.depth) == ("mine", "dino", 2)
    assert backbone.preprocessing.mean == (0.1, 0.2, 0.3)
    assert backbone.preprocessing.size == (64, 64)
    assert backbone.provenance == {"epochs": 3}
    torch.testing.assert_close(found.blocks[1].attn.qkv.weight, module.blocks[1].attn.qkv.weight)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("name = 3", "name"),
        ('name = "x"\narchitecture = "vit_tiny_patch16_224"\nweights = "a"\nteacher = "dino"', "teacher"),
        ('name = "x"\narchitecture = "vit_tiny_patch16_224"\nweights = "a"\nteaching = "osmosis"', "osmosis"),
        ("name = [", "not valid TOML"),
    ],
)
def test_bad_cards(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(VitscopeError, match=match):
        read_card(tmp_path / "bad.toml")


def test_a_card_without_its_weights(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('name = "x"\narchitecture = "vit_tiny_patch16_224"\nweights = "gone.pth"')
    with pytest.raises(VitscopeError, match=r"gone\.pth does not exist"):
        load_model(tmp_path / "a.toml")


def test_a_weights_file_without_an_architecture(tmp_path: Path) -> None:
    save_file(timm.create_model("vit_tiny_patch16_224", num_classes=0).state_dict(), tmp_path / "w.safetensors")
    found = load_model(tmp_path / "w.safetensors")
    assert (found.name, found.heads) == ("w", 3)
    assert "read off its tensors: vit_tiny_patch16_224 with 3 attention heads" in found.notes[0]
    assert not load_model(tmp_path / "w.safetensors", arch="vit_tiny_patch16_224").notes
    with pytest.raises(VitscopeError, match="no weights file"):
        load_model(tmp_path / "nothing.safetensors", arch="vit_tiny_patch16_224")


def test_official_files_are_found_in_the_weights_folder(tmp_path: Path) -> None:
    entry = CATALOGUE["dino-s16"]
    (tmp_path / "weights").mkdir()
    torch.manual_seed(2)
    state = timm.create_model("vit_small_patch16_224", num_classes=0).state_dict()
    torch.save(state, tmp_path / "weights" / entry.files[0])
    backbone = load_model("dino-s16")
    assert backbone.teaching == "dino"
    torch.testing.assert_close(backbone.module.state_dict()["pos_embed"], state["pos_embed"])
    larger = load_model("dino-s16", size=(224, 448))
    assert larger.layout.grid == (14, 28)
    assert next(iter(listings("dino-s16"))).present


def test_the_untrained_twin_of_a_card_has_its_shape(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\narchitecture = "vit_tiny_patch16_224"\nweights = "not-needed.safetensors"\n'
        "[options]\nimg_size = 32\npatch_size = 8\nembed_dim = 32\ndepth = 3\nnum_heads = 2\n"
    )
    twin = load_model(f"random:{tmp_path / 'mine.toml'}")
    assert (twin.depth, twin.heads, twin.layout.grid, twin.teaching) == (3, 2, (4, 4), "none")
    spec = resolve(f"random:{tmp_path / 'mine.toml'}")
    assert (spec.architecture, spec.options["depth"], spec.shape) == ("vit_tiny_patch16_224", 3, twin.shape)


def test_the_same_model_given_twice_is_one() -> None:
    assert [spec.title for spec in distinct([resolve(TINY), resolve(TINY)])] == ["Untrained vit_tiny_patch16_224"]
    assert len(list(distinct([resolve(TINY), resolve(TINY, title="again")]))) == 2  # asked for under two names


def test_different_models_of_one_title_are_refused() -> None:
    with pytest.raises(VitscopeError, match="two different models are called 'x'"):
        list(distinct([resolve(TINY, title="x"), resolve(TINY, title="x", seed=1)]))


def test_the_same_model_given_twice_does_not_double_rows(photos: Path) -> None:
    spec = resolve(TINY, size=32)
    once, twice = (
        vitscope.evaluate(models, on=vitscope.images(photos), analyses=[vitscope.Attention()])
        for models in ([spec], [spec, resolve(TINY, size=32)])
    )
    assert twice.table.equals(once.table, null_equal=True)
    assert len(twice.coverage) == 1


def test_the_digest_is_of_the_weights_bytes_and_not_of_their_place(tmp_path: Path) -> None:
    state = timm.create_model("vit_tiny_patch16_224", num_classes=0, depth=1, img_size=32).state_dict()
    files = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    cards = []
    for path in files:
        save_file(state, path)
        cards.append(path.with_suffix(".toml"))
        cards[-1].write_text(
            f'name = "{path.stem}"\narchitecture = "vit_tiny_patch16_224"\nweights = "{path.name}"\n'
            "[options]\ndepth = 1\nimg_size = 32\n"
        )
    first, second = (resolve(card).digest for card in cards)
    assert first == second
    size, long_ago = files[1].stat().st_size, (0, 0)
    os.utime(files[1], long_ago)
    save_file(state | {"norm.bias": state["norm.bias"] + 1}, files[1])
    assert files[1].stat().st_size == size
    assert resolve(cards[1]).digest != first


def dino_file(folder: Path) -> Path:
    """A checkpoint as DINO's training writes it: the networks inside, with projection heads around them."""
    torch.manual_seed(3)
    state = timm.create_model("vit_tiny_patch16_224", num_classes=0).state_dict()
    teacher = {f"backbone.{key}": value for key, value in state.items()}
    torch.save({"teacher": teacher, "epoch": 1}, folder / "dino.pth")
    return folder / "dino.pth"


def test_a_recognised_format_brings_its_normalisation(tmp_path: Path) -> None:
    """The architecture's own is .5/.5; DINO was trained with ImageNet's."""
    assert load_model("random:vit_tiny_patch16_224").preprocessing.mean == (0.5, 0.5, 0.5)
    backbone = load_model(dino_file(tmp_path), arch="vit_tiny_patch16_224")
    assert backbone.teaching == "dino"
    assert backbone.preprocessing.mean == (0.485, 0.456, 0.406)
    assert backbone.preprocessing.std == (0.229, 0.224, 0.225)
    assert backbone.notes == ()


def test_a_card_that_says_nothing_of_normalisation_gets_the_formats(tmp_path: Path) -> None:
    dino_file(tmp_path)
    card = 'name = "mine"\narchitecture = "vit_tiny_patch16_224"\nweights = "dino.pth"\n'
    (tmp_path / "a.toml").write_text(card + 'teaching = "dino"\n')
    assert load_model(tmp_path / "a.toml").preprocessing.mean == (0.485, 0.456, 0.406)


def test_a_contradiction_is_told(tmp_path: Path) -> None:
    dino_file(tmp_path)
    card = 'name = "mine"\narchitecture = "vit_tiny_patch16_224"\nweights = "dino.pth"\n'
    (tmp_path / "a.toml").write_text(card + "[preprocessing]\nmean = [0.5, 0.5, 0.5]\nstd = [0.5, 0.5, 0.5]\n")
    (note,) = load_model(tmp_path / "a.toml").notes
    assert note == (
        "mine: dino checkpoints were trained with mean 0.485/0.456/0.406 and std 0.229/0.224/0.225, and this one is "
        "normalised with 0.5/0.5/0.5 and 0.5/0.5/0.5: correct its description if that is not meant"
    )
    (tmp_path / "b.toml").write_text(card + 'teaching = "mae"\n')
    assert load_model(tmp_path / "b.toml").notes == ("mine: it is called mae, but its file is a dino checkpoint",)


def test_hybrids_are_refused_before_anything_is_built_from_them() -> None:
    with pytest.raises(UnsupportedModel, match="hybrid"):
        _ = resolve("random:vit_small_r26_s32_224").shape


def test_clip_by_its_name_has_nothing_to_say_about_its_activation(tmp_path: Path) -> None:
    """The hub's files do not say that they need QuickGELU; the catalogue does."""
    entry = CATALOGUE["clip-b32"]
    torch.manual_seed(0)
    state = timm.create_model(entry.architecture, num_classes=0).state_dict()
    (tmp_path / "weights").mkdir()
    torch.save({f"visual.{k}": v for k, v in clip_image_tower(state).items()}, tmp_path / "weights" / entry.files[0])
    assert load_model("clip-b32").notes == ()
    by_file = load_model(tmp_path / "weights" / entry.files[0], arch=entry.architecture)
    assert any("quickgelu" in note for note in by_file.notes)
