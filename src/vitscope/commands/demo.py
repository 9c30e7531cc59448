"""`vitscope demo`: the whole study on what ships with vitscope."""

from __future__ import annotations

from pathlib import Path

from vitscope.commands.options import Drawn, FigureWidth


def demo(*, out: Path = Path("runs/demo"), figures: Drawn = "page", width: FigureWidth = None) -> None:
    """Run the complete study - How, What, Why, findings, page - on the built-in zoo and world.

    Takes about three minutes on two cores; the second time only the page is written anew.

    Parameters
    ----------
    out
        Folder for everything that is written.
    """
    import torch
    from threadpoolctl import threadpool_limits

    from vitscope.commands.run import run_and_conclude
    from vitscope.core.progress import shown
    from vitscope.pipeline.demo import demo_study

    # The zoo is tiny: more threads would wait for each other longer than they work, most of all on a busy machine.
    torch.set_num_threads(1)
    with threadpool_limits(1):
        study = demo_study(out.resolve(), progress=shown)
        run_and_conclude(study.model_copy(update={"figures": figures, "width": width}))
