"""People at the page in a real browser: by keyboard, with reloads, two at once, and with hostile replies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.review.browser import DRIVER, PROGRAM, Person, person
from tests.review.desk import APART, Planted, plant, said, varied
from tests.review.server import serving

from pluribus.verdicts import standing

pytestmark = pytest.mark.skipif(PROGRAM is None or DRIVER is None, reason="no chromium with a driver on this machine")
pytest.importorskip("fastapi")

HOSTILE = "<script>window.stolen = 1</script></textarea></div><img src=x onerror='window.stolen = 2'>"
CONTRAST = """
const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => v / 255)
  .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (!c.endsWith(", 0)")) return c; } };
const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
return [...document.querySelectorAll("main *, header *, .bar *")]
  .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
  .filter(e => e.checkVisibility() && !e.closest("kbd"))
  .map(e => [ratio(light(getComputedStyle(e).color), light(behind(e))), e.outerHTML.slice(0, 80)])
  .filter(([found]) => found < 4.5);
"""


@pytest.fixture(scope="module")
def ada(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """One browser for all tests; each gives it the address of its own page."""
    with person("", tmp_path_factory.mktemp("ada")) as found:
        yield found


@pytest.fixture(autouse=True)
def calm(ada: Person) -> Iterator[None]:
    """No browser says anything against any page."""
    ada.driver.delete_all_cookies() if ada.driver.current_url.startswith("http") else None
    yield
    assert ada.complaints() == []


def test_ten_pairs_by_keyboard(ada: Person, tmp_path: Path) -> None:
    plant(tmp_path, varied(10), reason="a slip in the last line")
    with serving(tmp_path) as page:
        ada.address = page.address
        ada.enter("Ada Lovelace")
        seen = []
        for at, key in enumerate("12t12=1202"):
            assert ada.texts(".progress span") == [f"{at} of 10 pairs decided, {10 - at} left for you"]
            assert "scripted/" not in ada.driver.page_source and "teacher" not in ada.driver.page_source
            seen.append(ada.pair)
            ada.press(key)
            assert ada.pair == seen[-1] and sorted(ada.texts(".model")) == [
                "scripted/model-p, sceptic", "scripted/model-q, sceptic"
            ]  # fmt: skip
            assert ada.texts("tbody tr .reason")[0] == "a slip in the last line"
            ada.press("n" if at % 2 else "\ue007")  # Enter
        assert ada.texts("h1") == ["All done"] and len(set(seen)) == 10
        found = said(tmp_path)
    assert [v.pair for v in found] == seen
    assert [v.choice for v in found] == ["first" if c == "1" else "second" if c == "2" else "tie" for c in "12t12=1202"]
    assert all(v.seconds is not None and 0 <= v.seconds < 60 for v in found)


def test_undo_skip_reload_and_help(ada: Person, tmp_path: Path) -> None:
    plant(tmp_path, varied(3))
    with serving(tmp_path, "--reviewer", "Ada") as page:
        ada.address = page.address
        ada.driver.get(page.address)
        first = ada.pair
        replies = ada.texts(".reply .text")
        ada.leave(ada.driver.refresh)
        assert (ada.pair, ada.texts(".reply .text")) == (first, replies), "a reload changes nothing"
        assert not ada.run("return document.getElementById('help').open")
        ada.one("body").send_keys("?")
        assert ada.run("return document.getElementById('help').open")
        ada.press("1")
        ada.leave(ada.driver.refresh)
        assert ada.texts("main [role=status]") == ["You said: the first is better."]
        ada.press("u")
        assert (ada.pair, ada.texts(".reply .text")) == (first, replies)
        ada.press("2")
        ada.press("n")
        second = ada.pair
        ada.press("u")
        assert ada.pair == first, "undo from the next pair leads back"
        ada.press("t")
        ada.press("n")
        assert ada.pair == second
        ada.press("s")
        assert ada.pair not in (first, second)
        ada.leave(lambda: ada.one("button[value=second]").click())
        ada.press("n")
        assert ada.texts("h1") == ["Nothing left for you"]
        ada.leave(lambda: ada.one("main p a[href*=skipped]").click())
        assert ada.pair == second
    stands = {pair: v.choice for (pair, _), v in standing(said(tmp_path)).items()}
    assert (stands[first], stands[second]) == ("tie", "skip") and len(stands) == 3


def test_two_people_at_once(ada: Person, tmp_path: Path) -> None:
    plant(tmp_path, varied(4))
    with serving(tmp_path) as page, person(page.address, tmp_path / "bob") as bob:
        ada.address = page.address
        ada.enter("Ada")
        bob.enter("Bob")
        for _ in range(2):
            assert ada.pair != bob.pair
            ada.press("1")
            bob.press("2")
            ada.press("n")
            bob.press("n")
        assert ada.texts("h1") == bob.texts("h1") == ["All done"]
        assert bob.complaints() == []
    found = said(tmp_path)
    assert len({v.pair for v in found}) == len(found) == 4
    assert sorted(v.reviewer for v in found) == ["Ada", "Ada", "Bob", "Bob"]


def test_hostile_and_very_long_replies(ada: Person, tmp_path: Path) -> None:
    long = "A line that is long enough to be wrapped somewhere. " * 1000
    replies = [(f"{HOSTILE} $\\text{{{HOSTILE}}}$ $x^2$", APART[0]), (f"{long[:50_000]}", APART[1])]
    plant(tmp_path, [Planted(f"Which? {HOSTILE}", replies, choices=(HOSTILE, "no"), context=HOSTILE)])
    with serving(tmp_path, "--reviewer", "Ada") as page:
        ada.address = page.address
        ada.driver.get(page.address)
        for _ in range(2):
            assert ada.run("return window.stolen") is None and ada.run("return document.scripts.length") == 1
            assert ada.run("return document.querySelectorAll('main img, main textarea').length") == 0
            assert any(HOSTILE in text for text in ada.texts(".reply .text"))
            assert ada.run("return document.querySelectorAll('.reply math msup').length") == 1
            inside = "const b = [...document.querySelectorAll('.reply .text')].find(e => e.textContent.length > 40000);"
            assert ada.run(f"{inside} return b.scrollHeight > 3 * b.clientHeight && b.clientHeight < innerHeight")
            assert ada.run("const r = document.querySelector('.bar').getBoundingClientRect();"
                           "return r.top > 0 && r.bottom <= innerHeight + 1"), "always in reach"  # fmt: skip
            if "Which is better" in ada.driver.title:
                ada.press("1")
        assert ada.texts("main [role=status]") == ["You said: the first is better."]


def test_every_page_can_be_read_in_the_dark_and_on_a_telephone(ada: Person, tmp_path: Path) -> None:
    plant(tmp_path, [*varied(1), Planted("?", [("$" + "x + " * 60 + "y$ " + "w" * 400, APART[0]), ("b", APART[1])])])
    with serving(tmp_path, "--reviewer", "Ada") as page:
        ada.address = page.address
        ada.driver.get(page.address)
        for key in ("1", "n", "2", "n", None):
            for width, dark in ((1280, False), (390, True), (390, False), (1280, True)):
                ada.look(width, dark=dark)
                assert ada.run("return document.documentElement.scrollWidth <= innerWidth"), (key, width)
                assert ada.run(CONTRAST) == [], (key, dark)
            if key is not None:
                ada.press(key)
        ada.driver.get(page.address + "stats")
        for width, dark in ((1280, False), (390, True)):
            ada.look(width, dark=dark)
            assert ada.run("return document.documentElement.scrollWidth <= innerWidth")
            assert ada.run(CONTRAST) == []
