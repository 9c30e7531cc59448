"""Numbers and lists as people write them."""

from __future__ import annotations

import math


def rounded(value: float | None, digits: int = 5) -> float | None:
    """A number short enough to be written a hundred thousand times; None where there is none.

    >>> rounded(0.123456789), rounded(float("nan"))
    (0.12346, None)
    """
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")


def number(value: float) -> str:
    """Three digits, at most three of them behind the point; small numbers keep two that count.

    >>> number(0.123456), number(0.08), number(12.3456), number(1234.5), number(0.00042), number(0)
    ('0.123', '0.080', '12.3', '1234', '0.00042', '0')
    """
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -5 or size > 6:
        return f"{value:.1e}"
    return f"{value:.{1 - size}f}" if size < -3 else f"{value:.{min(3, max(0, 2 - size))}f}"


def count(many: int, one: str, several: str = "") -> str:
    """
    >>> count(1, "model"), count(7, "model"), count(2, "study", "studies")
    ('1 model', '7 models', '2 studies')
    """
    return f"{many:,} {one if many == 1 else several or one + 's'}"
