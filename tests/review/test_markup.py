"""A model's text on a page: formulas are set, everything else stays text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("latex2mathml")
pytest.importorskip("markupsafe")

from pluribus.review.markup import _ATTRIBUTES, _ELEMENTS, markup

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</textarea><b>out</b>",
    "</div></section>",
    "&lt;b&gt; &amp; &#60;i&#62;",
    r"$\text{<script>alert(1)</script>}$",
    r"$\text{</math><img src=x onerror=alert(1)>}$",
    r"$$\text{&lt;script&gt;alert(1)&lt;/script&gt;}$$",
    r"\(\href{javascript:alert(1)}{x}\)",
    r'\[\class{" onmouseover="alert(1)}{x}\]',
    r"$\style{position:fixed;inset:0}{x}$",
    r'$\color{"><script>alert(1)</script>}x$',
    r"$<b>x</b>$",
    '"><svg onload=alert(1)>',
]
_TAG = re.compile(r"<(/?)([a-zA-Z0-9]+)((?: [a-z]+=\"[^\"<>]*\")*)>")


def tags(html: str) -> list[tuple[str, str]]:
    """Every tag with its attributes; whatever else has the sign of one is an error."""
    left = _TAG.sub("", html)
    assert "<" not in left and ">" not in left, html
    assert not re.search(r"&(?!amp;|lt;|gt;|#34;|#39;)", left), html
    return [(name, marks) for _, name, marks in _TAG.findall(html)]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_a_text_becomes_an_element_but_formulas(text: str) -> None:
    for name, marks in tags(str(markup(text))):
        assert name in _ELEMENTS
        assert {mark.split("=")[0] for mark in marks.split()} <= _ATTRIBUTES


@given(st.text(alphabet=st.sampled_from("$\\()[]{}<>&\"'abtex^_ \n=1script"), max_size=80))
def test_no_text_at_all_gets_out(text: str) -> None:
    for name, marks in tags(str(markup(text))):
        assert name in _ELEMENTS
        assert all(mark.split("=")[0] in _ATTRIBUTES for mark in re.findall(r'[a-z]+="', marks))


@pytest.mark.parametrize("text", ["Plain words,\n  kept as they are.", "a < b && c > d", "tab\tand\n\nlines", ""])
def test_text_without_formulas_is_just_escaped(text: str) -> None:
    expected = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert str(markup(text)) == expected


@pytest.mark.parametrize("text", [r"$x$", r"\(x\)", r"so $x$, then", r"$x_1$."])
def test_formulas_in_a_line(text: str) -> None:
    assert '<math display="inline">' in markup(text) and "$" not in markup(text)


@pytest.mark.parametrize("text", [r"$$x$$", r"\[x\]", "$$\nx\n+ y\n$$", r"$$\begin{pmatrix}1&2\\3&4\end{pmatrix}$$"])
def test_formulas_of_their_own_line(text: str) -> None:
    assert '<math display="block">' in markup(text)


def test_the_lines_around_a_formula_of_its_own_are_not_doubled() -> None:
    assert str(markup("a\n\n$$x$$\n\nb")) == 'a<math display="block"><mrow><mi>x</mi></mrow></math>b'


def test_fractions_roots_and_powers_are_set() -> None:
    found = markup(r"$\frac{1}{2} + \sqrt{x^2}$")
    assert all(f"<{name}>" in found for name in ("mfrac", "msqrt", "msup"))


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5, or $6 with cream.",
        "from $5 to $10",
        r"\$3 and \$4",
        "$ x $",
        "only $one sign",
        r"$\frac{1",
        r"\(never closed",
        r"$x_1_2$",
        "$" + "{" * 60 + "x" + "}" * 60 + "$",
        "$$" + "x+" * 2000 + "x$$",
    ],
)
def test_prices_and_what_can_not_be_set_stay_their_source(text: str) -> None:
    assert str(markup(text)) == text


def test_what_a_page_can_not_hold_is_a_sign_one_can_see() -> None:
    found = str(markup("a\x00b\x1b[2Jc\ud800d"))
    assert found == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}[2Jc\N{REPLACEMENT CHARACTER}d"
    found.encode("utf-8")


@pytest.mark.parametrize("text", ["\\(" * 25_000, "\\[" * 100 + "x" * 50_000, "{" * 50_000, "$_ " * 20_000])
def test_a_long_text_of_opening_signs_is_shown_as_it_is(text: str) -> None:
    assert str(markup(text)) == text


def test_only_so_many_formulas_are_set_in_one_text() -> None:
    found = str(markup("$x^2 + y^2$ " * 4000))
    assert found.count("<math") == 20_000 // len("x^2 + y^2")
    assert found.endswith("$x^2 + y^2$ ")
