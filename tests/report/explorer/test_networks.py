"""The page's own forward pass, in Chromium, against torch; and the page that holds the networks."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from playwright.sync_api import Page, expect

from tests.report.explorer.conftest import DRAWN, shown_values, until
from vitscope.core.errors import UnsupportedModel
from vitscope.data.preprocessing import Preprocessing
from vitscope.models.backbone import Backbone
from vitscope.models.kept import trace_image
from vitscope.models.registry import ZOO
from vitscope.models.spec import resolve
from vitscope.report.explorer.networks import export_networks, in_eight_bits, network_arrays, restored
from zoo.courses import ARCHITECTURE, OPTIONS

PLAIN = ("vit_tiny_patch16_224", {"img_size": 64, "patch_size": 8, "embed_dim": 32, "depth": 3, "num_heads": 4})
ROTARY = (
    "eva02_tiny_patch14_224",
    {"img_size": 56, "patch_size": 8, "embed_dim": 64, "depth": 3, "num_heads": 4, "mlp_ratio": 4.0,
     "swiglu_mlp": False, "attn_type": "rope", "global_pool": "token", "ref_feat_shape": 22, "rope_temperature": 8.0},
)  # fmt: skip


def network(architecture: str, options: dict[str, Any]) -> Backbone:
    """An untrained network with weights large enough that attention is not even."""
    torch.manual_seed(0)
    module = timm.create_model(architecture, num_classes=0, **options)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
            if "norm" in name and name.endswith("weight"):
                parameter.fill_(1.3)
    return Backbone("made", module, Preprocessing((options["img_size"],) * 2, (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)))


def with_weights_of_the_page(backbone: Backbone) -> Backbone:
    """The same network with its matrices as the page has them: rounded to 8 bits."""
    arrays = restored(in_eight_bits(network_arrays(backbone)))
    module: Any = backbone.module
    for number, block in enumerate(module.blocks):
        layers = {"qkv": block.attn.qkv, "proj": block.attn.proj, "fc1": block.mlp.fc1, "fc2": block.mlp.fc2}
        for name, layer in layers.items():
            layer.weight.data.copy_(arrays[f"{number}.{name}.weight"])
    return backbone


def run_in(page: Page, model: int, pixels: np.ndarray) -> dict[str, torch.Tensor]:
    """Attention and tokens as the page computes them. pixels: uint8 (h, w, 3)."""
    rgba = np.concatenate([pixels, np.full((*pixels.shape[:2], 1), 255, np.uint8)], -1).flatten().tolist()
    found = page.evaluate(
        """async ([model, pixels]) => {
            const { attention, tokens } = await vitscope.ran(model, new Uint8ClampedArray(pixels));
            const text = ({ data }) => {
                const bytes = new Uint8Array(data.buffer);
                let letters = "";
                for (let i = 0; i < bytes.length; i += 32768)
                    letters += String.fromCharCode(...bytes.subarray(i, i + 32768));
                return btoa(letters);
            };
            return [attention, tokens].map((array) => ({ shape: array.shape, data: text(array) }));
        }""",
        [model, rgba],
    )
    arrays = [np.frombuffer(base64.b64decode(one["data"]), np.float32).reshape(one["shape"]) for one in found]
    return {name: torch.from_numpy(array.copy()) for name, array in zip(("attention", "tokens"), arrays, strict=True)}


COURSE = (ARCHITECTURE, OPTIONS)  # what the zoo is taught with: 14 x 14 patches, learned and rotary positions
WITHOUT = ("eva02_tiny_patch14_224", {**ROTARY[1], "use_abs_pos_emb": False})  # rotary positions alone


@pytest.mark.parametrize(
    ("architecture", "options"), [PLAIN, ROTARY, COURSE, WITHOUT], ids=["plain", "rotary", "course", "rotary alone"]
)
def test_the_page_computes_what_torch_does(
    explore: Any, tmp_path: Path, architecture: str, options: dict[str, Any]
) -> None:
    backbone = network(architecture, options)
    page = explore(export_networks([resolve(backbone)], tmp_path / "page.html").as_uri())
    size = backbone.preprocessing.size
    pixels = np.random.default_rng(1).integers(0, 256, (*size, 3), dtype=np.uint8)
    found = run_in(page, 0, pixels)
    kept = trace_image(with_weights_of_the_page(backbone), Image.fromarray(pixels))
    assert kept.attention.std() > 0.5 / kept.layout.tokens  # heads that do look somewhere
    if architecture != PLAIN[0]:
        rope = network_arrays(backbone)["rope"]
        assert rope.shape == (kept.layout.spatial, 2 * backbone.width // backbone.heads)
        assert rope[:, : rope.shape[1] // 2].std() > 0.1  # and patches that are turned
    assert (found["attention"] - kept.attention).abs().max() < 1e-4
    assert (found["tokens"] - kept.tokens).abs().max() < 1e-4 * kept.tokens.abs().max()


@pytest.fixture(scope="module")
def zoo_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    specs = [resolve(f"zoo/{path.stem}") for path in sorted(ZOO.glob("*.toml"))]
    return export_networks(specs, tmp_path_factory.mktemp("zoo") / "page.html")


def test_every_network_of_the_zoo_runs_in_the_browser(explore: Any, zoo_page: Path) -> None:
    page = explore(zoo_page.as_uri())
    names = page.evaluate("vitscope.models.map((model) => model.name)")
    assert len(names) == len(list(ZOO.glob("*.toml")))
    for model, name in enumerate(names):
        backbone = resolve(name).load("cpu")
        pixels = np.random.default_rng(2).integers(0, 256, (*backbone.preprocessing.size, 3), dtype=np.uint8)
        exact = trace_image(backbone, Image.fromarray(pixels))
        found = run_in(page, model, pixels)
        kept = trace_image(with_weights_of_the_page(backbone), Image.fromarray(pixels))
        assert (found["attention"] - kept.attention).abs().max() < 1e-4, name
        assert (found["tokens"] - kept.tokens).abs().max() < 1e-4 * kept.tokens.abs().max(), name
        rounding = (found["attention"] - exact.attention).abs().sum(-1).mean() / 2  # mass that rounding moves elsewhere
        assert rounding < 0.05, name


def test_a_dropped_image_reaches_the_networks(
    explore: Any, zoo_page: Path, photo: Image.Image, photo_file: Path
) -> None:
    """No server: the browser decodes, crops and shrinks it as Pillow would, and the attention is that of Python."""
    page = explore(zoo_page.as_uri())
    page.locator("#file").set_input_files(photo_file)
    until(page, f"vitscope.state.image.startsWith('u') && {DRAWN}")
    model = page.evaluate("vitscope.shown[0].model")
    backbone = with_weights_of_the_page(resolve(page.evaluate(f"vitscope.models[{model}].name")).load("cpu"))
    kept = trace_image(backbone, photo)
    wanted = kept.attention[-1, :, 0, 1:].mean(0)
    assert torch.corrcoef(torch.stack([shown_values(page), wanted]))[0, 1] > 0.97  # resized twice


def test_drawing_is_looked_at(explore: Any, zoo_page: Path) -> None:
    page = explore(zoo_page.as_uri(), dark=True)
    before = shown_values(page)
    page.get_by_role("button", name="Draw").click()
    page.get_by_role("button", name="red").click()
    box = page.locator("#sheet").bounding_box()
    assert box
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 180, steps=5)
    page.mouse.up()
    until(page, f"vitscope.state.image.startsWith('u') && {DRAWN}")
    assert not torch.equal(shown_values(page), before)


def test_the_page_is_one_file_that_asks_nobody(explore: Any, zoo_page: Path) -> None:
    page = explore(zoo_page.as_uri(), width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.get_by_text("nothing leaves your browser")).to_be_visible()
    page.get_by_role("button", name="Roll another").click()
    until(page, DRAWN)


@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("vit_tiny_patch16_224", {**PLAIN[1], "init_values": 0.1}),
        ("vit_tiny_patch16_224", {**PLAIN[1], "qk_norm": True}),
        ("eva02_tiny_patch14_224", {**ROTARY[1], "swiglu_mlp": True}),
        ("vit_base_patch16_224", {"img_size": 64}),
    ],
    ids=["scaled", "normalised", "gated", "large"],
)
def test_what_the_page_cannot_compute_is_refused(tmp_path: Path, architecture: str, options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModel, match="cannot run in a page"):
        network_arrays(network(architecture, options))
