"""Names to models: the study's twenty, timm names, baselines, files, cards; and clear refusals."""

from __future__ import annotations

import pytest
import timm
import torch
from safetensors.torch import save_file

from vitscope.errors import MissingWeights, VitscopeError
from vitscope.models import identify, load
from vitscope.models.card import read_card
from vitscope.models.catalogue import CATALOGUE
from vitscope.models.listing import listings
from vitscope.models.preprocessing import CLIP, HALF, IMAGENET
from vitscope.models.registry import build, find_entry

STUDY = {
    "fs-s32", "fs-s16", "fs-b32", "fs-b16", "fs-b8", "fs-l16", "clip-b32", "clip-b16", "clip-l14", "dino-s16",
    "dino-s8", "dino-b16", "dino-b8", "moco-s16", "moco-b16", "mae-b16", "mae-l16", "mae-h14", "beit-b16", "beit-l16",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("VITSCOPE_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.chdir(tmp_path)


def test_the_study_has_twenty_configurations():
    assert {name for name, entry in CATALOGUE.items() if entry.group == "study"} == STUDY


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_entry_is_an_architecture_that_timm_knows(name):
    entry = CATALOGUE[name]
    assert timm.is_model(entry.architecture)
    if entry.hub:
        assert timm.models.is_model_pretrained(entry.hub.removeprefix("timm/"))
    else:
        assert entry.files
        assert entry.url


def test_normalisation_of_the_study():
    means = {name: CATALOGUE[name].normalisation for name in STUDY}
    assert means["fs-b16"] == means["beit-b16"] == HALF
    assert means["clip-b16"] == CLIP
    assert means["dino-b16"] == means["mae-b16"] == means["moco-b16"] == IMAGENET


def test_openai_weights_meet_the_activation_they_were_trained_with():
    module, _ = build(CATALOGUE["clip-b32"].architecture, {"depth": 1}, 64)
    assert type(module.blocks[0].mlp.act).__name__ == "QuickGELU"


def test_mocos_small_model_has_twelve_heads_of_thirty_two():
    entry = CATALOGUE["moco-s16"]
    module, _ = build(entry.architecture, {**entry.options, "depth": 1}, 64)
    assert (module.blocks[0].attn.num_heads, module.blocks[0].attn.head_dim) == (12, 32)


def test_missing_weights_name_the_file_and_the_places():
    with pytest.raises(MissingWeights) as error:
        load("moco-b16")
    text = str(error.value)
    assert "vit-b-300ep.pth.tar" in text
    assert "weights" in text
    with pytest.raises(MissingWeights, match=r"timm/vit_base_patch16_224\.mae"):
        load("mae-b16")
    with pytest.raises(MissingWeights, match=r"timm/vit_base_patch14_dinov2\.lvd142m"):
        load("vit_base_patch14_dinov2.lvd142m")


def test_unknown_names_get_a_hint():
    with pytest.raises(VitscopeError, match="dino-b16"):
        load("dino-b61")
    with pytest.raises(VitscopeError, match="did you mean"):
        load("random:vit_bose_patch16_224")


def test_an_untagged_timm_name_means_its_default_weights():
    assert find_entry("vit_base_patch16_224").name == "vit_base_patch16_224.augreg2_in21k_ft_in1k"


def test_untrained_networks_are_seeded():
    first, again, other = (load("random:vit_tiny_patch16_224", size=64, seed=s) for s in (3, 3, 4))
    assert first.weights_digest == again.weights_digest != other.weights_digest
    assert first.teaching == "none"
    state = torch.random.get_rng_state()
    load("random:vit_tiny_patch16_224", size=64)
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_tag_brings_its_preprocessing():
    assert load("random:vit_small_patch16_224.dino", size=64).preprocessing.mean == IMAGENET[0]
    assert load("random:vit_small_patch16_224.augreg_in1k", size=64).preprocessing.mean == HALF[0]


class Attention:
    wants = frozenset({"attention", "tokens"})

    def __init__(self):
        self.probs, self.features = [], []

    def attention(self, layer, probs):
        self.probs.append(probs)

    def tokens(self, layer, x):
        self.features.append(x)


@pytest.mark.parametrize(("kind", "axis"), [("noise", 3), ("noise-paper", 2)])
def test_noise_baselines(kind, axis):
    backbone = load(f"{kind}:vit_tiny_patch16_224", size=64)
    images = torch.randint(0, 256, (3, 3, 64, 64), dtype=torch.uint8)
    whole, single = Attention(), Attention()
    backbone.trace(images, [whole])
    backbone.trace(images[1:2], [single])
    assert torch.equal(whole.probs[5][1], single.probs[5][0])  # a picture meets the same noise in any batch
    assert torch.equal(whole.features[5][1], single.features[5][0])
    assert not torch.equal(whole.probs[5][0], whole.probs[5][1])
    sums = whole.probs[0].sum(axis)
    torch.testing.assert_close(sums, torch.full_like(sums, 1.0 if kind == "noise" else 17.0), rtol=1e-5, atol=0)


def small_file(path, **options):
    torch.manual_seed(1)
    module = timm.create_model("vit_tiny_patch16_224", num_classes=0, depth=2, img_size=64, **options)
    save_file(module.state_dict(), path)
    return module


def test_a_model_card(tmp_path):
    module = small_file(tmp_path / "my.safetensors")
    (tmp_path / "my.toml").write_text(
        'name = "mine"\narchitecture = "vit_tiny_patch16_224"\nweights = "my.safetensors"\nteaching = "dino"\n'
        "[options]\ndepth = 2\nimg_size = 64\n[preprocessing]\nmean = [0.1, 0.2, 0.3]\n[provenance]\nepochs = 3\n"
    )
    backbone = load(tmp_path / "my.toml")
    assert (backbone.name, backbone.teaching, backbone.depth) == ("mine", "dino", 2)
    assert backbone.preprocessing.mean == (0.1, 0.2, 0.3)
    assert backbone.preprocessing.size == (64, 64)
    assert backbone.provenance == {"epochs": 3}
    torch.testing.assert_close(backbone.module.blocks[1].attn.qkv.weight, module.blocks[1].attn.qkv.weight)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("name = 3", "name"),
        ('name = "x"\narchitecture = "vit_tiny_patch16_224"\nweights = "a"\nteacher = "dino"', "teacher"),
        ('name = "x"\narchitecture = "vit_tiny_patch16_224"\nweights = "a"\nteaching = "osmosis"', "osmosis"),
        ("name = [", "not a valid TOML"),
    ],
)
def test_bad_cards(tmp_path, text, match):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(VitscopeError, match=match):
        read_card(tmp_path / "bad.toml")


