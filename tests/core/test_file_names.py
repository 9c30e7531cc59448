"""Titles become file names that tell them apart, however alike they are."""

from __future__ import annotations

from vitscope.core.files import file_names


def test_a_number_does_not_take_the_name_of_another_title() -> None:
    names = file_names(["A B", "a-b", "a-b 2", "A.B"])
    assert names == {"A B": "a-b", "a-b": "a-b-3", "a-b 2": "a-b-2", "A.B": "a-b-4"}


def test_titles_without_letters_have_names_too() -> None:
    assert file_names(["?", "!"]) == {"?": "untitled", "!": "untitled-2"}
