"""Official files of the networks that came after the study, against timm's own filters, and what is refused by name.

The naming is that of the projects' model code: facebookresearch/perception_models, baaivision/EVA and
facebookresearch/dinov3. `tests/oracles/test_modern_parity.py` compares with `transformers` what it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from timm.models import eva, vision_transformer
from torch import Tensor

from vitscope.core.errors import BadCheckpoint
from vitscope.core.observer import Observer
from vitscope.models.catalogue import CATALOGUE
from vitscope.models.checkpoints import load_checkpoint, read_checkpoint
from vitscope.models.registry import build
from vitscope.models.shape import layout_of
from vitscope.models.trace import trace

State = dict[str, Tensor]
HEAD = 16  # 3 heads of a width of 48, as `tiny` has them
PE, EVA02, EVA02_SMALL = "vit_pe_core_base_patch16_224", "eva02_base_patch14_224", "eva02_small_patch14_224"
DINOV3, AIMV2, DEIT3 = "vit_base_patch16_dinov3", "aimv2_large_patch14_224", "deit3_base_patch16_224"


def renamed(state: State, *rules: tuple[str, str]) -> State:
    out = {}
    for key, value in state.items():
        for pattern, other in rules:
            key = re.sub(pattern, other, key)
        out[key] = value
    return out


def pe_file(state: State, text: bool = True) -> State:
    """PE-Core-*.pt: both towers of pe.py."""
    stacked = {
        f"attn_pool.attn.in_proj_{k}": torch.cat([state[f"attn_pool.q.{k}"], state[f"attn_pool.kv.{k}"]])
        for k in ("weight", "bias")
    }
    rest = {k: v for k, v in state.items() if not re.match(r"attn_pool\.(q|kv)\.", k)}
    tower = renamed(
        rest,
        (r"^attn_pool\.proj\.", "attn_pool.attn.out_proj."),
        (r"^attn_pool\.norm\.", "attn_pool.layernorm."),
        (r"^attn_pool\.latent$", "attn_pool.probe"),
        (r"^patch_embed\.proj\.", "conv1."),
        (r"^norm_pre\.", "ln_pre."),
        (r"^norm\.", "ln_post."),
        (r"^blocks\.", "transformer.resblocks."),
        (r"\.norm([12])\.", r".ln_\1."),
        (r"\.attn\.qkv\.", ".attn.in_proj_"),
        (r"(resblocks\.\d+)\.attn\.proj\.", r"\1.attn.out_proj."),
        (r"\.mlp\.fc1\.", ".mlp.c_fc."),
        (r"\.mlp\.fc2\.", ".mlp.c_proj."),
    )
    tower |= stacked
    tower["class_embedding"] = tower.pop("cls_token")[0, 0]
    tower["positional_embedding"] = tower.pop("pos_embed")[0]
    tower["proj"] = torch.randn(48, 20)
    out = {f"visual.{key}": value for key, value in tower.items()}
    beside = {"logit_scale": torch.tensor(1.0), "transformer.resblocks.0.ln_1.weight": torch.ones(4)}
    return out | ({**beside, "positional_embedding": torch.randn(3, 4)} if text else {})


def eva02_file(state: State) -> dict[str, Any]:
    """eva02_*_pt_*.pt: rotary tables in front and in every block, a head that predicts CLIP's features."""
    out = renamed(
        state,
        (r"^fc_norm\.", "norm."),
        (r"\.attn\.([qv])_proj\.bias$", r".attn.\1_bias"),
        (r"\.mlp\.norm\.", ".mlp.ffn_ln."),
        (r"\.mlp\.fc1\.", ".mlp.w12."),
        (r"\.mlp\.fc1_g\.", ".mlp.w1."),
        (r"\.mlp\.fc1_x\.", ".mlp.w2."),
        (r"\.mlp\.fc2\.", ".mlp.w3."),
    )
    for place in ("", *(f"blocks.{i}.attn." for i in range(3))):
        out |= {f"{place}rope.freqs_cos": torch.ones(16, HEAD), f"{place}rope.freqs_sin": torch.ones(16, HEAD)}
    out["mask_token"] = torch.randn(1, 1, 48)
    return {"module": out | {"lm_head.weight": torch.randn(9, 48), "lm_head.bias": torch.randn(9)}}


