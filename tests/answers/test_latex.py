from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.answers import canonical, latex, prefetch, read, same
from pluribus.types import Question

ASK = Question("q", "t", "Solve.", "latex")
SHARE = Question("q", "t", "What percent of them?", "latex")

CLASSES = (
    ("0.5", r"\frac12", r"\frac 12", r"\dfrac{1}{2}", r"\tfrac12", "1/2", "0.50", ".5", r"$\frac{1}{2}$",
     r"\frac{2}{4}", r"\frac{-1}{-2}", r"2^{-1}", r"50\%", "50%", r"\boxed{\frac{1}{2}}", r"\(\frac{1}{2}\)", "½"),
    ("-5", "−5", "- 5", r"\text{-5}", "-5.0", "x = -5", "-5 = x"),
    ("1000", "1e3", r"10^3", r"1{,}000", r"1,\!000", "1,000", r"1\,000", r"1 \times 10^3", r"\$1000", r"\$1,000.00"),
    ("57500", "57,500", r"57{,}500", r"\$57,500", r"57500 \text{ dollars}"),
    ("1/3", r"\frac{1}{3}", r"0.\overline{3}", "3/9"),
    ("3.5", r"3\frac{1}{2}", r"3 \frac12", "3 1/2", r"\frac{7}{2}"),
    ("45", r"45^\circ", r"45^{\circ}", "45°", "45 degrees", r"45\text{ degrees}", r"\angle ABC = 45^\circ"),
    ("8 \\sqrt{3}", r"8\sqrt3", r"8\sqrt{3}\text{ square inches}", r"8 \sqrt{3}\text{ in}^2", "8sqrt(3)",
     r"\sqrt{192}"),
    ("25", r"25 \, \text{km}", "25 km", "25 square feet", r"25 \mbox{ m}^3", r"25\ \mathrm{cm}^{2}", "25 apples."),
    (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}", r"\sqrt{\frac{1}{2}}", r"\sqrt{2}/2", r"\frac{\sqrt2}2"),
    (r"-1 + \sqrt{2}", r"\sqrt2-1", r"\frac{1}{1+\sqrt{2}}", r"\sqrt{3-2\sqrt{2}}"),
    (r"\frac{\pi}{6}", r"\pi/6", r"\frac{1}{6}\pi", "pi/6", "π/6", r"\frac{\pi}{6} \text{ radians}"),
    (r"6 - 5 i", "6-5i", "-5i + 6"),
    (r"x^{2} + 2 x + 1", "(x+1)^2", "x^2+2x+1", "1 + 2x + x**2", "y = (x+1)^2", "f(x) = x^2 + 2x + 1"),
    (r"\frac{x}{x + 1}", r"1 - \frac{1}{x+1}", "x/(x+1)", r"\frac{2x}{2x+2}"),
    ("3 - x", "-(x-3)", "3-x", r"\frac{6 - 2x}{2}"),
    ("4 x - 5 y + 50 = 0", "4x-5y=-50", "5y - 4x = 50", "8x - 10y + 100 = 0"),
    ("(1, 2)", "(1,2)", r"\left( 1, 2 \right)", "(1, 4/2)", r"\langle 1, 2 \rangle", "x=1, y=2", "(x,y) = (1,2)"),
    ("[2, 5)", "[2,5)", r"2 \le x < 5", r"x \in [2, 5)", "5 > x >= 2", r"\left[2, 5\right)"),
    (r"(3, \infty)", "x > 3", "3 < x", r"(3,\infty)"),
    (r"[3, \infty)", r"x \ge 3", r"3 \leq x"),
    (r"f(2)<f(1)<f(4)", "f(2) < f(1) < f(4)"),
    (r"(-\infty, 3)", "x < 3", "3 > x", r"(-\infty,3)", r"x \in (-\infty, 3)"),
    (r"(-\infty, -2] \cup [-1, \infty)", r"[-1,\infty) \cup (-\infty,-2]", r"x \le -2 \text{ or } x \geq -1"),
    (r"[0, 7) \cup \{-1\}", r"\{-1\} \cup [0,7)"),
    ("-2, 1, 3", "1, -2, 3", r"\{3, 1, -2\}", r"x = 1, x = -2, x = 3", r"1, 3, \text{ and } -2", "1, 3 and -2"),
    ("-2, 2", r"\pm 2", "2, -2", r"x = \pm 2", r"-2 \text{ or } 2"),
    (r"1 + \sqrt{19}, 1 - \sqrt{19}", r"1 \pm \sqrt{19}"),
    (r"\begin{pmatrix} 0.5 \\ -3 \end{pmatrix}", r"\begin{pmatrix} 1/2 \\ -3 \end{pmatrix}",
     r"\begin{bmatrix}\frac12\\-3\end{bmatrix}", r"\left(\begin{array}{c} 0.5 \\ -3 \end{array}\right)",
     r"\mathbf{v} = \begin{pmatrix} 1/2 \\ -3 \end{pmatrix}"),
    ("C", r"\text{(C)}", "(C)", "C.", r"\textbf{C}", r"\boxed{\text{(C)}}"),
    ("A, C", r"\text{A, C}", "C, A", r"\text{A and C}"),
    ("even", r"\text{even}", "Even", r"\text{ Even }"),
    ("odd", r"\text{odd}", "odd"),
    ("VW", r"\text{VW}", "VW"),
    (r"\emptyset", r"\varnothing", "no solution", r"\{\}"),
    (r"(-\infty, \infty)", r"\mathbb{R}", r"(-\infty,\infty)"),
    ("4343_{6}", "4343_6", r"4343_{6}"),
    ("120", "5!", r"\binom{10}{3}", "24(5)", "(24)(5)", r"\frac{1}{2}(240)", r"(240)\frac{1}{2}"),
    ("0.125", r"\cos 20^\circ \cos 40^\circ \cos 80^\circ", "1/8"),
    (r"\emptyset",),
)  # fmt: skip

