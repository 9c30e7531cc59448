"""Texts that say what to do: study files, model cards, settings of teaching, captions."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import save_file

from tests.hostile.campaign import Case, campaign, photo
from tests.support.hostile import changed_bytes, changed_value, json_text, toml_text
from vitscope.data.folders import open_images
from vitscope.models.card import read_card
from vitscope.models.spec import resolve
from vitscope.pipeline.study import read_study
from vitscope.teaching.captions import read_captions
from vitscope.teaching.config import TrainConfig


def studies(root: Path) -> Case:
    photo(root / "photos/a.png")
    content: dict[str, Any] = {
        "title": "T",
        "out": "runs/x",
        "seed": 1,
        "skip_limit": 3,
        "processes": 1,
        "workers": 0,
        "protocols": ["corrected"],
        "models": [{"name": "zoo/dino", "title": "A", "size": 64, "teaching": "dino"}, {"name": "random:zoo/dino"}],
        "data": {"images": {"path": "photos", "limit": 5, "title": "P"}},
        "analyses": {"attention": {}},
    }

    def case(random: Random) -> None:
        text = toml_text(changed_value(content, random) if random.random() < 0.9 else content)
        data = changed_bytes(text.encode("utf-8", "surrogatepass"), random) if random.random() < 0.3 else None
        (root / "s.toml").write_bytes(data if data is not None else text.encode("utf-8", "surrogatepass"))
        study = read_study(root / "s.toml")
        assert 0 <= study.seed < 2**63
        assert study.title.isprintable()
        assert 1 <= study.processes <= 4096
        assert all(entry.limit is None or entry.limit >= 1 for _, entry in study.data.entries())
        study.specs()
        assert len(study.datasets()) == len(list(study.data.entries()))
        assert all(entry.path.exists() for _, entry in study.data.entries() if entry.path is not None)

    return case


def series(root: Path) -> Case:
    """Checkpoints of one run: files that a pattern finds, each with the step in its name."""
    photo(root / "photos/a.png")
    for step in (1, 2, 10):
        (root / "w").mkdir(exist_ok=True)
        save_file({"a": torch.ones(1)}, root / f"w/epoch-{step}.safetensors")
        (root / f"w/step-{step}.toml").write_text(
            f'name = "a"\narchitecture = "vit_tiny_patch16_224"\nweights = "epoch-{step}.safetensors"'
        )
    (root / "w/epoch-\u0662.pth").write_bytes(b"")  # a digit that is none of ours
    mine: dict[str, Any] = {"name": "mine", "arch": "vit_tiny_patch16_224", "series": "w/epoch-*.safetensors"}
    alone: dict[str, Any] = {"name": "zoo/dino", "series": "other", "step": 5}
    content: dict[str, Any] = {"title": "T", "models": [mine, alone], "data": {"images": {"path": "photos"}}}
    patterns: tuple[str, ...] = (
        "w/*",
        "w/step-*.toml",
        "**/*",
        "/**/*",
        "/*/*/*/*/*/*",
        "w/epoch-**.safetensors",
        "*",
        "w/[*",
        "w/*/",
    )
    patterns += ("~nosuchuser/*", "w/\0*", "k" * 300 + "*", "/proc/*/fd/*", "w/../w/epoch-*.safetensors", "w/epoch-?.*")

    def case(random: Random) -> None:
        changed = changed_value(content, random)
        if random.random() < 0.5:
            changed = {**content, "models": [{**mine, "series": random.choice(patterns)}, alone]}
        (root / "s.toml").write_bytes(toml_text(changed).encode("utf-8", "surrogatepass"))
        study = read_study(root / "s.toml")
        found: dict[str, list[int]] = {}
        for model in study.models:
            if model.series is not None and model.step is not None:
                found.setdefault(model.series, []).append(model.step)
                file = model.weights or Path(model.name)
                assert not file.is_file() or f"-{model.step}." in file.name
        assert all(steps == sorted(set(steps)) for steps in found.values())
        assert len({model.title or model.name for model in study.models}) == len(study.models)

    return case


def cards(root: Path) -> Case:
    save_file({"a": torch.ones(1)}, root / "w.safetensors")
    content: dict[str, Any] = {
        "name": "mine",
        "architecture": "vit_tiny_patch16_224",
        "weights": "w.safetensors",
        "teaching": "dino",
        "title": "Mine",
        "options": {"patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 2, "qkv_bias": True, "mlp_ratio": 2.0},
        "preprocessing": {
            "size": [64, 64],
            "mean": [0.5, 0.5, 0.5],
            "std": [0.5, 0.5, 0.5],
            "interpolation": "bicubic",
        },
        "taught_on": {"dataset": "ImageNet", "labels": True},
        "provenance": {"free": ["form", 1]},
    }
    traps = ("checkpoint_path", "pretrained", "pretrained_cfg", "cache_dir", "features_only", "scriptable", "img_size")

    def case(random: Random) -> None:
        changed = changed_value(content, random)
        if random.random() < 0.2:
            changed = {**content, "options": {**content["options"], random.choice(traps): "/etc/passwd"}}
        (root / "card.toml").write_bytes(toml_text(changed).encode("utf-8", "surrogatepass"))
        card = read_card(root / "card.toml")
        assert card.taught_on is None or card.taught_on.dataset.isprintable()
        spec = resolve(f"random:{root / 'card.toml'}")
        shape = spec.shape
        height, width = spec.preprocessing.size
        assert (shape.layout.grid[0] * shape.patch[0], shape.layout.grid[1] * shape.patch[1]) == (height, width)
        assert all(math.isfinite(number) and number > 0 for number in spec.preprocessing.std)

    return case


def teaching_settings(root: Path) -> Case:
    content: dict[str, Any] = {"arch": "vit_tiny_patch16_224", "size": 32, "epochs": 1.5, "batch": 8, "rate": 0.1}
    content |= {"options": {"depth": 2}, "recipe": {"momentum": 0.9}, "seed": 3, "ema": 0.5, "precision": "auto"}

    def case(random: Random) -> None:
        (root / "c.toml").write_bytes(toml_text(changed_value(content, random)).encode("utf-8", "surrogatepass"))
        settings = TrainConfig.read(root / "c.toml")
        assert 0 < settings.epochs < math.inf
        assert settings.batch >= 1
        assert 0 <= settings.seed < 2**63

    return case


def captions(root: Path) -> Case:
    """A captions.json, or lines in a text file beside each image."""
    samples = open_images(photo(root / "photos/a.png").parent)

    def case(random: Random) -> None:
        text = json_text(changed_value({"a.png": ["a cat", "on a mat"], "b.png": "b"}, random))
        path = root / "photos" / random.choice(("captions.json", "a.txt"))
        lines = text.encode() if path.suffix == ".json" else b"a cat\non a mat\n"
        path.write_bytes(changed_bytes(lines, random))
        said = read_captions(root / "photos", samples)
        path.unlink()
        assert said is None or all(isinstance(line, str) and line for lines in said for line in lines)

    return case


test_some_cases, test_many_cases = campaign(studies, series, cards, teaching_settings, captions)
