"""What a card may say about an architecture, and everything else that is refused before timm hears of it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import timm

from vitscope.core.errors import UnsupportedModel, VitscopeError
from vitscope.models.catalogue import CATALOGUE
from vitscope.models.noise import NoiseTransformer
from vitscope.models.options import memory_of_machine, shape_options
from vitscope.models.registry import build
from vitscope.models.spec import load_model, resolve

TINY = "vit_tiny_patch16_224"
CARD = 'name = "x"\narchitecture = "{architecture}"\nweights = "x.safetensors"\n[options]\n{options}\n'


class Payload:
    """What a hostile pickle does: leaves a mark if anybody unpickles it."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize(
    "key",
    [
        *("checkpoint_path", "pretrained", "pretrained_cfg", "pretrained_cfg_overlay", "pretrained_strict"),
        *("pretrained_filter_fn", "cache_dir", "features_only", "out_indices", "feature_cfg", "scriptable"),
        *("exportable", "no_jit", "num_classes", "in_chans", "block_fn", "embed_layer", "kwargs_filter", "device"),
        *("model_cfg", "cfg", "weight_init", "dtype", "__class__", "", "depth ", "k" * 10_000_000),
    ],
)
def test_only_what_shapes_the_network_reaches_timm(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timm, "create_model", lambda *_, **__: pytest.fail("timm was asked"))
    with pytest.raises(VitscopeError, match="does not shape a network") as told:
        build(TINY, {key: "evil"})
    assert len(str(told.value)) < 500


def test_a_card_cannot_make_timm_unpickle(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    (tmp_path / "evil.pth").write_bytes(pickle.dumps(Payload(mark)))
    card = tmp_path / "card.toml"
    card.write_text(CARD.format(architecture=TINY, options=f"checkpoint_path = '{tmp_path / 'evil.pth'}'"))
    (tmp_path / "x.safetensors").touch()
    for name in (str(card), f"random:{card}", f"noise:{card}"):
        with pytest.raises(VitscopeError, match="checkpoint_path"):
            load_model(name)
        with pytest.raises(VitscopeError, match="checkpoint_path"):
            assert resolve(name).shape  # what --dry-run asks for
    assert not mark.exists()


@pytest.mark.parametrize(
    "architecture",
    [
        "hf-hub:timm/vit_tiny_patch16_224",
        "hf_hub:a/b",
        "local-dir:/tmp",
        "timm/vit_tiny",
        "../vit",
        "vit\nx",
        "",
        "a:b",
    ],
)
def test_architectures_are_names_and_no_addresses(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timm, "create_model", lambda *_, **__: pytest.fail("timm was asked"))
    for ask in (lambda: build(architecture, {}), lambda: shape_options(architecture, {})):
        with pytest.raises(VitscopeError):
            ask()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"depth": 1_000_000}, "from 1 to 256"),
        ({"depth": 0}, "from 1 to 256"),
        ({"depth": -3}, "from 1 to 256"),
        ({"depth": True}, "from 1 to 256"),
        ({"depth": 12.0}, "from 1 to 256"),
        ({"depth": "12"}, "from 1 to 256"),
        ({"embed_dim": 10**30}, "from 8 to 16384"),
        ({"embed_dim": 16384, "depth": 256}, "GB for its weights"),
        ({"mlp_ratio": float("inf")}, "number from 0.25"),
        ({"mlp_ratio": float("nan")}, "number from 0.25"),
        ({"img_size": 0}, "img_size"),
        ({"img_size": [64, 64, 64]}, "img_size"),
        ({"img_size": [[64], 64]}, "img_size"),
        ({"img_size": 65}, "use 64 or 80"),
        ({"img_size": 7}, "use 16"),
        ({"img_size": 4096, "patch_size": 4}, "1,048,576 patches"),
        ({"patch_size": 0}, "patch_size"),
        ({"qk_norm": 1}, "true or false"),
        ({"norm_layer": "os.system"}, "one of"),
        ({"norm_layer": ["layernorm"]}, "one of"),
        ({"num_heads": 7}, "timm cannot build"),
        ({"class_token": False}, "timm cannot build"),
        ({"drop_rate": -1}, "drop_rate"),
    ],
)
def test_values_out_of_bounds_are_told(options: dict[str, Any], said: str) -> None:
    with pytest.raises(VitscopeError, match=said):
        build(TINY, options)


@pytest.mark.parametrize("size", [0, -1, 7, 65, 10**9, (64, 65)])
def test_an_input_size_that_does_not_fit(size: int | tuple[int, int]) -> None:
    with pytest.raises(VitscopeError):
        build(TINY, {}, size)


def test_what_shapes_a_network_still_does() -> None:
    options: dict[str, Any] = {
        "depth": 2,
        "embed_dim": 64,
        "num_heads": 4,
        "img_size": [32, 48],
        "patch_size": 8,
        "qk_norm": True,
    }
    options |= {"reg_tokens": 2, "init_values": 1e-5, "norm_layer": "layernorm", "act_layer": "quick_gelu"}
    built, preprocessing = build(TINY, options)
    module: Any = built
    assert (len(module.blocks), module.embed_dim, module.num_prefix_tokens) == (2, 64, 3)
    assert preprocessing.size == (32, 48)
    assert memory_of_machine() > 1 << 28


def test_the_catalogue_asks_for_nothing_that_is_refused() -> None:
    for entry in CATALOGUE.values():
        shape_options(entry.architecture, entry.options)


@pytest.mark.parametrize("seed", [-1, 1 << 63, 10**30])
def test_seeds_that_no_generator_takes(seed: int) -> None:
    for kind in ("random", "noise"):
        with pytest.raises(VitscopeError, match="seed"):
            load_model(f"{kind}:{TINY}", seed=seed)


def test_noise_has_the_shape_of_plain_networks_only() -> None:
    with pytest.raises(UnsupportedModel, match="plain ViTs"):
        NoiseTransformer(timm.create_model("resnet18"), published=False)


PREPROCESSING = 'name = "x"\narchitecture = "vit_tiny_patch16_224"\nweights = "x"\n[preprocessing]\n'


@pytest.mark.parametrize(
    "text",
    [
        *(
            PREPROCESSING + f"std = [{value}, 0.2, 0.2]"
            for value in ("-0.2", "0", "inf", "nan", "1e-308", "58.4", '"1"')
        ),
        *(PREPROCESSING + f"mean = [0.5, {value}, 0.5]" for value in ("inf", "-inf", "nan", "123.7", "true", "[1]")),
        *(PREPROCESSING + f"size = [{value}, 64]" for value in ("0", "-1", "64.5", "64.0", "1000000", '"64"', "true")),
        *(PREPROCESSING + line for line in ('interpolation = "magic"', "size = 64", "mean = [1, 1]", "mean = 1")),
        'name = "x"\narchitecture = "a"\nweights = "x"\nteaching = "nonsense"',
        'name = "x"\narchitecture = "a"\nweights = "x"\ntitle = "' + "t" * 300 + '"',
        'name = "x\\ny"\narchitecture = "a"\nweights = "x"',
        'name = "x"\narchitecture = "a"\nweights = "x\\u0000y"',
        'name = "x"\narchitecture = "a"\nweights = "' + "w" * 300 + '"',
    ],
)
def test_numbers_and_names_of_a_card_that_mean_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(VitscopeError, match=r"x\.toml"):
        load_model(tmp_path / "x.toml")


def test_a_weights_folder_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITSCOPE_DATA", "~nosuchuser")
    with pytest.raises(VitscopeError, match="nosuchuser"):
        load_model("dino-b16")
