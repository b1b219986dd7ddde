"""How a report writes numbers and names; the unit stands in the head of the column or on the axis."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

NOTHING = "–"
_LONG = 44
"""Letters of a name that fit into a legend."""


def percent(share: float | None) -> str:
    """
    >>> percent(0.9), percent(None)
    ('90.0', '–')
    """
    return NOTHING if share is None else f"{100 * share:.1f}"


def percent_between(share: float | None, low: float | None, high: float | None) -> str:
    """
    >>> percent_between(0.9, 0.699, 0.972), percent_between(0.9, None, None)
    ('90.0 [69.9, 97.2]', '90.0')
    """
    return percent(share) + _between(percent(low), percent(high))


def points(difference: float | None, low: float | None = None, high: float | None = None) -> str:
    """Percentage points, with their sign.

    >>> points(0.041, 0.022, 0.06), points(-0.041)
    ('+4.1 [+2.2, +6.0]', '−4.1')
    >>> points(-1e-9)
    '+0.0'
    """
    return _signed(difference, 100, 1) + _between(_signed(low, 100, 1), _signed(high, 100, 1))


def signed(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """
    >>> signed(0.034, -0.01, 0.08)
    '+0.034 [−0.010, +0.080]'
    """
    return _signed(value, 1, 3) + _between(_signed(low, 1, 3), _signed(high, 1, 3))


def decimal(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """
    >>> decimal(1.23456), decimal(-0.5, -0.75, -0.25)
    ('1.235', '−0.500 [−0.750, −0.250]')
    """
    return _plain(value) + _between(_plain(low), _plain(high))


def general(value: float | None) -> str:
    """As many digits as it needs, four at most.

    >>> general(0.69281), general(5e-07), general(-0.0004), general(1234.5), general(None)
    ('0.6928', '5e−07', '−0.0004', '1,234', '–')
    """
    if value is None:
        return NOTHING
    return (f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}").replace("-", "−")


def _plain(value: float | None) -> str:
    return NOTHING if value is None else f"{round(value, 3) + 0.0:.3f}".replace("-", "−")


def _signed(value: float | None, times: float, places: int) -> str:
    return NOTHING if value is None else f"{round(times * value, places) + 0.0:+.{places}f}".replace("-", "−")


def _between(low: str, high: str) -> str:
    return "" if NOTHING in (low, high) else f" [{low}, {high}]"


def probability(p: float | None) -> str:
    """
    >>> probability(0.00004), probability(0.0432), probability(1.0), probability(None)
    ('< 0.001', '0.043', '1', '–')
    """
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else "1" if p > 0.9995 else f"{p:.3f}"


def count(number: float | None) -> str:
    """
    >>> count(1319), count(3.5), count(None)
    ('1,319', '3.5', '–')
    """
    if number is None:
        return NOTHING
    return f"{number:,.0f}" if number == int(number) or abs(number) >= 1000 else f"{number:,.1f}"


def dollars(amount: float | None) -> str:
    """US dollars; None is unpriced, which is not 0.

    >>> dollars(0.0), dollars(0.00123), dollars(12.3), dollars(None)
    ('0', '0.0012', '12.30', 'unpriced')
    """
    if amount is None:
        return "unpriced"
    return "0" if amount == 0 else f"{amount:,.2f}" if amount >= 1 else f"{amount:.2g}"


def text(said: object) -> str:
    """
    >>> text(None), text(" a\\nb ")
    ('–', 'a b')
    """
    return NOTHING if said is None or said == "" else " ".join(str(said).split())


def visible(said: str) -> str:
    """Text without control characters, and without those that turn the direction of writing.

    >>> visible("a\\x00b\\u202ec")
    'a\ufffdb\ufffdc'
    """
    return said.translate(_UNSEEN)


_TURNING = (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_UNSEEN = {c: "\ufffd" for c in (*range(32), *_TURNING) if chr(c) not in "\n\t"}


def plural(number: int, word: str, many: str | None = None) -> str:
    """
    >>> plural(1, "question"), plural(1319, "question")
    ('1 question', '1,319 questions')
    """
    return f"{number:,} {word if number == 1 else many or word + 's'}"


def span(first: int, last: int) -> str:
    """
    >>> span(3, 5), span(3, 3)
    ('3 to 5', '3')
    """
    return f"{first}" if first == last else f"{first} to {last}"


def listed(words: Sequence[str], most: int = 6) -> str:
    """
    >>> listed(["a"]), listed(["a", "b", "c"]), listed(list("abcdefgh"), 3)
    ('a', 'a, b and c', 'a, b, c and 5 more')
    """
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "none"


def date(unix_s: float | None) -> str:
    """Day and minute, UTC.

    >>> date(0.0), date(None)
    ('1970-01-01 00:00', '–')
    """
    return NOTHING if unix_s is None else datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M")


def short_model(model: str) -> str:
    """A model's name without its service and the folders on the way to it.

    >>> short_model("replay//data/outputs.jsonl.gz#gpt-4o"), short_model("openai/gpt-4o@http://here:8000/v1")
    ('gpt-4o', 'gpt-4o')
    >>> short_model("Llama"), short_model("local/Qwen/Qwen3-8B"), short_model("agent 1")
    ('Llama', 'Qwen3-8B', 'agent 1')
    """
    name = (
        model.rpartition("#")[2] if "#" in model else re.split(r"@https?://", model)[0].rstrip("/").rpartition("/")[2]
    )
    return name or model


def brief(name: str, most: int = _LONG) -> str:
    """A name cut in its middle where it is too long for a legend.

    >>> brief("abcdefghij", 7)
    'abc…hij'
    """
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"


def slug(name: str) -> str:
    """A name that is safe as a file's and as an anchor.

    >>> slug("Accuracy: vote, “no” personas"), slug("…")
    ('accuracy-vote-no-personas', 'report')
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80].strip("-") or "report"
