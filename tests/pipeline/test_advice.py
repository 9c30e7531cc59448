"""What is said of constructed studies: the sentence, the ties in the table, and what is never said."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import torch

from vitscope.core.results import Label, Results, tidy
from vitscope.pipeline.advice import Advice, advise
from vitscope.pipeline.best_layers import BestLayers

LAYERS = 3


def study(models: dict[str, tuple[str, float]], n: int = 400, *, units: bool = True, skip: str = "") -> Results:
    """k-NN of models: title -> (teaching, accuracy at the last layer). skip: whose first image could not be read."""
    results = Results()
    generator = np.random.default_rng(0)
    shared = generator.random((n, 1))
    for title, (teaching, level) in models.items():
        truth = np.linspace(level / 2, level, LAYERS)
        own = generator.random((n, LAYERS))
        hits = torch.from_numpy(np.where(own < 0.5, shared, generator.random((n, LAYERS))) < truth)
        ids = torch.arange(n, dtype=torch.int32)
        if title == skip:
            hits, ids = hits[1:], ids[1:]
        label = Label(title, teaching, "beasts", "p")
        results.extend([tidy(label, "knn_top1", hits.double().mean(0), axes=("layer",), variant="cls k=20")])
        if units:
            results.maps[f"{title}/units.knn@beasts"] = hits.to(torch.uint8)
            results.maps[f"{title}/units.knn.floor@beasts"] = torch.full((len(hits),), 0.1)
            results.maps[f"{title}/units.knn.ids@beasts"] = ids
        results.provenance.append({"title": title, "architecture": "vit_small_patch16_224.tag"})
    return results


def said(results: Results) -> tuple[BestLayers, Advice]:
    table, (one,) = advise(results)
    return table, one


def test_a_clear_winner_is_taken_beside_chance_and_the_untrained_network() -> None:
    table, one = said(study({"A": ("dino", 0.8), "B": ("mae", 0.5), "Z": ("none", 0.2)}))
    assert one.kind == "take"
    assert one.sentence.startswith("Take A at layer 3 of 3: ")
    assert "untrained" in one.sentence
    assert "always answering the commonest class 10.00" in one.sentence
    assert "Ahead of B by " in one.sentence
    assert "would flatter it by" in one.remark
    assert not any(cell.tied for cell in table.cells.values())


def test_the_table_marks_exactly_those_that_the_sentence_names() -> None:
    table, one = said(study({"A": ("dino", 0.6), "B": ("mae", 0.6), "C": ("fs", 0.2), "Z": ("none", 0.1)}, n=60))
    assert one.kind == "undecided"
    assert "Too little data to decide between" in one.sentence
    assert "more test images would" in one.sentence
    assert {model for (model, _), cell in table.cells.items() if cell.tied} == set(one.named) == {"A", "B"}


def test_random_networks_are_not_recommended_whatever_they_are_called() -> None:
    _, one = said(study({f"random {i}": ("none", 0.2) for i in range(4)}, n=30))
    assert one.sentence.startswith("Nothing to recommend: no model of this study was taught.")
    _, one = said(study({"mine": ("other", 0.2), "random": ("none", 0.2)}, n=30))
    assert one.kind == "nothing"
    assert one.sentence.startswith("Nothing to recommend: no model is clearly better than")
    assert one.named == ()


def test_few_units_are_said_to_be_few() -> None:
    _, one = said(study({"A": ("dino", 0.9), "B": ("mae", 0.5), "Z": ("none", 0.1)}, n=8))
    assert "Only 8 test images were asked." in one.sentence
    assert one.kind != "take"


def test_models_are_compared_on_the_units_that_both_were_asked() -> None:
    _, one = said(study({"A": ("dino", 0.8), "B": ("mae", 0.3), "Z": ("none", 0.1)}, skip="B"))
    assert one.decision is not None
    assert one.decision.n == 399


def test_without_scores_of_units_nothing_is_said_about_differences() -> None:
    table, one = said(study({"A": ("dino", 0.8), "B": ("mae", 0.3)}, units=False))
    assert (one.kind, one.named) == ("unknown", ())
    assert "no scores of single test images are kept" in one.sentence
    assert not any(cell.tied for cell in table.cells.values())


def test_no_results_no_advice() -> None:
    table, advice = advise(Results(table=pl.DataFrame(schema=Results().table.schema)))
    assert (table.columns, advice) == ((), [])


def test_pixels_that_do_as_well_as_every_model_leave_nothing_to_recommend() -> None:
    results = study({"A": ("dino", 0.6), "Z": ("none", 0.1)})
    _, one = said(results)
    assert (one.kind, one.pixels) == ("take", None)
    for title in "AZ":
        results.maps[f"{title}/units.knn.pixels@beasts"] = results.maps["A/units.knn@beasts"][:, -1].float()
    _, one = said(results)
    assert one.kind == "nothing"
    assert "no model is clearly better than the pixels themselves;" in one.sentence
    assert f"the pixels themselves {100 * one.pixels:.2f}" in one.sentence  # type: ignore[operator]


def test_what_cannot_decide_anything_is_said() -> None:
    _, one = said(study({"A": ("dino", 0.9), "B": ("mae", 0.5), "Z": ("none", 0.1)}, n=4))
    assert one.decision is not None
    assert f"Fewer than {one.decision.fewest} cannot decide anything here, even if they all agree." in one.sentence
    _, one = said(study({"A": ("dino", 0.9), "B": ("mae", 0.5), "Z": ("none", 0.1)}, n=40))
    assert "cannot decide anything" not in one.sentence


def test_no_difference_is_said_to_be_larger_than_scores_can_differ() -> None:
    _, one = said(study({"A": ("dino", 0.9), "Z": ("none", 0.1)}, n=2))
    assert one.decision is not None
    assert min(other.low for other in one.decision.others) < -1
    low, high = re.findall(r"points \((\S+) to (\S+)\)", one.sentence)[0]
    assert float(low.replace("\u2212", "-")) >= -100
    assert float(high) <= 100


def test_who_was_taught_the_labels_or_captions_is_said_where_classes_are_asked_for() -> None:
    taught = {"A": ("fs", 0.8), "A2": ("fs", 0.5), "B": ("clip", 0.5), "C": ("dino", 0.5)}
    results = study(taught | {"Z": ("none", 0.2)})
    for about in results.provenance:
        labels = about["title"].startswith("A")
        about["taught_on"] = None if about["title"] == "Z" else {"dataset": "the beasts", "labels": labels}
    _, one = said(results)
    assert one.sentence.endswith(
        " Mind that A and A2 were taught the labels of the beasts and B was taught the captions of the beasts."
    )
