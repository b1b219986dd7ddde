"""One spelling for the many ways the same LaTeX, or plain text that stands for it, is written."""

from __future__ import annotations

import re

from pluribus.answers._committed import braced

_SIGNS = str.maketrans(
    {
        "−": "-", "–": "-", "﹣": "-", "×": r"\cdot ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "⁄": "/",
        "π": r"\pi ", "θ": r"\theta ", "∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ",
        "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "±": r"\pm ", "°": r"^\circ ", "≈": r"\approx ",
        "²": "^{2}", "³": "^{3}", "½": r"\frac{1}{2}", "⟨": r"\langle ", "⟩": r"\rangle ",
        "\u00a0": " ", "\u2009": " ", "\u202f": " ", "“": '"', "”": '"', "’": "'",
    }
)  # fmt: skip
_TEXT = (
    r"\\(?:text|mathrm|mathbf|textbf|textit|textrm|textnormal|textsf|mbox|operatorname|mathit|bf|rm|it|boldsymbol)\b"
)

_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rf"{_TEXT}\s*(?=\{{)", r"\\text"),
        (r"\\(?:left|right|[bB]ig{1,2}[lr]?)(?![a-z])\.?\s*", ""),
        (r"\\(?:displaystyle|textstyle|limits|nolimits|mathstrut|phantom\{[^{}]*\})(?![a-z])", ""),
        (r",?\\!|\{,\}", ""),
        (r"(?<=\d)\\[,;:]\s?(?=\d{3}(?!\d))", ""),
        (r"(?<!\\)\\(?:[,;: >]|quad\b|qquad\b|thinspace\b)|~|&nbsp;", " "),
        (r"(?<!\\)\\[()\[\]]|\\?\$", ""),
        (r"\\[dtc]frac(?![a-z])", r"\\frac"),
        (r"\\leq?slant\b|\\leq\b|<=|≦", r"\\le "),
        (r"\\geq?slant\b|\\geq\b|>=|≧", r"\\ge "),
        (r"\\lt\b", "<"),
        (r"\\gt\b", ">"),
        (r"\\neq\b|!=", r"\\ne "),
        (r"\\(?:times|ast)\b|(?<!\*)\*(?!\*)", r"\\cdot "),
        (r"\*\*", "^"),
        (r"\\(?:lvert|rvert|vert)\b", "|"),
        (r"\\(?:lbrace)\b", r"\\{"),
        (r"\\(?:rbrace)\b", r"\\}"),
        (r"\^\s*(?:\{\s*\\circ\s*\}|\\circ\b)|\\degrees?\b|(?<=\d)\s+degrees?\b", r"^\\circ "),
        (r"\\text\{\s*degrees?\s*\}", r"^\\circ "),
        (r"\\(?:begin|end)\{[bpvB]?(?:small)?matrix\}", lambda m: m[0][:-1].split("{")[0] + "{matrix}"),
        (r"\\(begin|end)\{array\}(?:\{[lcr|]*\})?", r"\\\1{matrix}"),
        (r"(?<![\\a-zA-Z])(sqrt|pi|sin|cos|tan|log|ln|infty|theta|cup|frac)(?![a-zA-Z])", r"\\\1"),
        (r"(?<![\\a-zA-Z])(?:infinity|inf|oo)(?![a-zA-Z])", r"\\infty "),
        (r"\\sqrt\s*(\d|[a-z])", r"\\sqrt{\1}"),
        (r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
        (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
        (r"\\frac\s*([^\s{\\])\s*(?=\{)", r"\\frac{\1}"),
        (r"\\frac\s*(?=\{)", r"\\frac"),
    )
)
_SECOND = re.compile(r"\\frac\{")
_DRESS = " \t\n\"'`*_"
_END = re.compile(r"(?<!\\)[.;:,\s]+\Z")
_ROWS = re.compile(r"matrix|array|cases|align")
_ESCAPED_TWICE = re.compile(r"\\\\(?=[a-zA-Z(\[$%{}])")


