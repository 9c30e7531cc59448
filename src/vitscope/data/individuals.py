"""Retrieval on one's own images: a folder of individuals, one subfolder per identity.

Every image of an individual with at least two images is a query; the others of the same individual are what should
be found (easy), and the query itself is ignored (junk).
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from vitscope.core.errors import BadData
from vitscope.core.reading import user_path
from vitscope.data.folders import open_images
from vitscope.data.layouts import found_in
from vitscope.data.revisited import RetrievalQuery, RetrievalSet
from vitscope.data.samples import SampleList

EXPECTED = "expected one subfolder per individual with two or more images, and at least two individuals"


def open_individuals(root: Path | str) -> RetrievalSet:
    """The images of all individuals as the database, and a query for each that has something to be found."""
    root = user_path(root)
    database = open_images(root)
    if not database.is_labelled:
        raise BadData(f"{root} is not a folder of individuals: {EXPECTED}; found {found_in(root)}")
    return retrieval_by_label(database, root.resolve().name)


def retrieval_by_label(database: SampleList, name: str) -> RetrievalSet:
    """Each image of a labelled list as a query for the others of its label."""
    members: dict[int | None, list[int]] = defaultdict(list)
    for position, label in enumerate(database.labels):
        members[label].append(position)
    asking = [p for p, label in enumerate(database.labels) if len(members[label]) > 1]
    if not asking:
        raise BadData(f"no individual in {database.origin} has two images: {EXPECTED}")
    queries = tuple(
        RetrievalQuery(
            easy=tuple(other for other in members[database[position].label] if other != position),
            hard=(),
            junk=(position,),
            position=position,
        )
        for position in asking
    )
    alone = sum(len(group) == 1 for group in members.values())
    notes = (f"{alone} individuals have a single image: they are searched but not asked for",) if alone else ()
    return RetrievalSet(name, database, database.select(asking), queries, notes)
