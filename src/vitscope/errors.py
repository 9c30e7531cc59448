"""What can go wrong because of what somebody asked for: one sentence with the remedy, exit status 2."""

from __future__ import annotations


class VitscopeError(Exception):
    """Bad input. The message is one sentence that says what is wrong and what to do about it."""


class MissingWeights(VitscopeError):
    """Weights were asked for that are not on this machine; never replaced by a random network."""


class UnsupportedModel(VitscopeError):
    """A model that cannot be observed completely; refused by name with the reason."""


class BadCheckpoint(VitscopeError):
    """A weights file that is damaged, unsafe, of an unknown format, or of another architecture."""


class BadData(VitscopeError):
    """Images or annotations that are missing, unreadable, or not in the layout that was expected."""
