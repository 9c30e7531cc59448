"""A study that could have been: seven models with planted kinds of heads, task curves and similarities."""

from __future__ import annotations

from collections.abc import Mapping

from tests.report.constructed_attention import Shape, add_attention
from tests.report.constructed_scores import PICTURES, add_features, add_tasks
from vitscope.core.results import Coverage, Label, Results
from vitscope.findings.outcome import Evidence, Finding, StudyOutcome, Verdict

MODELS = {"FS": "fs", "CLIP": "clip", "DINO": "dino", "MoCo-v3": "moco", "MAE": "mae", "BEiT": "beit", "Random": "none"}
SMALL = Shape(depth=12, heads=4, grid=(8, 8))


def outcome(shape: Shape = SMALL, models: Mapping[str, str] = MODELS) -> StudyOutcome:
    """A complete study. models: title -> teaching."""
    results = Results(
        title="The menagerie and its teachers",
        notes=["MAE: 3 pictures have no object inside the crop; saliency leaves them out"],
        skipped={"menagerie/cats/broken.png": "cannot identify image file"},
        coverage=[
            Coverage(title, dataset, kind, PICTURES, PICTURES)
            for title in models
            for dataset, kind in (("menagerie", "images"), ("menagerie parts", "masks"))
        ],
        settings={"seed": 0, "protocols": ["corrected", "paper"], "models": list(models)},
    )
    for title, key in models.items():
        label = Label(title, key, "menagerie", "ab" * 32)
        add_attention(results, label, shape)
        add_tasks(results, label, shape.depth)
        add_features(results, label, shape.depth, models)
        results.provenance.append(provenance(title))
    return StudyOutcome(results, findings())


def provenance(title: str) -> dict[str, object]:
    return {
        "digest": "ab" * 32,
        "title": title,
        "model": title,
        "weights": "cd" * 32,
        "preprocessing": "ef" * 32,
        "samples": "01" * 32,
        "dataset": "menagerie",
        "kind": "images",
        "count": PICTURES,
        "seen": PICTURES,
        "measure": "attention",
        "input_size": (64, 64),
        "dtype": "float32",
        "device": "cpu",
        "versions": {"vitscope": "0.1.0", "torch": "2.13.0", "timm": "1.0.30"},
    }


def findings() -> list[Finding]:
    holds, fails, untestable = Verdict.HOLDS, Verdict.FAILS, Verdict.UNTESTABLE
    checked = (
        ("F1", "Late attention of FS and CLIP falls into sparse repeating patterns.", holds, "gini", holds),
        ("F2", "Offset local attention heads exist in every model.", holds, "head_kind", None),
        ("F3", "Local and global information is processed in a different order.", holds, "attention_distance", None),
        ("F4", "All models find the foreground early; FS and CLIP lose it later.", fails, "saliency_merged", holds),
        ("F5", "Last-layer CLS similarity groups models by kind of teaching.", holds, "cka", None),
        ("F6", "CLS features of MAE and of contrastive models are similar.", fails, "cka_depth", None),
        ("F7", "Purity of CLS features improves with depth, except for BEiT.", holds, "purity", holds),
        ("F8", "Explicit supervision wins global tasks, at the last layers.", holds, "knn_top1", None),
        ("F9", "Local tasks are best served mid-to-late, not by the last layer.", holds, "pck@0.1", None),
        ("F10", "No single best model or layer for all tasks.", untestable, "", None),
    )
    evidence = (
        Evidence("FS: best-head IoU at layer 7", 0.4312, 0.401, 0.4605),
        Evidence("FS: best-head IoU at layer 12", 0.2987, 0.272, 0.331),
        Evidence("correlation with depth", -0.82),
    )
    reason = "FS reaches 0.84 at layer 12 while DINO stays at 0.75: the gap exceeds both intervals."
    rule = "holds if the loss exceeds 0.05 and the intervals do not overlap"
    return [
        Finding(key, claim, verdict, reason, evidence, rule, figure, other)
        for key, claim, verdict, figure, other in checked
    ]
