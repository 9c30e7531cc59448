"""The world in the official layouts, so that it goes through the same loaders as real datasets."""

from vitscope.menagerie.export.everything import SIZE, Amounts, Summary, export

__all__ = ["SIZE", "Amounts", "Summary", "export"]
