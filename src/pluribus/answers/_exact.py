"""Exact rational values as canonical text."""

from __future__ import annotations

from fractions import Fraction


def written(value: Fraction) -> str:
    """An integer, else a terminating decimal, else a fraction in lowest terms.

    >>> [written(Fraction(*pair)) for pair in ((18, 1), (-1, 20), (2, 6))]
    ['18', '-0.05', '1/3']
    """
    whole, below = value.numerator, value.denominator
    if below == 1:
        return str(whole)
    places = _places(below)
    if places is None:
        return f"{whole}/{below}"
    digits = str(abs(whole) * 10**places // below).rjust(places + 1, "0")
    return f"{'-' if whole < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _places(below: int) -> int | None:
    """Decimal places of 1/below in lowest terms; None when it never ends."""
    twos = fives = 0
    while below % 2 == 0:
        below, twos = below // 2, twos + 1
    while below % 5 == 0:
        below, fives = below // 5, fives + 1
    return max(twos, fives) if below == 1 else None
