r"""Numbers, compared by exact value.

Canonical: an integer, else a terminating decimal, else a fraction in lowest terms: `18.00` is `18`, `1/2` is `0.5`,
`2/6` is `1/3`. Currency and percent signs, thousands separators and units are dropped: `$57,500` is `57500`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from pluribus.answers._committed import Span, committed, sentence, tail
from pluribus.answers._exact import written
from pluribus.types import Question

_CURRENCY = r"(?:US)?[$€£¥₹]"
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    rf"""
    (?<![\w^_{{\\]) (?<!\d[.:]) (?<![A-Za-z][-−+*/]) (?: (?<![)\]}}%]) (?P<sign>[-−–]) (?=[$€£¥₹\d.]) )?
    (?:{_CURRENCY}\s?)? (?P<minus>[-−](?=[\d.]))?
    (?P<first>{_DIGITS})
    (?: [eE](?P<exponent>[+-]?\d+)(?!\w)
      | \s?[×*]\s?10\s?\^\s?\{{?(?P<power>[-−]?\d+)\}}?
      | _\{{?(?P<base>\d{{1,2}})\}}?
      | (?:\s(?P<above>\d+))? \s?/\s? (?P<below>\d+(?:\.\d+)?)(?![\w/]) )?
    """,
    re.VERBOSE,
)
_UNIT = re.compile(r"\s*[%°]?\s*(?:[A-Za-z][A-Za-z .]*[²³]?)?\s*[.!]?")
_LABEL = re.compile(r"(?:[A-Za-z_]\w{0,2}\s*=|[=≈~+])\s*")
# What stands beside a number that is only a part of the answer: 2√3, 4 * (40 − x), 12-10d, "-1, 2"; not bold's stars.
_PART = re.compile(
    r"""\s?[\^π√!] | \( | [abknpqrxyz](?!\w) | \s?\\(?:sqrt|pi)\b | \s*[/×÷+]
    | \s\*\s+(?=[\w(\\$.]) | \*(?=[\w(\\$.]) | \*\*(?=[\d(]) | \s*[-−,]\s?[$€£−-]?[\d(] | \s+[-−]\s
    | (?:\s+[A-Za-z]+){0,2}\s+(?:and|or)\s+[$€£]?[−-]?\d""",
    re.VERBOSE,
)
_TERM = re.compile(r"[A-Za-z)]\s?[*/+×÷]\s?\Z")
_ASIDE = re.compile(r"[(,;]|\b(?:because|since|as|where|when|for|if|with|so)\b")
_DRESS = "*_`\"' \t$"
_EXACT = ("boxed", "hash")
"""Marks that hold the bare answer: what is no number as a whole is no answer."""
_FIRM = (*_EXACT, "quoted")
"""Marks that take back whatever was said before, also when they hold no number."""
_MOST_DIGITS = 400
_MOST_EXPONENT = 300

_LATEX = (
    (re.compile(r"\\\\(?=[a-zA-Z(\[$%{}])"), r"\\"),
    (re.compile(r"\\[dt]?frac\s*\{\s*(-?[\d.]+)\s*\}\s*\{\s*([\d.]+)\s*\}"), r"\1/\2"),
    (re.compile(r"\\[dt]?frac\s*(\d)\s*(\d)"), r"\1/\2"),
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|mbox)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\{,\}|(?<=\d)\\[,!;]\s?(?=\d{3})"), ","),
    (re.compile(r"\^\s*\{?\\circ\}?"), " "),
    (re.compile(r"\\(?:times|cdot)\b"), "×"),
    (re.compile(r"\\(?=[$%])"), ""),
    (re.compile(r"\\(?:left|right|displaystyle|approx|quad|[,!;: ()\[\]])"), " "),
)
_THIN_SPACE = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3})")


def read(text: str, question: Question) -> str | None:
    r"""The last committed number; without any mark the last number of the text.

    >>> q = Question("q", "t", "How many?", "number")
    >>> read("18/2 = 9, so A has 9.\nA: 9 of 12", q), read(r"so $x = \boxed{-1{,}000}$", q), read("none", q)
    ('9', '-1000', None)
    """
    marked = False
    for span in committed(text):
        marked = True
        value = _value_of(span)
        if value is not None:
            return written(value)
        if span.form in _FIRM and span.text:
            return None
    return None if marked else _last(tail(text))


def canonical(answer: str, question: Question) -> str | None:
    """The number that the whole string is, a unit behind it aside.

    >>> q = Question("q", "t", "How many?", "number")
    >>> [canonical(a, q) for a in ("57,500", "−5", "3.140", "1e3", "$18", "50%", "1/2", "3 apples", "3 or 4")]
    ['57500', '-5', '3.14', '1000', '18', '50', '0.5', '3', None]
    """
    value = _whole(_plain(answer))
    return None if value is None else written(value)


def _value_of(span: Span) -> Fraction | None:
    words = _plain(span.text)
    if span.form in _EXACT:
        return _whole(words)
    if words.startswith("not "):
        words = words.partition(" but ")[2]
    return _first(words)


def _plain(words: str) -> str:
    """LaTeX as plain text."""
    words = _THIN_SPACE.sub(",", words)
    if "\\" in words or "{,}" in words:
        for pattern, replacement in _LATEX:
            words = pattern.sub(replacement, words)
    return words.strip(_DRESS)


def _whole(words: str) -> Fraction | None:
    words = words.strip(_DRESS)
    label = _LABEL.match(words)
    number = _NUMBER.match(words, label.end() if label else 0)
    if number is None or _PART.match(words, number.end()) or not _UNIT.fullmatch(words, number.end()):
        return None
    return _value(number)


def _first(words: str) -> Fraction | None:
    """The first number of the words, or what it is worked out to: `9 * 2 = 18` is 18."""
    found = _NUMBER.search(words)
    if found is None:
        return None
    rest = sentence(words[found.end() :])
    working, equals, result = rest.rpartition("=")
    if equals and not _ASIDE.search(working) and (after := _NUMBER.search(result)):
        return _value(after)
    if _PART.match(words, found.end()) or _TERM.search(words[: found.start()]):
        return None
    return _value(found)


def _last(text: str) -> str | None:
    for found in reversed(list(_NUMBER.finditer(text))):
        if not _PART.match(text, found.end()) and (value := _value(found)) is not None:
            return written(value)
    return None


def _value(number: re.Match[str]) -> Fraction | None:
    """The exact value; None for a division by zero and for sizes no answer has."""
    below, base = number["below"], number["base"]
    exponent = int((number["exponent"] or number["power"] or "0").replace("−", "-")[:6])
    if len(number[0]) > _MOST_DIGITS or abs(exponent) > _MOST_EXPONENT or (below and not float(below)):
        return None
    value = _in_base(number["first"], int(base)) if base else Fraction(number["first"].replace(",", ""))
    if value is None:
        return None
    value *= Fraction(10) ** exponent
    if below:
        above = number["above"]
        value = value + Fraction(above) / Fraction(below) if above else value / Fraction(below)
    return -value if (number["sign"] or number["minus"]) else value


def _in_base(digits: str, base: int) -> Fraction | None:
    """The value of `221_3`."""
    try:
        return Fraction(int(digits, base))
    except ValueError:
        return None
