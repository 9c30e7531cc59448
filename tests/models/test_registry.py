"""What names stand for: the study's twenty, and timm's."""

from __future__ import annotations

from typing import Any

import pytest
import timm

from vitscope.core.errors import VitscopeError
from vitscope.data.preprocessing import CLIP, HALF, IMAGENET
from vitscope.models.catalogue import CATALOGUE
from vitscope.models.listing import listings
from vitscope.models.registry import build, find_entry, zoo_card

STUDY = {
    "fs-s32", "fs-s16", "fs-b32", "fs-b16", "fs-b8", "fs-l16", "clip-b32", "clip-b16", "clip-l14", "dino-s16",
    "dino-s8", "dino-b16", "dino-b8", "moco-s16", "moco-b16", "mae-b16", "mae-l16", "mae-h14", "beit-b16", "beit-l16",
}  # fmt: skip


def test_the_study_has_twenty_configurations() -> None:
    assert {name for name, entry in CATALOGUE.items() if entry.group == "study"} == STUDY


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_entry_is_an_architecture_that_timm_knows(name: str) -> None:
    entry = CATALOGUE[name]
    assert timm.is_model(entry.architecture)
    if entry.hub:
        assert timm.models.is_model_pretrained(entry.hub.removeprefix("timm/"))
    else:
        assert entry.files
        assert entry.url


def test_normalisation_of_the_study() -> None:
    means = {name: CATALOGUE[name].normalisation for name in STUDY}
    assert means["fs-b16"] == means["beit-b16"] == HALF
    assert means["clip-b16"] == CLIP
    assert means["dino-b16"] == means["mae-b16"] == means["moco-b16"] == IMAGENET


def test_openai_weights_meet_the_activation_they_were_trained_with() -> None:
    module: Any = build(CATALOGUE["clip-b32"].architecture, {"depth": 1}, 64)[0]
    assert type(module.blocks[0].mlp.act).__name__ == "QuickGELU"


def test_mocos_small_model_has_twelve_heads_of_thirty_two() -> None:
    entry = CATALOGUE["moco-s16"]
    module: Any = build(entry.architecture, {**entry.options, "depth": 1}, 64)[0]
    assert (module.blocks[0].attn.num_heads, module.blocks[0].attn.head_dim) == (12, 32)


def test_an_untagged_timm_name_means_its_default_weights() -> None:
    assert find_entry("vit_base_patch16_224").name == "vit_base_patch16_224.augreg2_in21k_ft_in1k"


def test_listing_patterns() -> None:
    assert {listing.name for listing in listings("moco*")} == {"moco-s16", "moco-b16"}
    assert any(listing.group == "timm" for listing in listings("vit_tiny_patch16_224*"))


@pytest.mark.parametrize("name", ["zoo/../zoo/dino", "zoo//dino", "zoo/dino.toml", "zoo/" + "k" * 5000])
def test_names_of_the_zoo_are_no_paths(name: str) -> None:
    with pytest.raises(VitscopeError, match="the zoo has no") as told:
        zoo_card(name)
    assert len(str(told.value)) < 300
