"""F5 and F6: which models end up with similar features.

Not seen on real networks: it takes two methods of one kind of teaching, and MAE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from vitscope.core.teachings import teaching
from vitscope.findings.claim import Claim, Part, missing
from vitscope.findings.measured import Measured, mean_of
from vitscope.findings.similarity import Pair, last_layer_pairs
from vitscope.findings.tables import KINDS, Model, Study, no_model_of
from vitscope.findings.thresholds import Thresholds

Chosen = Callable[[Model, Model], bool]


def _grouped_by_kind(study: Study, t: Thresholds) -> Iterator[Part]:
    """F5."""
    cls = last_layer_pairs(study, "cls")
    if not cls:
        yield missing("no CKA of last-layer CLS tokens between models")
        return
    within, between = mean_similarity(cls, _same_kind), mean_similarity(cls, _other_kind)
    if within is None or between is None:
        one_kind = "two methods of one kind of teaching, such as FS and CLIP"
        what = one_kind if within is None else "models of two kinds of teaching, such as FS and DINO"
        yield missing(f"it takes last-layer CLS features of {what}")
    else:
        holds = within.clearly_above(between, t.cka_margin)
        word = "groups" if holds else "does not clearly group"
        evidence = (
            within.as_evidence("CLS CKA, models of the same kind of teaching"),
            between.as_evidence("CLS CKA, models of different kinds"),
            *(value.as_evidence(f"CLS CKA, {a.title} and {b.title}") for a, b, value in cls if _same_kind(a, b)),
        )
        numbers = f"{within:.2f} within, {between:.2f} between kinds"
        yield Part(holds, f"CKA of last-layer CLS tokens {word} models by kind of teaching ({numbers})", evidence)
    yield from _explicit_pair(cls, last_layer_pairs(study, "spatial"), t)


def _explicit_pair(cls: list[Pair], spatial: list[Pair], t: Thresholds) -> Iterator[Part]:
    """FS and CLIP: alike against what models of different kinds have, for CLS; not so for spatial tokens."""
    for tokens, pairs, expected in (("CLS", cls, True), ("spatial", spatial, False)):
        pair, others = mean_similarity(pairs, _between("fs", "clip")), mean_similarity(pairs, _other_kind)
        if pair is None or others is None:
            lacks = f"{tokens} CKA of " + ("FS with CLIP" if pair is None else "models of different kinds")
            yield missing(f"no last-layer {lacks}", core=False)
            continue
        alike = pair.clearly_above(others, t.cka_margin)
        yield Part(
            alike == expected,
            f"FS and CLIP are {'' if alike else 'not '}alike for {tokens} tokens "
            f"({pair:.2f}; models of different kinds {others:.2f})",
            (
                pair.as_evidence(f"{tokens} CKA, FS and CLIP"),
                others.as_evidence(f"{tokens} CKA, models of different kinds"),
            ),
        )


def _mae_and_contrastive(study: Study, t: Thresholds) -> Iterator[Part]:
    """F6."""
    pairs = last_layer_pairs(study, "cls")
    if not pairs:
        yield missing("no CKA of last-layer CLS tokens between models")
        return
    pair = mean_similarity(pairs, _mae_contrastive)
    if pair is None:
        keys = {model.teaching for a, b, _ in pairs for model in (a, b)}
        yield missing("no MAE model" if "mae" not in keys else no_model_of("contrastive"))
        return
    references: dict[str, Chosen] = {
        "MAE with explicit models": lambda a, b: (
            {a.kind, b.kind} == {"reconstruction", "explicit"} and _has(a, b, "mae")
        ),
        "other pairs of different kinds": lambda a, b: _other_kind(a, b) and not _mae_contrastive(a, b),
    }
    elevated = pair.as_evidence("CLS CKA, MAE with contrastive models")
    for name, chosen in references.items():
        reference = mean_similarity(pairs, chosen)
        if reference is None:
            yield missing(f"nothing to compare with: no CLS CKA of {name}")
            continue
        holds = pair.clearly_above(reference, t.cka_margin)
        word = "elevated against" if holds else "not clearly above"
        evidence = reference.as_evidence(f"CLS CKA, {name}")
        says = f"CLS CKA of MAE with contrastive models ({pair:.2f}) is {word} {name} ({reference:.2f})"
        yield Part(holds, says, (elevated, evidence) if name == next(iter(references)) else (evidence,))


def mean_similarity(pairs: list[Pair], chosen: Chosen) -> Measured | None:
    """Mean over pairs of teachings of the mean over their pairs of models; None if there is none.

    Only pairs of different teachings count: two sizes of one teaching say nothing about kinds.
    """
    ours = [(tuple(sorted((a.teaching, b.teaching))), value) for a, b, value in pairs if _differ(a, b) and chosen(a, b)]
    ours.sort(key=lambda item: item[0])
    groups = [mean_of([value for _, value in group]) for _, group in groupby(ours, key=lambda item: item[0])]
    return mean_of(groups) if groups else None


def _differ(a: Model, b: Model) -> bool:
    return a.teaching != b.teaching and a.kind in KINDS and b.kind in KINDS


def _same_kind(a: Model, b: Model) -> bool:
    return _differ(a, b) and a.kind == b.kind


def _other_kind(a: Model, b: Model) -> bool:
    return _differ(a, b) and a.kind != b.kind


def _between(one: str, other: str) -> Chosen:
    return lambda a, b: {a.teaching, b.teaching} == {one, other}


def _has(a: Model, b: Model, key: str) -> bool:
    return key in (a.teaching, b.teaching)


def _mae_contrastive(a: Model, b: Model) -> bool:
    return _has(a, b, "mae") and {a.kind, b.kind} == {teaching("mae").kind, "contrastive"}


def _rule_by_kind(t: Thresholds) -> str:
    return (
        f"Mean last-layer CLS CKA of models taught by two methods of the same kind is clearly above that of models of "
        f"different kinds, by {t.cka_margin} or more; FS with CLIP exceeds the latter in the same way for CLS tokens "
        "and does not for spatial tokens. Pairs of one teaching (sizes) do not count."
    )


def _rule_mae(t: Thresholds) -> str:
    return (
        f"Mean last-layer CLS CKA of MAE with contrastive models is clearly above that of MAE with explicit models and "
        f"that of all other pairs of different kinds, by {t.cka_margin} or more."
    )


F5 = Claim(
    key="F5",
    text="Last-layer CLS features group models by kind of teaching; FS and CLIP are similar for CLS but not for "
    "spatial tokens.",
    rule=_rule_by_kind,
    figure="cka",
    measures=("cka",),
    parts=_grouped_by_kind,
)

F6 = Claim(
    key="F6",
    text="CLS features of MAE and of the contrastive models show surprisingly elevated similarity.",
    rule=_rule_mae,
    figure="cka",
    measures=("cka",),
    parts=_mae_and_contrastive,
)
