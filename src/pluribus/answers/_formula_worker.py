"""The program of a worker process that reads formulas: LaTeX to a normal form, by math-verify and SymPy.

It is run by its file and imports nothing of the package. Jobs: `{"expression": latex}`, `{"equation": [left, right]}`,
`{"verify": [key, answer]}`.
Replies: `{"number": "p/q"}`, `{"latex": text}`, `{"equal": bool}`, or `{}` when it can not
be read.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from typing import Any

import sympy as sp  # type: ignore[import-untyped]  # SymPy has no types
from latex2sympy2_extended import latex2sympy  # type: ignore[import-untyped]  # likewise
from math_verify import LatexExtractionConfig, parse, verify  # type: ignore[import-untyped]  # likewise

_MEMORY = 3 << 30
_MOST_DIGITS = 200
"""Digits of a number that is worked out; beyond them a formula stays as it is written."""
_SHOWN, _WORKED = 20, 50
"""Significant digits of a constant that has no normal form, as shown and as worked out."""


_NAME = re.compile(r"\\?[A-Za-z]+(?:_\{?[A-Za-z0-9]+\}?)?")


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no reply
    _limit_memory()
    limit_s = float(sys.argv[1])
    _say(replies, {"ready": True})
    for line in sys.stdin:
        _say(replies, _limited(json.loads(line), limit_s))


def _say(replies: Any, value: dict[str, Any]) -> None:
    replies.write(json.dumps(value) + "\n")
    replies.flush()


def _limit_memory() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _limited(job: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """The reply, or the end of this process: the kernel's timer stops also what Python code could not stop."""
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        return reply(job)
    except Exception:  # the parsers raise whatever comes: IndexError, AttributeError, antlr's own
        return {}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def reply(job: dict[str, Any]) -> dict[str, Any]:
    if "expression" in job:
        return _written(_parsed(job["expression"]))
    if "equation" in job:
        left, right = job["equation"]
        return _equation(left, right)
    key, answer = job["verify"]
    return {"equal": _verified(key, answer)}


def _parsed(latex: str) -> Any:
    """A SymPy expression, worked out; raises when it is none."""
    found = latex2sympy(latex, is_real=None, convert_degrees=False, normalization_config=None)
    if not isinstance(found, sp.Basic):
        raise TypeError("no formula")
    return _worked_out(found)


def _worked_out(expression: Any) -> Any:
    """What the parser left unevaluated, built anew from the leaves: floats exact, `i` the imaginary unit."""
    if isinstance(expression, sp.Float):
        return sp.Rational(str(expression))
    if isinstance(expression, sp.Symbol):
        return _symbol(expression.name)
    if not expression.args:
        return expression
    arguments = [_worked_out(argument) for argument in expression.args]
    _check_size(expression.func, arguments)
    built = expression.func(*arguments)
    return built.doit() if isinstance(built, sp.Sum | sp.Product | sp.Integral | sp.Limit) else built


def _symbol(name: str) -> Any:
    if not _NAME.fullmatch(name):
        raise ValueError("no variable")
    return sp.I if name == "i" else sp.Symbol(name)


def _check_size(function: Any, arguments: list[Any]) -> None:
    if function is sp.Pow and all(argument.is_number for argument in arguments):
        base, power = (abs(complex(argument)) for argument in arguments)
        if power > 1 and base > 1 and power * len(str(int(base) + 1)) > _MOST_DIGITS:
            raise ValueError("too large")
    if function in (sp.factorial, sp.binomial, sp.gamma) and any(abs(a) > 100 for a in arguments if a.is_number):
        raise ValueError("too large")


def _written(expression: Any) -> dict[str, Any]:
    if not isinstance(expression, sp.Expr):
        raise TypeError("no expression")
    if expression.is_Rational:
        return _number(expression)
    if expression in (sp.oo, -sp.oo):
        return {"latex": sp.latex(expression)}
    return _symbolic(expression) if expression.free_symbols else _constant(expression)


def _number(value: Any) -> dict[str, Any]:
    return {"number": f"{value.p}/{value.q}"} if len(str(value.p)) < 2 * _MOST_DIGITS else {}


def _constant(expression: Any) -> dict[str, Any]:
    """A rational number, or a sum of rational multiples of roots, π, e and i, whose form is unique, else digits."""
    flat = sp.expand(sp.radsimp(sp.sqrtdenest(sp.expand(expression))))
    if flat.is_Rational:
        return _number(flat)
    if all(_is_plain(term) for term in sp.Add.make_args(flat)):
        return {"latex": sp.latex(flat)}
    value = sp.N(expression, _WORKED)
    if not value.is_real or not value.is_finite:
        raise ValueError("no real number")
    near = sp.Rational(str(value)).limit_denominator(10**6)
    if abs(near - value) < sp.Float(10, _WORKED) ** -(_WORKED - 10):
        return _number(near)
    return _number(sp.Rational(str(sp.N(value, _SHOWN))))


def _is_plain(term: Any) -> bool:
    """A rational times different roots of integers and powers of π, e, i."""
    return all(
        factor.is_Rational
        or factor in (sp.I, sp.pi, sp.E)
        or (factor.is_Pow and factor.base in (sp.pi,) and factor.exp.is_Integer)
        or (isinstance(factor, sp.exp) and factor.args[0].is_Rational)
        or (factor.is_Pow and factor.base.is_Integer and factor.exp.is_Rational)
        for factor in sp.Mul.make_args(term)
    )


def _symbolic(expression: Any) -> dict[str, Any]:
    if expression.has(sp.core.function.AppliedUndef, sp.Derivative):
        raise ValueError("no formula of known functions")
    if expression.has(sp.Function) and not expression.is_polynomial():
        expression = sp.simplify(expression)
    above, below = sp.fraction(sp.cancel(sp.together(expression)))
    above, below = sp.expand(above), sp.expand(below)
    if below.is_number:
        return {"latex": sp.latex(sp.expand(above / below), ln_notation=True)}
    return {"latex": sp.latex(above / below, ln_notation=True)}


def _equation(left: str, right: str) -> dict[str, Any]:
    """`left = right` as `polynomial = 0`: no common factor, the first term positive."""
    difference = _parsed(left) - _parsed(right)
    above, below = sp.fraction(sp.cancel(sp.together(difference)))
    if not above.free_symbols or not below.is_number:
        raise ValueError("no equation of polynomials")
    polynomial = sp.Poly(above, *sorted(above.free_symbols, key=str)).primitive()[1]
    if polynomial.LC().is_negative:
        polynomial = -polynomial
    return {"latex": sp.latex(polynomial.as_expr(), ln_notation=True) + " = 0"}


def _verified(key: str, answer: str) -> bool:
    """Whether math-verify takes two answers for equal, whichever of them is the key."""
    config = [LatexExtractionConfig()]
    gold, target = (parse(f"${words}$", config, parsing_timeout=None) for words in (key, answer))
    return bool(verify(gold, target, timeout_seconds=None) or verify(target, gold, timeout_seconds=None))


if __name__ == "__main__":
    main()
