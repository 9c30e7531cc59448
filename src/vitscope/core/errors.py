"""What can go wrong because of what somebody asked for: one sentence with the remedy, exit status 2."""

from __future__ import annotations

QUOTED = 120  # characters of somebody's text that a message repeats
LONGEST = 1000  # characters of a whole message: what stands behind them nobody reads


def printable(text: object) -> str:
    """Text on one line that any terminal takes: line breaks, control characters and foreign bytes are spelled out.

    >>> printable("two\\nlines, a bell \\x07 and half a character \\udcff")
    'two\\\\nlines, a bell \\\\x07 and half a character \\\\udcff'
    """
    said = str(text)
    return said if said.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in said)


def shorten(text: object, most: int = QUOTED) -> str:
    """Somebody's text as a message may quote it: printable, with its middle left out if it is long.

    >>> shorten("abcdefghijklmnop", most=9)
    'abcd ... mnop'
    """
    said = str(text)
    if len(said) > most:
        half = most // 2
        return f"{printable(said[:half])} ... {printable(said[-half:])}"
    return printable(said)


class VitscopeError(Exception):
    """Bad input. The message is one sentence that says what is wrong and what to do about it.

    Whatever file names, keys and library messages are quoted in it, it stays one printable line.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(shorten(str(message).strip(), LONGEST))


class MissingWeights(VitscopeError):
    """Weights were asked for that are not on this machine; never replaced by a random network."""


class UnsupportedModel(VitscopeError):
    """A model that cannot be observed completely; refused by name with the reason."""


class BadCheckpoint(VitscopeError):
    """A weights file that is damaged, unsafe, of an unknown format, or of another architecture."""


class BadData(VitscopeError):
    """Images or annotations that are missing, unreadable, or not in the layout that was expected."""
