"""Results as files: what is loaded is what was saved."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from vitscope import Results, VitscopeError
from vitscope.core.results import Label, tidy


@pytest.mark.parametrize("kind", [str, Path])
def test_a_folder_is_named_by_a_string_or_a_path(tmp_path: Path, kind: type) -> None:
    table = tidy(Label("m", "dino", "photos", "abc"), "attention_distance", torch.rand(2, 3))
    saved = Results(table, {"m/cls": torch.rand(2, 3, 4, 4)}, [{"digest": "abc"}], {"a.png": "is cut"}, ["no CLS"])
    saved.save(kind(tmp_path / "runs"))
    loaded = Results.load(kind(tmp_path / "runs"))
    assert loaded.table.equals(saved.table, null_equal=True)
    assert torch.equal(loaded.maps["m/cls"], saved.maps["m/cls"])
    assert (loaded.provenance, loaded.skipped, loaded.notes) == (saved.provenance, saved.skipped, saved.notes)


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    with pytest.raises(VitscopeError, match="holds no vitscope results"):
        Results.load(str(tmp_path))
