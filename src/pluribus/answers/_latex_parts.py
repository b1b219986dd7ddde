"""The parts of a mathematical answer: lists, tuples, intervals, unions, matrices, names, relations, plain numbers.

All of them take words in one spelling (`_latex_spelling`). What is no such whole is a formula and is given to `read`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from pluribus.answers._exact import written
from pluribus.answers._latex_spelling import pauses, plain, unitless

_TOKEN = re.compile(r"\\(?:begin|end)\{matrix\}|\\[a-zA-Z]+|\\.|.", re.DOTALL)
_OPEN = frozenset({"{", "(", "[", r"\{", r"\langle", r"\begin{matrix}"})
_CLOSE = frozenset({"}", ")", "]", r"\}", r"\rangle", r"\end{matrix}"})
_RELATIONS = (r"\le", r"\ge", "<", ">")
_TURNED = {">": "<", r"\ge": r"\le"}

_INNER = r"(?:\\(?:angle|triangle|overline|overrightarrow|vec|widehat|hat|bar|mathbb)\s*)"
_NAME = re.compile(
    rf"""(?:m\s*)?{_INNER}*(?:\{{?[A-Z]{{1,4}}\}}?|\{{?[a-z]\}}?|\\[a-z]+)(?:_(?:\{{[^{{}}]*\}}|\w))?'*(?:\^\{{-1\}})?
        (?:\s*\(\s*[^()=]{{1,12}}\s*\))?
      | \(\s*[a-z](?:_\w)?(?:\s*,\s*[a-z](?:_\w)?)+\s*\)
      | \\text\{{[^{{}}]*\}} | [A-Za-z][A-Za-z ]{{3,40}}""",
    re.VERBOSE,
)
_LETTER = re.compile(r"[a-z](?:_\w)?|\\theta")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_BASE = re.compile(r"(-?[0-9A-F]+(?:\.[0-9A-F]+)?)\s*_\s*\{?\s*(\d+|\\text\{[a-z]+\})\s*\}?")
_WORDS = re.compile(
    r"(?<![\\a-zA-Z])(?:[a-zA-Z]{4,}|[A-Z]{2,3})(?![a-zA-Z(])|\\text\b|(?<!\d)\d+:\d|(?<![\\a-z])[a-z]{2,} [a-z]{2,}"
)
_SHORT_WORD = re.compile(r"[A-Za-z]{3}|no|No|NO")
_EMPTY = re.compile(r"\\emptyset|\\varnothing|\\\{\s*\\\}|\\text\{no solutions?\}|no solutions?", re.IGNORECASE)
_EVERY = re.compile(r"\\mathbb\s*\{?R\}?|\\R|\\Reals|all real numbers", re.IGNORECASE)

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)"
_PLAIN = re.compile(rf"({_DIGITS})(?:[eE]([+-]?\d+))?")
_RATIO = re.compile(rf"(?:\\frac\{{(-?{_DIGITS})\}}\{{(-?{_DIGITS})\}}|({_DIGITS})/({_DIGITS}))")
_MIXED = re.compile(r"(\d+)\s?(?:\\frac\{(\d+)\}\{(\d+)\}|(?<=\s)(\d+)/(\d+))")
_POWER = re.compile(rf"({_DIGITS})\s*\\cdot\s*10\s*\^\s*(?:\{{\s*(-?\d+)\s*\}}|(\d))")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\overline\{(\d+)\}")
_MOST_DIGITS = 300


@dataclass(frozen=True, slots=True)
class Reader:
    """How the parts that are formulas are read; both give None for what can not be read."""

    formula: Callable[[str], str | None]
    equation: Callable[[str, str], str | None]
    percent_is_unit: bool


def form(words: str, reader: Reader) -> str:
    """The canonical form of an answer in one spelling."""
    words = _unwrapped(words)
    if _EMPTY.fullmatch(words):
        return r"\emptyset"
    if _EVERY.fullmatch(words):
        return r"(-\infty, \infty)"
    items = [] if _is_words(words) else _items(pauses(words))
    return _list(items, reader) if len(items) > 1 else _single(words, reader)


def number(words: str) -> Fraction | None:
    r"""The value of a plain number, fraction, mixed number or power of ten.

    >>> [str(number(w)) for w in ("57,500", r"-\frac{6}{4}", r"3\frac{1}{2}", r"1.5 \cdot 10^{3}", r"0.\overline{3}")]
    ['57500', '-3/2', '7/2', '1500', '1/3']
    """
    words = words.strip().removeprefix("+").strip()
    sign = -1 if words.startswith("-") else 1
    bare = words.removeprefix("-").strip()
    if len(bare) > _MOST_DIGITS:
        return None
    value = _unsigned(bare)
    return None if value is None else sign * value


def _unsigned(bare: str) -> Fraction | None:
    if found := _PLAIN.fullmatch(bare):
        return _scaled(found[1], found[2])
    if found := _POWER.fullmatch(bare):
        return _scaled(found[1], found[2] or found[3])
    if found := _RATIO.fullmatch(bare):
        above, below = (_decimal(part) for part in (found[1] or found[3], found[2] or found[4]))
        return above / below if below else None
    if found := _MIXED.fullmatch(bare):
        above, below = Fraction(found[2] or found[4]), Fraction(found[3] or found[5])
        return int(found[1]) + above / below if below else None
    found = _REPEATING.fullmatch(bare)
    return _repeated(found[1] + found[2], len(found[2]), found[3]) if found else None


def _repeated(digits: str, places: int, period: str) -> Fraction:
    """`0.1666…` from its digits before the period, how many of them are decimals, and the period."""
    repeated = Fraction(int(period), int("9" * len(period)))
    return (int(digits or "0") + repeated) * Fraction(f"1e-{places}")


def _scaled(digits: str, exponent: str | None) -> Fraction | None:
    power = int((exponent or "0")[:6])
    return _decimal(digits) * Fraction(f"1e{power}") if abs(power) <= _MOST_DIGITS else None


def _decimal(digits: str) -> Fraction:
    return Fraction(digits.replace(",", ""))


def _unwrapped(words: str) -> str:
    """Without the braces or the `\\text` around all of it."""
    while (found := re.fullmatch(r"(?:\\text\s*)?\{([^{}]*)\}", words)) and found[1].strip():
        words = found[1].strip()
    return words


def _is_words(words: str) -> bool:
    if "=" in words:
        return False
    return _SHORT_WORD.fullmatch(words) is not None or _WORDS.search(unitless(words)) is not None


def _items(words: str) -> list[str]:
    """What stands between the top commas and semicolons; thousands separators are none."""
    if number(unitless(words)) is not None or re.match(r"\\?\$?-?\d{1,3}(?:,\d{3})+(?![\d,])", words):
        return [words]
    return [item for part in _split(words, (";",)) for item in _split(part, (",",)) if item]


def _list(items: list[str], reader: Reader) -> str:
    """A bare list is a set; a list of values of different names is a tuple."""
    names = [_named(item)[0] for item in items]
    if all(names) and len(set(names)) == len(names):
        return f"({', '.join(_single(item, reader) for item in items)})"
    if all(_interval(item, reader) for item in items):
        return _union([_single(item, reader) for item in items])
    return _set([_single(item, reader) for item in items])


def _set(forms: list[str]) -> str:
    parts = {part for whole in forms for part in (_items(whole) if not whole.startswith("(") else [whole])}
    return ", ".join(sorted(parts, key=_order))


def _order(part: str) -> tuple[bool, Fraction, str]:
    value = number(part)
    return value is None, value or Fraction(0), part


def _single(words: str, reader: Reader) -> str:
    words = unitless(_unwrapped(words)).removeprefix("+").strip()
    for read in (_number, _names, _member, _matrix, _pieces, _interval, _bracketed, _based, _two_signs):
        if (found := read(words, reader)) is not None:
            return found
    if _is_words(words) or re.fullmatch(r"[A-Za-z]", words):
        return plain(words)
    found = None if len(words) > _MOST_DIGITS else reader.formula(_multiplied(_in_radians(words)))
    return words.replace(" ", "") if found is None else found


def _number(words: str, reader: Reader) -> str | None:
    """A plain number; degrees are a unit, per cent may be one."""
    bare = re.sub(r"\s*\^\s*\\circ\s*(?:[CF]|\\text\{\s*[CF]?\s*\})?\Z", "", words)
    share = re.sub(r"\s*(?:\\?%|\bper\s?cent)\Z", "", bare)
    value = number(share)
    if value is None:
        return None
    return written(value if share == bare or reader.percent_is_unit else value / 100)


def _names(words: str, reader: Reader) -> str | None:
    """`x = 5` is 5; an equation between formulas stays one."""
    sides = _split(words, ("=",))
    if len(sides) < 2 or not all(sides):
        return None
    name, value = _named(words)
    if name is not None or not re.search("[a-zA-Z]", _COMMAND.sub("", words)):  # x = 5, 2 + 2 = 4
        return form(value if name is not None else sides[-1], reader)
    found = reader.equation(sides[0], sides[1]) if len(sides) == 2 else None
    return words.replace(" ", "") if found is None else found


def _named(words: str) -> tuple[str | None, str]:
    """The name and the value in `name = value`, `value = name` or `name = … = value`."""
    sides = _split(words, ("=", r"\approx"))
    if len(sides) < 2 or not all(sides):
        return None, words
    if _NAME.fullmatch(sides[0]):
        return sides[0], sides[1] if r"\approx" in words else sides[-1]
    if len(sides) == 2 and "=" in words and _NAME.fullmatch(sides[1]):
        return sides[1], sides[0]
    if "=" not in words or (len(sides) > 2 and number(sides[-1]) is not None):
        return "", sides[0] if "=" not in words else sides[-1]
    return None, words


def _member(words: str, reader: Reader) -> str | None:
    """`x \\in [0, 1]` is the interval; `2\\pi \\approx 6.28` is the exact value."""
    sides = _split(words, (r"\in",))
    if len(sides) == 2 and _LETTER.fullmatch(sides[0]):
        return form(sides[1], reader)
    exact = _split(words, (r"\approx",))
    return form(exact[0] or exact[1], reader) if len(exact) == 2 else None


def _matrix(words: str, reader: Reader) -> str | None:
    found = re.fullmatch(r"\\begin\{p?matrix\}(.*)\\end\{p?matrix\}", words, re.DOTALL)
    if found is None or "matrix}" in found[1]:
        return None
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?|\\cr\b", found[1]) if row.strip()]
    cells = [" & ".join(_single(cell.strip(), reader) for cell in row.split("&")) for row in rows]
    return r"\begin{pmatrix} " + r" \\ ".join(cells) + r" \end{pmatrix}"


def _pieces(words: str, reader: Reader) -> str | None:
    parts = _split(words, (r"\cup",))
    return _union([_single(part, reader) for part in parts]) if len(parts) > 1 and all(parts) else None


def _union(parts: list[str]) -> str:
    closed = {part if part[:1] in ("(", "[", "\\") else rf"\{{{part}\}}" for part in parts}
    return r" \cup ".join(sorted(closed))


def _interval(words: str, reader: Reader) -> str | None:
    """`x > 3`, `2 \\le x < 5` as intervals."""
    marks, sides = list(_relations(words)), _split(words, _RELATIONS)
    if not marks or len(sides) != len(marks) + 1 or not all(sides):
        return None
    if marks[0] in _TURNED:
        marks, sides = [_TURNED.get(mark, mark) for mark in marks[::-1]], sides[::-1]
    variable = [_LETTER.fullmatch(side) is not None for side in sides]
    if not set(marks) <= set(_TURNED.values()) or variable not in ([True, False], [False, True], [False, True, False]):
        return None
    ends = [_single(side, reader) for side, name in zip(sides, variable, strict=True) if not name]
    left, right = "(" if marks[0] == "<" else "[", ")" if marks[-1] == "<" else "]"
    if variable == [True, False]:
        return f"(-\\infty, {ends[0]}{right}"
    return f"{left}{ends[0]}, {ends[1]}{right}" if len(ends) == 2 else f"{left}{ends[0]}, \\infty)"


def _relations(words: str) -> Iterator[str]:
    return (token for token in _TOKEN.findall(words) if token in _RELATIONS)


def _bracketed(words: str, reader: Reader) -> str | None:
    """A tuple or an interval in its brackets, in order; a set as a list; one thing in round brackets as that thing."""
    found = re.fullmatch(r"(\(|\[|\\\{|\\langle)(.*)(\)|\]|\\\}|\\rangle)", words, re.DOTALL)
    if found is None or not _is_whole(words):
        return None
    items = [item for part in _split(found[2], (";",)) for item in _split(part, (",",))]
    if not all(items):
        return None
    if found[1] == r"\{":
        return _set([_single(item, reader) for item in items])
    if len(items) == 1:
        return _single(items[0], reader) if found[1] == "(" else None
    left, right = (bracket.replace(r"\langle", "(").replace(r"\rangle", ")") for bracket in (found[1], found[3]))
    return f"{left}{', '.join(_single(item, reader) for item in items)}{right}"


def _is_whole(words: str) -> bool:
    """Whether the first bracket closes at the very end."""
    depth, tokens = 0, _TOKEN.findall(words)
    for place, token in enumerate(tokens):
        depth += (token in _OPEN) - (token in _CLOSE)
        if depth == 0:
            return place == len(tokens) - 1
    return False


def _based(words: str, reader: Reader) -> str | None:
    """`221_3`: the numeral is the answer, not its value."""
    found = _BASE.fullmatch(words)
    return f"{found[1]}_{{{plain(found[2])}}}" if found else None


def _two_signs(words: str, reader: Reader) -> str | None:
    r"""`1 \pm \sqrt{2}` is both values."""
    if words.count(r"\pm") != 1 or r"\mp" in words:
        return None
    plus = words.replace(r"\pm", "+").strip().removeprefix("+").strip()
    return _set([_single(plus, reader), _single(words.replace(r"\pm", "-"), reader)])


def _in_radians(words: str) -> str:
    """Degrees are a unit, but behind a trigonometric function they are an angle."""
    if r"^\circ" not in words:
        return words
    if not re.search(r"\\(?:sin|cos|tan|cot|sec|csc)\b", words):
        return re.sub(r"\s*\^\\circ", "", words)
    return re.sub(r"\{?(\d+(?:\.\d+)?)\}?\s*\^\\circ", r"{(\\frac{\1 \\pi}{180})}", words)


def _multiplied(words: str) -> str:
    """`4(5)` with the sign that is left out: a number before a bracket would be read as a mixed number, 4 + 5."""
    words = re.sub(r"\)\s*(?=\(|\\frac|\d)", r") \\cdot ", words)
    return re.sub(r"(?<![_\w.])(\d+(?:\.\d+)?|\.\d+)\s*(?=\()", r"\1 \\cdot ", words)


def _split(words: str, at: tuple[str, ...]) -> list[str]:
    """The parts between the signs that stand outside all brackets, trimmed."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(words):
        depth += (token in _OPEN) - (token in _CLOSE)
        if depth <= 0 and token in at:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts]