DIFFERENT = (
    ("57,500", "57, 500"), ("0.333", "1/3"), ("(1,2)", "(2,1)"), ("(1,2)", "[1,2]"), ("[1,2]", "1, 2"), ("3s^2", "3"),
    ("221_3", "25"), ("2x+3", "3x+2"), (r"\sqrt{2}", "1.414"), ("x^2+y^2=4", "x^2+y^2=5"), ("5", "-5"), ("e", "x"),
    ("4:30 p.m.", "4:30 a.m."), ("1000!", "1000"), (r"\overline{CD}", r"\overline{AB}"), ("A", "B"), ("3:1", "3"),
    (r"2^{2^{100}}", "2"), ("50", "0.5"), (r"\cos 13^\circ", r"\cos 13"), ("57.5", "575"), (r"\frac{1}{0}", "0"),
)  # fmt: skip


@pytest.mark.parametrize("spellings", CLASSES, ids=lambda c: str(c[0]))
def test_equal_answers_are_one_class(spellings: tuple[str, ...]) -> None:
    assert {spelling: canonical(ASK, spelling) for spelling in spellings} == dict.fromkeys(spellings, spellings[0])


@pytest.mark.parametrize("pair", DIFFERENT)
def test_different_answers_are_different_classes(pair: tuple[str, str]) -> None:
    assert not same(ASK, *pair)


def test_a_percent_sign_is_a_unit_where_the_question_speaks_of_per_cent_else_a_hundredth() -> None:
    assert canonical(SHARE, r"50\%") == canonical(SHARE, "50") == canonical(SHARE, "50 percent") == "50"
    assert canonical(ASK, r"50\%") == "0.5"


READ = {
    r"Thus $x = \boxed{\dfrac{\sqrt{3}}{2}}$. I checked it twice.": r"\frac{\sqrt{3}}{2}",
    r"\boxed{\left(\frac{1}{2}, \{3\}\right)}": "(0.5, 3)",
    r"First \boxed{1}. No: \boxed{2}": "2",
    "{final answer: $\\frac{1}{3}$}": "1/3",
    r"So the answer is $\frac{1}{2}$, not $\frac13$.": "0.5",
    r"The answer is $x=3$ and $y=4$.": "(3, 4)",
    "**Answer:** $2\\sqrt{3}$ units": r"2 \sqrt{3}",
    r"The answer is \[ \frac{a}{b} \]": r"\frac{a}{b}",
    "Final Answer: The final answer is $3$. I hope it is correct.": "3",
    "The answer is 12 square meters.": "12",
    "The final answer is 57,500.": "57500",
    "The answer is 4, which makes the series sum to 16, a square.": "4",
    "The final answer is 636 chimes in a 24-hour day.": "636",
    "The answer is 3 and 4": "3, 4",
    "The answer is 2 pi": r"2 \pi",
    "The answer is 2 + 2 = 4": "4",
    "the answer is (A).": "A",
    "Answer: −5": "-5",
    "A: 18": "18",
    "#### \\$18.00": "18",
    "So $x = 4$, hence\n\\[ y = \\frac{3}{4}. \\]": "0.75",
    "That makes 3 + 4 = 7": "7",
    "even": "even",
    "<think>it is $5$</think>The answer is $6$": "6",
    "<think>The answer is $5$": None,
    r"\boxed{}": None,
    "I am not sure about it.": None,
    "": None,
}


