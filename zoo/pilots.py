"""Short lessons for other architectures, at equal CPU time: what the zoo's own was chosen by (`zoo/NOTES.md`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from vitscope.core.errors import VitscopeError
from vitscope.teaching.schedule import Schedule
from zoo import courses
from zoo.courses import ROOT, classroom, open_run
from zoo.heads import heads_of

# What differs from the zoo's architecture.
VARIANTS: dict[str, dict[str, Any]] = {
    "zoo": {},
    "absolute": {"use_rot_pos_emb": False},
    "rotary-only": {"use_abs_pos_emb": False},
    "gentle": {"rope_temperature": 100.0},
    "wide": {"embed_dim": 96, "num_heads": 6},
    "two-heads": {"num_heads": 2},
    "coarse": {"patch_size": 7, "ref_feat_shape": 13},
}


def pilot(teacher: str, variant: str = "zoo", *, minutes: float = 6.0, root: Path = ROOT) -> None:
    """Teach a network of another architecture for some CPU-minutes, and print loss, k-NN and kinds of heads.

    Parameters
    ----------
    teacher:
        Whose course: fs, clip, dino, moco, mae or beit.
    variant:
        What differs from the zoo's architecture.
    minutes:
        CPU time.
    root:
        Folder of the rendered images; the pilot's checkpoint and result are kept in it.
    """
    for name, known in ((teacher, courses.COURSES), (variant, VARIANTS)):
        if name not in known:
            raise VitscopeError(f"'{name}' is none of {', '.join(known)}")
    torch.set_num_threads(1)
    images, watch = classroom(root)
    folder = root / "pilots" / f"{teacher}-{variant}"
    options = {**courses.OPTIONS, **VARIANTS[variant]}
    run = open_run(folder, teacher, images, Schedule(courses.WARMUP), options=options)
    run.resume()
    run.train(stop=lambda: run.cpu_seconds >= minutes * 60)
    if not run.curve or run.curve[-1].step < run.step:
        run.note_point()
    heads = heads_of(run.encoder)
    scores = {name: vars(score) for name, score in watch(run.encoder).items()}
    found = {
        "teacher": teacher,
        "variant": variant,
        "images": run.step * run.settings.batch,
        "cpu_minutes": round(run.cpu_seconds / 60, 1),
        "loss": round(run.curve[-1].loss, 3),
        "knn": {name: round(max((score["cls"] or []) + score["patch"]), 3) for name, score in scores.items()},
        "heads": str(heads),
        "firm": heads.firm,
    }
    (folder / "found.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found), flush=True)
