"""Settings of `teach`: from a file, in a card, in a run that goes on; and how a run that was stopped ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from timm.models.vision_transformer import VisionTransformer

from tests.conftest import make_photos
from tests.teaching.tiny import ARCH, OPTIONS, squares
from vitscope.cli import main
from vitscope.core.errors import BadCheckpoint, VitscopeError
from vitscope.pipeline.study import parse_study
from vitscope.teaching import Interrupted, TrainConfig, teach
from vitscope.teaching.loop import CHECKPOINT, METRICS, Diverged, Run, Settings
from vitscope.teaching.optimiser import Optimiser, Rates
from vitscope.teaching.schedule import Schedule
from vitscope.teaching.teachers.registry import create_teacher, recipe_for
from vitscope.teaching.teachers.supervised import Supervised

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NETWORK = {k: v for k, v in OPTIONS.items() if k != "img_size"}
SMALL = {"arch": ARCH, "options": NETWORK, "size": 16, "batch": 8, "workers": 0, "epochs": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("settings") / "squares"
    images = squares(count=40)
    for i, (pixels, label) in enumerate(zip(images.pixels, images.labels.tolist(), strict=True)):
        path = folder / f"class {label}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.transpose(1, 2, 0)).save(path)
    return folder


def provenance(card: Any) -> Any:
    return tomllib.loads(card.read_text())["provenance"]


@pytest.fixture(scope="module")
def done(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("done") / "run"
    return out, teach("fs", folder, out=out, **SMALL)


@pytest.mark.parametrize(
    ("name", "value"),
    [("rate", 0.1), ("matrix_rate", 0.5), ("epochs", 3), ("decay", 0.5), ("matrix_decay", 0.5), ("warmup", 0.5),
     ("cooldown", 0.1), ("clip", 9.0)],
)  # fmt: skip
def test_a_run_that_goes_on_refuses_other_settings_by_name(
    folder: Path, done: tuple[Path, Path], name: str, value: float
) -> None:
    with pytest.raises(BadCheckpoint, match=rf"made with {name} '[\d.]+', not '{float(value)}'.*or --change"):
        teach("fs", folder, out=done[0], **{**SMALL, name: value})


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"seed": 7}, "seed '0', not '7'"),
        ({"batch": 4}, "batch '8', not '4'"),
        ({"recipe": {"smoothing": 0.2}}, "recipe smoothing"),
    ],
)
def test_another_seed_is_called_another_seed_and_cannot_be_changed(
    folder: Path, done: tuple[Path, Path], changes: dict[str, Any], what: str
) -> None:
    with pytest.raises(BadCheckpoint, match=what) as refused:
        teach("fs", folder, out=done[0], change=True, **{**SMALL, **changes})
    assert "--change" not in str(refused.value)


def test_the_card_tells_every_setting(done: tuple[Path, Path]) -> None:
    told = provenance(done[1])
    expected = TrainConfig(arch=ARCH, size=16, batch=8, epochs=2).told()
    assert told["settings"] == {k: v for k, v in expected.items() if v is not None and k not in ("options", "recipe")}
    assert told["recipe"]["smoothing"] == 0.1


def test_a_change_that_is_asked_for_is_made_and_recorded(folder: Path, tmp_path: Path) -> None:
    teach("fs", folder, out=tmp_path / "run", stop_after=0, **SMALL)
    card = teach("fs", folder, out=tmp_path / "run", change=True, **{**SMALL, "rate": 0.003, "decay": 0.5, "epochs": 3})
    changes = provenance(card)["changes"]
    assert [(c["step"], c["setting"], c["before"], c["after"]) for c in changes] == [
        (0, "epochs", 2.0, 3.0), (0, "rate", 0.0015, 0.003), (0, "decay", 0.05, 0.5)
    ]  # fmt: skip
    state = torch.load(tmp_path / "run" / CHECKPOINT, weights_only=True)
    assert state["optimiser"]["adamw"]["param_groups"][0]["weight_decay"] == 0.5
    assert provenance(card)["complete"] is True


def test_an_interrupted_run_says_so_and_ends_with_the_signals_status(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Run.learn

    def stopped(run: Any, lesson: Any) -> None:
        learn(run, lesson)
        if run.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Run, "learn", stopped)
    words = ["teach", "fs", "--images", str(folder), "--out", str(tmp_path / "run"), "--arch", ARCH, "--size", "16",
             "--batch", "8", "--epochs", "2", "--workers", "0"]  # fmt: skip
    words += [word for name, value in NETWORK.items() for word in ("--option", f"{name}={value}")]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 128 + signal.SIGTERM
    said = " ".join(capsys.readouterr().out.split())
    assert "stopped at step 3 of 10, not finished: the same command goes on" in said
    assert "wrote" not in said
    monkeypatch.undo()
    main(words)
    assert "wrote" in capsys.readouterr().out


def test_an_interrupt_in_python_is_a_keyboard_interrupt(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Run.learn
    monkeypatch.setattr(Run, "learn", lambda run, lesson: (learn(run, lesson), os.kill(os.getpid(), signal.SIGINT)))
    with pytest.raises(Interrupted, match="step 1 of 10") as ended:
        teach("fs", folder, out=tmp_path / "run", **SMALL)
    assert provenance(ended.value.taught.card)["complete"] is False


def test_divergence_before_the_first_checkpoint_names_none(tmp_path: Path) -> None:
    teacher = create_teacher("fs", ARCH, OPTIONS, squares(), seed=0)
    run = Run(tmp_path, teacher, squares(), Schedule(1, 3), Settings(batch=6), identity={})
    teacher.loss = lambda lesson: (teacher.classifier.weight.sum() * float("nan"), {})
    with pytest.raises(Diverged, match="there is no checkpoint yet; begin again with a smaller learning rate"):
        run.train()


def test_no_looks_no_knn_and_a_look_tells_layer_and_number(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teach("fs", folder, out=tmp_path / "none", looks=0, **SMALL)
    assert "k-NN" not in capsys.readouterr().err
    teach("fs", folder, out=tmp_path / "some", looks=2, **SMALL)
    assert "layer" in (said := capsys.readouterr().err)
    assert "2 held-out images among 38)" in said
    with pytest.raises(VitscopeError, match="looks is -1"):
        teach("fs", folder, out=tmp_path / "less", looks=-1, **SMALL)


def test_metrics_are_json_lines_without_doubles(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    teach("fs", folder, out=out, save_every=4, **SMALL)
    (out / "checkpoint-4.pt").replace(out / CHECKPOINT)  # as after a kill: metrics go on beyond the last checkpoint
    teach("fs", folder, out=out, **SMALL)
    lines = [json.loads(line) for line in (out / METRICS).read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 11))
    assert {"loss", "images", "cpu_seconds", "logs", "knn", "rate"} <= lines[0].keys()
    assert max(line["rate"] for line in lines) == 0.0015


def test_checkpoints_are_set_aside_and_only_the_newest_kept(folder: Path, tmp_path: Path) -> None:
    teach("fs", folder, out=tmp_path / "run", save_every=3, keep=2, **SMALL)
    assert sorted(path.name for path in (tmp_path / "run").glob("checkpoint*")) == [
        "checkpoint-6.pt", "checkpoint-9.pt", "checkpoint.pt"
    ]  # fmt: skip
    assert torch.load(tmp_path / "run" / "checkpoint-6.pt", weights_only=True)["step"] == 6
    assert sorted(path.name for path in (tmp_path / "run").glob("step-*")) == [
        "step-6.safetensors", "step-6.toml", "step-9.safetensors", "step-9.toml"
    ]  # fmt: skip


def test_what_is_kept_is_a_series(folder: Path, tmp_path: Path) -> None:
    teach("fs", folder, out=tmp_path / "run", save_every=3, **SMALL)
    data = {"images": {"path": str(folder)}}
    models = [{"name": "a", "series": "run/step-*.toml"}]
    specs = parse_study({"title": "t", "models": models, "data": data, "baselines": False}, tmp_path).specs()
    assert [spec.title for spec in specs] == ["a @ 3", "a @ 6", "a @ 9"]
    assert len({spec.load().weights_digest for spec in specs}) == 3


def test_a_batch_in_parts_gives_the_gradient_of_the_whole(tmp_path: Path) -> None:
    still = {"view": {"flip": 0.0}}
    gradients = []
    for parts in (1, 4):
        teacher = create_teacher("fs", ARCH, OPTIONS, squares(), seed=0, recipe=recipe_for("fs", still))
        torch.nn.init.constant_(teacher.classifier.weight[0], 1.0)
        run = Run(
            tmp_path / str(parts), teacher, squares(), Schedule(1, 2), Settings(batch=8, accumulate=parts), identity={}
        )
        run.optimiser.step = lambda factor: None
        run.train(stop=lambda run=run: run.step == 1)
        gradients.append({name: parameter.grad for name, parameter in teacher.named_parameters()})
    for name, whole in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], whole, rtol=1e-3, atol=1e-6)


def test_a_batch_that_cannot_be_divided_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(VitscopeError, match="a batch of 8 cannot be divided among 1 processes and 3 parts"):
        teach("fs", folder, out=tmp_path / "run", accumulate=3, **SMALL)


def test_a_run_can_begin_with_the_weights_of_another(folder: Path, done: tuple[Path, Path], tmp_path: Path) -> None:
    card = teach(
        "mae", folder, out=tmp_path / "run", weights=done[1], stop_after=0, recipe={"decoder_width": 16}, **SMALL
    )
    assert provenance(card)["digest"] == provenance(done[1])["digest"]
    assert provenance(card)["settings"]["weights"] == str(done[1])


def test_the_moving_average_is_shipped_and_survives_a_stop(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = teach("fs", folder, out=tmp_path / "whole", ema=0.5, **SMALL)
    plain = teach("fs", folder, out=tmp_path / "plain", **SMALL)
    assert provenance(whole)["digest"] != provenance(plain)["digest"]
    with monkeypatch.context() as patch:
        learn = Run.learn
        patch.setattr(
            Run,
            "learn",
            lambda run, lesson: (learn(run, lesson), run.step == 4 and os.kill(os.getpid(), signal.SIGINT)),
        )
        with pytest.raises(Interrupted):
            teach("fs", folder, out=tmp_path / "parts", ema=0.5, **SMALL)
    parts = teach("fs", folder, out=tmp_path / "parts", ema=0.5, **SMALL)
    assert provenance(parts)["digest"] == provenance(whole)["digest"]
    with pytest.raises(VitscopeError, match="a moving average already"):
        teach("dino", folder, out=tmp_path / "dino", ema=0.5, **SMALL)


def test_earlier_blocks_learn_more_slowly(vit: VisionTransformer) -> None:
    teacher = Supervised(vit, classes=3)
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    optimiser = Optimiser(teacher, Rates(matrices=0.1, others=0.1, matrix_decay=0, other_decay=0), layer_decay=0.5)
    for parameter in teacher.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimiser.step(1.0)
    moved = {name: float((value - before[name]).abs().mean()) for name, value in teacher.state_dict().items()}
    for name in ("norm1.weight", "attn.proj.weight", "mlp.fc1.weight"):
        assert moved[f"vit.blocks.0.{name}"] / moved[f"vit.blocks.1.{name}"] == pytest.approx(0.5, rel=0.1)
    assert moved["vit.pos_embed"] == pytest.approx(0.025, rel=0.01)  # before both blocks
    for name in ("vit.norm.weight", "classifier.weight"):
        assert moved[name] == pytest.approx(0.1, rel=0.01)


def test_settings_come_from_a_file_and_the_call_comes_before_it(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        f'arch = "{ARCH}"\nsize = 16\nbatch = 4\nepochs = 1\nrate = 0.002\n[options]\npatch_size = 4\nembed_dim = 16\n'
        "depth = 2\nnum_heads = 2\n[recipe]\nsmoothing = 0.2\n"
    )
    card = teach("fs", folder, out=tmp_path / "python", config=path, workers=0, batch=8)
    main(["teach", "fs", "--images", str(folder), "--out", str(tmp_path / "python"), "--config", str(path), "--batch",
          "8", "--workers", "0"])  # fmt: skip  # the same settings, so that it goes on (and finds all done)
    told = provenance(card)
    assert (told["settings"]["batch"], told["settings"]["rate"], told["recipe"]["smoothing"]) == (8, 0.002, 0.2)
    assert provenance(tmp_path / "python" / "model.toml")["digest"] == told["digest"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("rate = -1", "rate is -1: input should be greater than or equal to 0"), ("speed = 3", "speed is 3: extra inputs"),
     ("rate = [", "not valid TOML"), ("warmup = 2", "warmup is 2")],
)  # fmt: skip
def test_a_bad_file_is_refused_in_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(VitscopeError, match=message):
        TrainConfig.read(path)


def test_a_network_must_be_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(VitscopeError, match="say which network to teach: --arch"):
        teach("fs", folder, out=tmp_path / "run")


@pytest.mark.parametrize("option", ["checkpoint_path", "pretrained", "cache_dir", "features_only", "scriptable"])
def test_options_only_shape_the_network(tmp_path: Path, option: str) -> None:
    with pytest.raises(VitscopeError, match=f"the option '{option}' does not shape a network"):
        teach(
            "mae",
            make_photos(tmp_path / "photos", count=8),
            ARCH,
            tmp_path / "out",
            options={**OPTIONS, option: "/etc/passwd"},
        )


def test_a_damaged_cache_is_made_anew(tmp_path: Path) -> None:
    photos = make_photos(tmp_path / "photos", count=8)
    settings = {"options": OPTIONS, "batch": 4, "epochs": 1, "looks": 0}
    teach("mae", photos, ARCH, tmp_path / "out", **settings)
    (cache,) = (tmp_path / "out/cache").glob("*.npy")
    whole = cache.read_bytes()
    for damaged in (whole[: len(whole) // 2], bytes(len(whole)), b""):
        cache.write_bytes(damaged)
        teach("mae", photos, ARCH, tmp_path / "out", **settings)
        assert cache.read_bytes() == whole