@pytest.mark.parametrize("text", READ)
def test_reads_the_last_committed_formula(text: str) -> None:
    assert read(ASK, text) == READ[text]


@pytest.mark.parametrize(
    "junk", ["{", "}{", r"\frac{1}{", r"\frac{}{}", "((((", "\\", "^_^", "x" * 5000, "$" * 50, r"\text{", "="]
)
def test_what_is_no_formula_is_itself(junk: str) -> None:
    once = canonical(ASK, junk)
    assert once is None or canonical(ASK, once) == once


def test_a_formula_that_would_never_end_is_noted_and_counts_as_written() -> None:
    endless = r"\sum_{k=1}^{10000000} \frac{1}{k^2+k+1}"
    found = canonical(ASK, endless)
    assert found == endless.replace(" ", "")
    assert latex.unread()[endless] == "timeout"
    assert same(ASK, endless, endless)


_ATOM = st.sampled_from(
    ["1", "2", "-3", "0.5", "x", "y", "n", "i", r"\pi", r"\sqrt{2}", r"\sqrt{3}", r"\frac{1}{3}", "e", "10", r"\theta"]
)
_FORMULA = st.recursive(
    _ATOM,
    lambda inner: st.one_of(
        st.builds(r"{}+{}".format, inner, inner),
        st.builds(r"{}-({})".format, inner, inner),
        st.builds(r"({})({})".format, inner, inner),
        st.builds(r"\frac{{{}}}{{{}}}".format, inner, inner),
        st.builds(r"\sqrt{{{}}}".format, inner),
        st.builds(r"({})^{{2}}".format, inner),
        st.builds(r"({}, {})".format, inner, inner),
        st.builds(r"{}, {}".format, inner, inner),
    ),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(_FORMULA)
def test_canonical_forms_are_their_own(formula: str) -> None:
    once = canonical(ASK, formula)
    assert once is not None
    assert canonical(ASK, once) == once


@settings(max_examples=40, deadline=None)
@given(_ATOM, _ATOM, _ATOM)
def test_the_order_of_terms_and_factors_makes_no_difference(a: str, b: str, c: str) -> None:
    assert same(ASK, f"({a})({b})+({c})", f"({c})+({b})({a})")


@pytest.mark.parametrize("spellings", [c for c in CLASSES if "sqrt" in c[0] or "x" in c[0]], ids=lambda c: str(c[0]))
def test_math_verify_agrees_that_formulas_of_a_class_are_equal(spellings: tuple[str, ...]) -> None:
    first, *others = spellings
    assert [other for other in others if "**" not in other and not latex._verified(first, other)] == []


def test_math_verify_rounds_where_classes_can_not() -> None:
    assert latex.verified("1/3", "0.3333333", ASK)
    assert not same(ASK, "1/3", "0.3333333")
    assert not latex.verified("1/3", "0.3", ASK)


def test_many_texts_are_read_ahead_from_any_thread() -> None:
    texts = [rf"The answer is $\sqrt{{{n}}} + {n}$." for n in range(2, 30)]
    prefetch([(ASK, text) for text in texts] + [(Question("q", "t", "?", "number"), "The answer is 5")])
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda text: read(ASK, text), texts))
    assert found[2] == "6"
    assert len(set(found)) == len(texts)


async def test_reads_inside_a_running_event_loop() -> None:
    async def one() -> str | None:
        await asyncio.sleep(0)
        return read(ASK, r"The answer is $\frac{2}{\sqrt{2}}$.")

    assert await asyncio.gather(one(), one()) == [r"\sqrt{2}"] * 2
