"""A model's text as HTML: the text as it stands, its formulas as MathML, and nothing in it a browser would obey.

Every character that comes from the text is escaped here, once. `latex2mathml` does not do that (`\\text{<script>}`
comes out of it as an element), so its tree is written out by this module: elements and attributes that are not in the
lists below make the formula its own source again.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from xml.etree.ElementTree import Element

from markupsafe import Markup, escape

_FORMULA = re.compile(
    r"\$\$(?P<dollars>(?:\\.|[^$\\]){1,2000})\$\$"
    # nothing opens within, so that a text of opening signs is not read again from each of them
    r"|\\\[(?P<square>(?:(?!\\\[).){1,2000}?)\\\]"
    r"|\\\((?P<round>(?:(?!\\\().){1,2000}?)\\\)"
    # as Pandoc reads it: no space inside the signs, no digit behind them, so that "$5 and $6" are prices
    r"|(?<![\\$])\$(?=[^\s$])(?P<dollar>(?:\\.|[^$\\\n]){0,2000}?(?:\\.|[^\s\\$]))\$(?![\d$])",
    re.DOTALL,
)
_LINES_BEFORE, _LINES_BEHIND = re.compile(r"\n?[ \t]*\n?[ \t]*\Z"), re.compile(r"[ \t]*\n?[ \t]*\n?")
_BLOCKS = ("dollars", "square")
_ALL = 20_000
"""Characters of formulas in one text that are set; the rest stays source, so that no text is slow to show."""
_DEEPEST = 40
"""Brackets within brackets."""
_ELEMENTS = frozenset({
    "math", "mrow", "mi", "mn", "mo", "mtext", "ms", "mspace", "mfrac", "msqrt", "mroot", "mstyle", "mpadded",
    "mphantom", "menclose", "mfenced", "msub", "msup", "msubsup", "munder", "mover", "munderover",
    "mmultiscripts", "mprescripts", "none", "mtable", "mtr", "mtd", "mlabeledtr", "semantics",
})  # fmt: skip
_ATTRIBUTES = frozenset({
    "accent", "accentunder", "align", "columnalign", "columnlines", "columnspacing", "depth", "display",
    "displaystyle", "fence", "form", "height", "linethickness", "lspace", "mathvariant", "maxsize", "minsize",
    "movablelimits", "notation", "rowlines", "rowspacing", "rspace", "scriptlevel", "separator", "stretchy",
    "symmetric", "voffset", "width",
})  # fmt: skip
_VALUE = re.compile(r"[\w .,%+#-]*")
_UNSEEN = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127, *range(0xD800, 0xE000)), 0xFFFD)
"""What HTML can not hold → a sign one can see."""


def markup(text: str) -> Markup:
    """The text as HTML.

    >>> markup("Is 1 < 2? <b>$x$</b>")
    Markup('Is 1 &lt; 2? &lt;b&gt;<math display="inline"><mrow><mi>x</mi></mrow></math>&lt;/b&gt;')
    >>> markup("It costs $5, not $6.")
    Markup('It costs $5, not $6.')
    """
    return Markup("").join(_parts(text.translate(_UNSEEN)))


def _parts(text: str) -> Iterator[Markup]:
    end = spent = 0
    for found in _FORMULA.finditer(text):
        kind = str(found.lastgroup)
        source, block = found[kind], kind in _BLOCKS
        spent += len(source)
        formula = mathml(source, block=block) if spent <= _ALL else None
        before, end = text[end : found.start()], found.end()
        if formula is not None and block:  # it stands on a line of its own as it is
            before, end = _LINES_BEFORE.sub("", before), _LINES_BEHIND.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing too
        yield escape(before)
        yield escape(found[0]) if formula is None else formula
    yield escape(text[end:])


@lru_cache(maxsize=4096)
def mathml(source: str, *, block: bool) -> Markup | None:
    """A formula in LaTeX as MathML; None: it can not be set, or not safely."""
    if _depth(source) > _DEEPEST or not source.strip():
        return None
    from latex2mathml.converter import convert_to_element

    try:
        tree = convert_to_element(source, display="block" if block else "inline")
        return Markup("").join(_written(tree))
    except Exception:  # a reader of hostile text: whatever it trips over, the source is shown instead
        return None


def _depth(source: str) -> int:
    deepest = depth = 0
    for found in re.finditer(r"\\begin|\\left|[{}]|\\end|\\right", source):
        depth += 1 if found[0] in ("{", "\\begin", "\\left") else -1
        deepest = max(deepest, depth)
    return deepest


def _written(element: Element) -> Iterator[Markup]:
    if element.tag not in _ELEMENTS:
        raise ValueError(f"an element {element.tag!r}")
    marks = [(name, value) for name, value in element.attrib.items() if name != "xmlns"]
    if any(name not in _ATTRIBUTES or not _VALUE.fullmatch(value) for name, value in marks):
        raise ValueError(f"attributes {marks!r}")
    yield Markup("<{}").format(element.tag)
    for name, value in marks:
        yield Markup(' {}="{}"').format(name, value)
    yield Markup(">")
    yield escape(html.unescape(element.text or ""))
    for child in element:
        yield from _written(child)
        yield escape(html.unescape(child.tail or ""))
    yield Markup("</{}>").format(element.tag)