def test_a_card_without_its_weights(tmp_path):
    (tmp_path / "a.toml").write_text('name = "x"\narchitecture = "vit_tiny_patch16_224"\nweights = "gone.pth"')
    with pytest.raises(VitscopeError, match=r"gone\.pth does not exist"):
        load(tmp_path / "a.toml")


def test_a_weights_file_needs_an_architecture(tmp_path):
    save_file(timm.create_model("vit_tiny_patch16_224", num_classes=0).state_dict(), tmp_path / "w.safetensors")
    with pytest.raises(VitscopeError, match="--arch"):
        load(tmp_path / "w.safetensors")
    assert load(tmp_path / "w.safetensors", arch="vit_tiny_patch16_224").name == "w"
    with pytest.raises(VitscopeError, match="no weights file"):
        load(tmp_path / "nothing.safetensors", arch="vit_tiny_patch16_224")


def test_official_files_are_found_in_the_weights_folder(tmp_path):
    entry = CATALOGUE["dino-s16"]
    (tmp_path / "weights").mkdir()
    torch.manual_seed(2)
    state = timm.create_model("vit_small_patch16_224", num_classes=0).state_dict()
    torch.save(state, tmp_path / "weights" / entry.files[0])
    backbone = load("dino-s16")
    assert backbone.teaching == "dino"
    torch.testing.assert_close(backbone.module.pos_embed, state["pos_embed"])
    larger = load("dino-s16", size=(224, 448))
    assert larger.layout.grid == (14, 28)
    assert next(iter(listings("dino-s16"))).present


def test_listing_patterns():
    assert {listing.name for listing in listings("moco*")} == {"moco-s16", "moco-b16"}
    assert any(listing.group == "timm" for listing in listings("vit_tiny_patch16_224*"))


def test_the_untrained_twin_of_a_card_has_its_shape(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\narchitecture = "vit_tiny_patch16_224"\nweights = "not-needed.safetensors"\n'
        "[options]\nimg_size = 32\npatch_size = 8\nembed_dim = 32\ndepth = 3\nnum_heads = 2\n"
    )
    twin = load(f"random:{tmp_path / 'mine.toml'}")
    assert (twin.depth, twin.heads, twin.layout.grid, twin.teaching) == (3, 2, (4, 4), "none")
    known = identify(f"random:{tmp_path / 'mine.toml'}")
    assert (known["architecture"], known["options"]["depth"]) == ("vit_tiny_patch16_224", 3)