def dinov3_file(state: State) -> State:
    """dinov3_vitb16_pretrain_lvd1689m-*.pth, whose biases on queries and values are zero."""
    out = renamed(state, (r"^reg_token$", "storage_tokens"), (r"\.gamma_([12])$", r".ls\1.gamma"))
    for i in range(3):
        out[f"blocks.{i}.attn.qkv.bias"] = torch.zeros(144)
        out[f"blocks.{i}.attn.qkv.bias_mask"] = torch.tensor([1.0, 0.0, 1.0]).repeat_interleave(48)
    out["rope_embed.periods"] = (100.0 ** (torch.arange(HEAD // 4) / (HEAD // 4))).bfloat16()
    out["mask_token"] = torch.randn(1, 48)
    return out


def aimv2_file(state: State) -> State:
    return renamed(
        state,
        (r"^patch_embed\.", "preprocessor.patchifier."),
        (r"^pos_embed$", "preprocessor.pos_embed"),
        (r"^norm\.", "trunk.post_trunk_norm."),
        (r"^blocks\.", "trunk.blocks."),
        (r"\.norm([12])\.", r".norm_\1."),
        (r"\.fc1_g\.", ".fc1."),
        (r"\.fc1_x\.", ".fc3."),
    )


def deit3_file(state: State) -> dict[str, Any]:
    out = renamed(state, (r"\.ls([12])\.gamma$", r".gamma_\1"))
    return {"model": out | {"head.weight": torch.randn(5, 48), "head.bias": torch.randn(5)}}


def deit3_filter(state: Any, module: Any) -> Any:
    return vision_transformer.checkpoint_filter_fn(state, module, adapt_layer_scale=True)


CASES: list[tuple[str, Callable[[State], Any], Callable[..., Any], str]] = [
    (PE, pe_file, eva.checkpoint_filter_fn, "pe"),
    (EVA02, eva02_file, eva.checkpoint_filter_fn, "eva02"),
    (EVA02_SMALL, eva02_file, eva.checkpoint_filter_fn, "eva02"),
    (DINOV3, dinov3_file, eva.checkpoint_filter_fn, "dinov3"),
    (AIMV2, aimv2_file, vision_transformer.checkpoint_filter_fn, "aimv2"),
    (DEIT3, deit3_file, deit3_filter, "vit"),
]


@pytest.mark.parametrize(("architecture", "official_file", "their_filter", "family"), CASES)
def test_weights_arrive_where_timm_puts_them(
    official: SimpleNamespace,
    tmp_path: Path,
    architecture: str,
    official_file: Callable[[State], Any],
    their_filter: Callable[..., Any],
    family: str,
) -> None:
    file = official_file(official.randomised(official.tiny(architecture)).state_dict())
    torch.save(file, tmp_path / "official.pt")
    ours, theirs = official.tiny(architecture), official.tiny(architecture)
    report = load_checkpoint(ours, tmp_path / "official.pt")
    assert report.family == family
    filtered = their_filter(read_checkpoint(tmp_path / "official.pt"), theirs)
    loaded = theirs.load_state_dict(filtered, strict=False)
    assert not loaded.missing_keys  # what timm's filter leaves over are heads
    for key, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[key], value), key

    state = file.get("module", file.get("model", file))
    inner = next(
        key for key in sorted(state) if re.search(r"blocks\.1\..*norm_?2\.weight|blocks\.1\.ln_2\.weight", key)
    )
    without = {key: value for key, value in state.items() if key != inner}
    torch.save(without, tmp_path / "missing.pt")
    with pytest.raises(BadCheckpoint, match=r"lacks 1 .*blocks\.1\.norm2\.weight"):
        load_checkpoint(official.tiny(architecture), tmp_path / "missing.pt")
    torch.save({**state, inner.replace("weight", "stranger"): torch.ones(3)}, tmp_path / "surplus.pt")
    with pytest.raises(BadCheckpoint, match="stranger"):
        load_checkpoint(official.tiny(architecture), tmp_path / "surplus.pt")


@pytest.mark.parametrize(("architecture", "official_file"), [(DINOV3, dinov3_file), (EVA02, eva02_file)])
def test_rotary_tables_tell_the_number_of_heads(
    official: SimpleNamespace, tmp_path: Path, architecture: str, official_file: Callable[[State], Any]
) -> None:
    torch.save(official_file(official.tiny(architecture).state_dict()), tmp_path / "file.pt")
    with pytest.raises(BadCheckpoint, match=r"has 3 attention heads, but .* has 6"):
        load_checkpoint(official.tiny(architecture, num_heads=6), tmp_path / "file.pt")


def test_other_rotary_periods_are_refused(official: SimpleNamespace, tmp_path: Path) -> None:
    file = dinov3_file(official.tiny(DINOV3).state_dict())
    torch.save(file | {"rope_embed.periods": file["rope_embed.periods"] ** 2}, tmp_path / "file.pt")
    with pytest.raises(BadCheckpoint, match="not the powers of 100"):
        load_checkpoint(official.tiny(DINOV3), tmp_path / "file.pt")


def test_a_bias_counts_unless_it_is_zero_or_masked(official: SimpleNamespace, tmp_path: Path) -> None:
    file = dinov3_file(official.tiny(DINOV3).state_dict())
    torch.save(file, tmp_path / "zero.pt")
    report = load_checkpoint(official.tiny(DINOV3), tmp_path / "zero.pt")
    assert report.dropped["blocks.0.attn.q_bias"] == "a bias of zero, which the architecture leaves out"
    queries = torch.cat([torch.ones(48), torch.zeros(96)])
    torch.save(file | {"blocks.2.attn.qkv.bias": queries}, tmp_path / "queries.pt")
    with pytest.raises(BadCheckpoint, match=r"no place for 1 .*blocks\.2\.attn\.q_bias"):
        load_checkpoint(official.tiny(DINOV3), tmp_path / "queries.pt")
    load_checkpoint(official.tiny(DINOV3 + "_qkvb"), tmp_path / "queries.pt")
    unmasked = {"blocks.1.attn.qkv.bias": torch.ones(144), "blocks.1.attn.qkv.bias_mask": torch.ones(144)}
    torch.save(file | unmasked, tmp_path / "keys.pt")
    with pytest.raises(BadCheckpoint, match="bias on the keys"):
        load_checkpoint(official.tiny(DINOV3 + "_qkvb"), tmp_path / "keys.pt")


def test_a_training_run_of_dinov3(official: SimpleNamespace, tmp_path: Path) -> None:
    weights = official.randomised(official.tiny(DINOV3)).state_dict()
    teacher = {f"backbone.{key}": value for key, value in dinov3_file(weights).items()}
    heads = {"dino_head.last_layer.weight": torch.ones(3), "ibot_head.mlp.0.weight": torch.ones(3)}
    torch.save({"teacher": teacher | heads, "iteration": 9}, tmp_path / "teacher_checkpoint.pth")
    module = official.tiny(DINOV3)
    assert load_checkpoint(module, tmp_path / "teacher_checkpoint.pth").family == "dinov3"
    assert torch.equal(module.state_dict()["reg_token"], weights["reg_token"])


def test_native_aimv2_and_naflex_are_refused_by_name(official: SimpleNamespace, tmp_path: Path) -> None:
    native = aimv2_file(official.tiny(AIMV2).state_dict())
    del native["preprocessor.pos_embed"]
    torch.save(native, tmp_path / "native.pt")
    with pytest.raises(BadCheckpoint, match="native resolutions"):
        load_checkpoint(official.tiny(AIMV2), tmp_path / "native.pt")
    naflex = {"vision_model.embeddings.patch_embedding.weight": torch.ones(48, 192)}
    torch.save(naflex, tmp_path / "naflex.pt")
    with pytest.raises(BadCheckpoint, match="NaFlex"):
        load_checkpoint(official.tiny("vit_base_patch16_siglip_224"), tmp_path / "naflex.pt")


@pytest.mark.parametrize("length", [128, 384, 2176])
def test_safetensors_whose_length_begins_like_a_pickle(tmp_path: Path, length: int) -> None:
    """The header's length stands first: in one of 32 files its lowest byte is a pickle's first."""
    path = tmp_path / "w.safetensors"
    for padding in range(2 * length):
        save_file({"x": torch.ones(2)}, path, metadata={"m": "y" * padding})
        if path.read_bytes()[0] == 0x80 and int.from_bytes(path.read_bytes()[:8], "little") == length:
            break
    else:
        pytest.fail("no such header was made")
    assert torch.equal(read_checkpoint(path)["x"], torch.ones(2))


class Watch(Observer):
    wants = frozenset({"attention", "tokens"})

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def attention(self, layer: int, probs: Tensor) -> None:
        self.shapes.append(tuple(probs.shape))


@pytest.mark.parametrize("name", [name for name, entry in CATALOGUE.items() if entry.group == "modern"])
def test_every_block_of_every_modern_model_shows_its_attention(name: str) -> None:
    """At the published size, on a device without memory."""
    entry = CATALOGUE[name]
    with torch.device("meta"):
        module, preprocessing = build(entry.architecture, entry.options)
        blank = torch.zeros(1, 3, *preprocessing.size)
    layout, watch = layout_of(module, name, preprocessing.size), Watch()
    trace(module.eval(), blank, [watch], layout=layout, name=name)
    heads = {int(module.blocks[0].attn.num_heads)}  # type: ignore[index,union-attr,arg-type]
    assert {shape[1] for shape in watch.shapes} == heads
    assert {shape[2:] for shape in watch.shapes} == {(layout.tokens, layout.tokens)}
    assert len(watch.shapes) == len(module.blocks)  # type: ignore[arg-type]
    assert layout.has_cls == (not name.startswith(("siglip", "aimv2", "ijepa")))
    assert layout.prefix == (
        5 if "reg" in name or name.startswith("dinov3") else 2 if "distilled" in name else layout.has_cls
    )


def test_rows_of_attention_sum_to_one_with_rotary_positions_and_registers(official: SimpleNamespace) -> None:
    for architecture in (DINOV3, EVA02, PE, AIMV2):
        module = official.randomised(official.tiny(architecture))
        seen: list[Tensor] = []
        watch = Watch()
        watch.attention = lambda layer, probs, seen=seen: seen.append(probs.clone())  # type: ignore[method-assign,misc]
        layout = layout_of(module, architecture, (32, 32))
        trace(module, torch.randn(2, 3, 32, 32), [watch], layout=layout)
        assert len(seen) == 3
        for probs in seen:
            torch.testing.assert_close(probs.sum(-1), torch.ones_like(probs.sum(-1)))