def spelled(words: str) -> str:
    r"""The same answer in one spelling; its meaning is not looked at.

    >>> spelled(r"$\left( \tfrac12, \dfrac{\sqrt3}{2} \right)$."), spelled("−5 × sqrt(2)")
    ('( \\frac{1}{2}, \\frac{\\sqrt{3}}{2} )', '-5 \\cdot \\sqrt{2}')
    """
    words = _unboxed(words.translate(_SIGNS).strip(_DRESS))
    if not _ROWS.search(words):  # as in JSON; in a matrix it ends a row
        words = _ESCAPED_TWICE.sub(r"\\", words)
    for pattern, replacement in _RULES:
        words = pattern.sub(replacement, words)
    words = _braced_fractions(words)
    return " ".join(_END.sub("", words.strip(_DRESS)).split()).strip(_DRESS)


def _unboxed(words: str) -> str:
    found = re.search(r"\\(?:boxed|fbox)\s*(?=\{)", words)
    inside = braced(words, found.end()) if found else None
    return words if inside is None else inside


def _braced_fractions(words: str) -> str:
    r"""`\frac{3}4` with braces around the 4."""
    if "\\frac" not in words:
        return words
    for found in reversed(list(_SECOND.finditer(words))):
        inside = braced(words, found.end() - 1)
        if inside is None:
            continue
        after = found.end() + len(inside) + 1
        if bare := re.match(r"\s*([^\s{\\])", words[after:]):
            words = f"{words[:after]}{{{bare[1]}}}{words[after + bare.end() :]}"
    return words


_PAUSE = re.compile(r"\\text\{\s*,?\s*(?:and|or)\s*\}|,?\s(?:and|or)\s(?=[^a-z]|[a-z]\b)")
_FEW_LETTERS = r"(?:cm|mm|km|in|ft|yd|mi|kg|mg|lb|oz|ml|mL|hr|pm|am)"
_UNIT = re.compile(
    rf"""(?<=[\d)}}.\s])\s*
    (?: (?:\\text\{{[^{{}}]*\}}(?:\s*\^\s*(?:\{{\d\}}|\d))?\s*[/.]?\s*)+
      | (?<![\\a-zA-Z])(?:(?!(?:sin|cos|tan|log|exp|max|min|mod|and|or)\b)(?:[a-zA-Z]{{3,}}|{_FEW_LETTERS}))
        (?:[\s/.-]+[a-zA-Z]+\.?)*(?:\s*\^\s*(?:\{{\d\}}|\d))? )\Z""",
    re.VERBOSE,
)
_WORDS = re.compile(r"\\text\{([^{}]*)\}")

_INITIALS = re.compile(r"[A-Z]{2,3}")


def pauses(words: str) -> str:
    """`1 and 2`, `1 \\text{ or } 2` with commas.

    >>> pauses("x = 1 and y"), pauses("-1 \\\\text{ or } 2")
    ('x = 1, y', '-1 , 2')
    """
    return _PAUSE.sub(", ", words).replace("  ", " ")


def unitless(words: str) -> str:
    r"""Without the unit behind a quantity.

    >>> [unitless(w) for w in (r"25 \text{ ft}", r"8\sqrt{3} \text{ square inches}^2", "3.5 km/h", "2x", r"\text{ft}")]
    ['25', '8\\sqrt{3}', '3.5', '2x', '\\text{ft}']
    """
    found = _UNIT.search(words) if ":" not in words else None
    bare = words[: found.start()].strip(" .,") if found else words
    return bare if re.search(r"[\d}]", bare) else words


def plain(words: str) -> str:
    r"""Words of an answer that is no formula: lower case, without dress.

    >>> plain(r"\text{Evelyn}."), plain(r"\text{4:30 p.m.}"), plain(r"\text{(C)}")
    ('evelyn', '4:30 p.m', 'C')
    """
    once = _once(words)
    while (again := _once(once)) != once:
        once = again
    return once


def _once(words: str) -> str:
    bare = " ".join(_WORDS.sub(r" \1 ", words).split()).strip(" \t\n\"'`*_.,;:!?$")
    if letter := re.fullmatch(r"[(\[{]*\s*([A-Za-z])\s*[)\]}]*", bare):
        return letter[1]
    return bare if _INITIALS.fullmatch(bare) else bare.casefold()
