"""The world in the official layouts, so that it goes through the same loaders as real datasets."""

from vitscope.menagerie.export.everything import Amounts, Summary, export

__all__ = ["Amounts", "Summary", "export"]
