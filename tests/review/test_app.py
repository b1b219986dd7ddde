"""The page as a browser without JavaScript uses it, and as somebody who should not be there tries to."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.review.desk import SAME, Planted, plain, plant, rewarded, varied

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")

from pluribus.errors import StoreError  # noqa: E402
from pluribus.review.app import Desk, make_app  # noqa: E402
from pluribus.review.guard import Guard, is_loopback, plain_name  # noqa: E402
from pluribus.review.material import gather  # noqa: E402
from pluribus.review.queue import Queue  # noqa: E402
from pluribus.types import Verdict  # noqa: E402
from pluribus.verdicts import choice_of, sides, standing  # noqa: E402

BASE = "http://127.0.0.1:8765"
ORIGIN = {"origin": BASE}
TOKEN = "a-token-that-nobody-guesses"


@dataclass
class Kept:
    """A ledger in memory."""

    said: list[Verdict] = field(default_factory=list)

    def events(self) -> Sequence[Verdict]:
        return self.said

    def add(self, verdict: Verdict) -> None:
        self.said.append(verdict)


@pytest.fixture
def desk(tmp_path: Path) -> Callable[..., Desk]:
    def make(planted: Sequence[Planted], *, votes: int = 1, every: bool = False, **options: Any) -> Desk:
        plant(tmp_path, planted, reason="because <b>it</b> is so")
        material = gather(rewarded(tmp_path), every=every)
        return Desk(material, Kept(), Queue(material.pairs, votes), options.pop("guard", Guard()), **options)

    return make


@asynccontextmanager
async def visiting(desk: Desk, name: str | None = "ada", base: str = BASE) -> AsyncIterator[Any]:
    transport = httpx.ASGITransport(app=make_app(desk), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=base, follow_redirects=True) as client:
        if name is not None:
            client.cookies.set("pluribus-reviewer", name)
        yield client


def pair_of(answer: Any) -> str:
    return str(answer.url.path).rpartition("/")[2]


async def test_a_visitor_says_a_name_and_decides_until_nothing_is_left(desk: Callable[..., Desk]) -> None:
    table = desk(varied(3))
    async with visiting(table, None) as client:
        assert (await client.get("/")).url.path == "/name"
        page = await client.post("/name", data={"name": "  Ada\nLovelace "}, headers=ORIGIN)
        for choice in ("first", "second", "tie"):
            assert "Which is better?" in page.text and "scripted/model" not in page.text and "teacher" not in page.text
            page = await client.post(page.url.path, data={"choice": choice}, headers=ORIGIN)
            assert "You said" in page.text and "scripted/model-p" in page.text and "teacher" in page.text
            assert "because &lt;b&gt;it&lt;/b&gt; is so" in page.text
            page = await client.get("/")
        assert "All done" in page.text and "3 of 3 pairs" in page.text
    said = table.ledger.events()
    assert [v.choice for v in said] == ["first", "second", "tie"] and {v.reviewer for v in said} == {"Ada Lovelace"}
    assert [v.pair for v in said] == [pair.id for pair in table.material.pairs]


async def test_a_verdict_names_the_replies_as_they_were_shown(desk: Callable[..., Desk]) -> None:
    table = desk(varied(8))
    flips = set()
    async with visiting(table) as client:
        for _ in range(8):
            page = await client.get("/")
            left = re.search(r"reply ([xy]) to", page.text)
            assert left
            await client.post(page.url.path, data={"choice": "first"}, headers=ORIGIN)
            said = table.ledger.events()[-1]
            assert said.first[1] == "xy".index(left[1]) and said.second[1] != said.first[1]
            assert choice_of(said) == ("first" if said.first == sides(said)[0] else "second")
            flips.add(left[1])
    assert flips == {"x", "y"}


async def test_the_time_from_showing_to_verdict_is_kept(desk: Callable[..., Desk]) -> None:
    now = [5000.0]
    table = desk(varied(2), clock=lambda: now[0])
    table.queue.clock = table.clock
    async with visiting(table) as client:
        page = await client.get("/")
        since = re.search(r'name="since" value="([^"]*)"', page.text)
        now[0] += 12.5
        assert since
        await client.post(page.url.path, data={"choice": "first", "since": since[1]}, headers=ORIGIN)
        page = await client.get("/")
        await client.post(page.url.path, data={"choice": "first", "since": "nan"}, headers=ORIGIN)
    assert [(v.at, v.seconds) for v in table.ledger.events()] == [(5012.5, 12.5), (5012.5, None)]


async def test_the_same_verdict_twice_is_one_and_another_one_replaces_it(desk: Callable[..., Desk]) -> None:
    table = desk(varied(1))
    async with visiting(table) as client:
        page = await client.get("/")
        for choice in ("first", "first", "second"):
            await client.post(page.url.path, data={"choice": choice}, headers=ORIGIN)
        assert [v.choice for v in table.ledger.events()] == ["first", "second"]
        again = await client.post(f"{page.url.path}/undo", headers=ORIGIN)
        assert "Which is better?" in again.text, "undo takes back whatever was said of the pair"
        await client.post(f"{page.url.path}/undo", headers=ORIGIN)
    assert [v.choice for v in table.ledger.events()] == ["first", "second", "undo", "undo"]
    assert standing(table.ledger.events()) == {}


async def test_events_of_a_clock_that_stands_still_are_told_apart(desk: Callable[..., Desk]) -> None:
    table = desk(varied(1), clock=lambda: 7.0)
    async with visiting(table) as client:
        page = await client.get("/")
        await client.post(page.url.path, data={"choice": "tie"}, headers=ORIGIN)
        await client.post(f"{page.url.path}/undo", headers=ORIGIN)
        await client.post(page.url.path, data={"choice": "tie"}, headers=ORIGIN)
    assert len({v.at for v in table.ledger.events()}) == 3
    assert [v.choice for v in standing(table.ledger.events()).values()] == ["tie"]


async def test_undo_from_the_next_pair_leads_back_to_the_last_one(desk: Callable[..., Desk]) -> None:
    table = desk(varied(2))
    async with visiting(table) as client:
        first = await client.get("/")
        assert "undo" not in first.text.replace("take back", "")
        await client.post(first.url.path, data={"choice": "first"}, headers=ORIGIN)
        second = await client.get("/")
        assert f'action="{first.url.path}/undo"' in second.text
        back = await client.post(f"{first.url.path}/undo", headers=ORIGIN)
        assert back.url.path == first.url.path and "Which is better?" in back.text


async def test_a_skipped_pair_comes_back_when_it_is_asked_for(desk: Callable[..., Desk]) -> None:
    table = desk(varied(1))
    async with visiting(table) as client:
        page = await client.get("/")
        done = await client.post(page.url.path, data={"choice": "skip"}, headers=ORIGIN)
        assert "You skipped 1 pair" in done.text and "scripted/model" not in done.text
        again = await client.get("/?skipped=true")
        assert again.url.path == page.url.path and "Which is better?" in again.text


async def test_two_people_get_different_pairs_and_the_last_who_comes_is_told_to_wait(desk: Callable[..., Desk]) -> None:
    table = desk(varied(2))
    async with visiting(table) as ada, visiting(table, "bob") as bob, visiting(table, "cyd") as cyd:
        assert pair_of(await ada.get("/")) != pair_of(await bob.get("/"))
        assert "Nothing for you at this moment" in (await cyd.get("/")).text


async def test_who_reviews_may_be_said_at_the_start(desk: Callable[..., Desk]) -> None:
    async with visiting(desk(varied(1), reviewer="Ada"), None) as client:
        page = await client.get("/name")
        assert "Which is better?" in page.text and "Ada" in page.text


async def test_nothing_to_review(desk: Callable[..., Desk]) -> None:
    async with visiting(desk([plain(0, SAME)])) as client:
        page = await client.get("/")
        assert page.status_code == 200 and "Nothing to review" in page.text and "--all" in page.text
        assert "Nobody has decided a pair yet" in (await client.get("/stats")).text
    async with visiting(desk([plain(0, SAME)], every=True)) as client:
        assert "Which is better?" in (await client.get("/")).text


async def test_statistics_page(desk: Callable[..., Desk]) -> None:
    table = desk(varied(2))
    async with visiting(table) as client:
        page = await client.get("/")
        await client.post(page.url.path, data={"choice": "first"}, headers=ORIGIN)
        text = (await client.get("/stats")).text
        assert "Reviewers with judges" in text and all(judge in text for judge in ("teacher", "critic", "council"))


HOSTILE = '<script>alert(1)</script></textarea></div><img src=x onerror="alert(2)">{{ 7 * 7 }}'


async def test_nothing_a_model_or_a_visitor_writes_becomes_part_of_the_page(desk: Callable[..., Desk]) -> None:
    planted = Planted(
        HOSTILE, [(f"one {HOSTILE}", ((0.9, 0.2, 0.6))), (f"two {HOSTILE}", (0.3, 0.8, 0.4))],
        choices=(HOSTILE, f"other {HOSTILE}"), context=HOSTILE,
    )  # fmt: skip
    table = desk([planted])
    async with visiting(table, "x") as client:
        question = await client.get("/")
        reveal = await client.post(question.url.path, data={"choice": "first"}, headers=ORIGIN)
        named = await client.post("/name", data={"name": f'"><b>{HOSTILE[:20]}'}, headers=ORIGIN)
        for page in (question, reveal, named, await client.get("/name"), await client.get("/stats")):
            assert page.status_code == 200
            assert page.text.count("<script") == page.text.count('<script src="/static/page.js" defer></script>') == 1
            assert "<img" not in page.text and "</textarea>" not in page.text
        assert question.text.count("{{ 7 * 7 }}") >= 5, "a template's words in a text are text"
        assert html.escape("one <script>alert(1)</script>") in reveal.text


async def test_a_name_half_of_a_sign_and_a_long_name(desk: Callable[..., Desk]) -> None:
    async with visiting(desk(varied(1)), None) as client:
        page = await client.post("/name", content=b"name=%ED%A0%80" + b"x" * 100, headers=ORIGIN)
        assert page.status_code == 200 and "Which is better?" in page.text
        empty = await client.post("/name", data={"name": " \u202e\n "}, headers=ORIGIN)
        assert empty.status_code == 400 and "Please type a name" in empty.text
    assert plain_name("x" * 100) == "x" * 60


@pytest.mark.parametrize(
    ("path", "data", "status"),
    [
        ("/pair/0", {"choice": "first"}, 404),
        ("/pair/0/undo", {}, 404),
        ("/nowhere", {}, 404),
        ("/pair/{id}", {"choice": "undo"}, 400),
        ("/pair/{id}", {"choice": "best"}, 400),
        ("/pair/{id}", {}, 400),
        ("/pair/{id}", {"choice": "x" * 20_000}, 413),
        ("/pair/{id}", {"choice": "first"} | {f"field{i}": "1" for i in range(30)}, 400),
    ],
)
async def test_what_makes_no_sense_is_refused_and_keeps_nothing(
    desk: Callable[..., Desk], path: str, data: dict[str, str], status: int
) -> None:
    table = desk(varied(1))
    async with visiting(table) as client:
        answer = await client.post(path.format(id=table.material.pairs[0].id), data=data, headers=ORIGIN)
    assert answer.status_code == status and "<h1>" in answer.text
    assert table.ledger.events() == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": ""},
        {"origin": "http://["},
        {"origin": "http://evil@127.0.0.1:8765"},
    ],
)
async def test_a_form_of_another_site_is_refused(desk: Callable[..., Desk], headers: dict[str, str]) -> None:
    table = desk(varied(1))
    async with visiting(table) as client:
        for path in (f"/pair/{table.material.pairs[0].id}", f"/pair/{table.material.pairs[0].id}/undo", "/name"):
            answer = await client.post(path, data={"choice": "first", "name": "eve"}, headers=headers)
            assert answer.status_code == 403
    assert table.ledger.events() == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
async def test_only_a_form_changes_anything(desk: Callable[..., Desk], method: str) -> None:
    table = desk(varied(1))
    async with visiting(table) as client:
        url = f"/pair/{table.material.pairs[0].id}?choice=first"
        await client.request(method, url, headers=ORIGIN)
        await client.request(method, f"/pair/{table.material.pairs[0].id}/undo", headers=ORIGIN)
    assert table.ledger.events() == []


@pytest.mark.parametrize("base", ["http://evil.example", "http://evil.example:8765", "http://127.0.0.1.evil.example"])
async def test_a_name_that_was_made_to_lead_here_is_refused(desk: Callable[..., Desk], base: str) -> None:
    table = desk(varied(1))
    async with visiting(table, base=base) as client:
        for path in ("/", "/stats", "/static/page.css"):
            assert (await client.get(path)).status_code == 400
        posted = await client.post("/name", data={"name": "eve"}, headers={"origin": base})
        assert posted.status_code == 400


@pytest.mark.parametrize("host", ["[::1", "[x]", "", "localhost.evil.example", "localhost@evil.example", "\xff"])
async def test_an_address_that_is_none_is_refused(desk: Callable[..., Desk], host: str) -> None:
    async with visiting(desk(varied(1))) as client:
        answer = await client.get("/", headers={b"host": host.encode("latin-1")})
        assert answer.status_code == 400 and "content-security-policy" in answer.headers


@pytest.mark.parametrize("base", ["http://localhost:8765", "http://[::1]:8765", "http://127.0.0.1:8765"])
async def test_this_machine_has_several_names(desk: Callable[..., Desk], base: str) -> None:
    async with visiting(desk(varied(1)), base=base) as client:
        assert (await client.get("/")).status_code == 200


async def test_without_the_token_nobody_comes_in_and_with_it_a_cookie_takes_its_place(
    desk: Callable[..., Desk],
) -> None:
    table = desk(varied(1), guard=Guard("0.0.0.0", TOKEN))
    base = "http://box.lan:8765"
    async with visiting(table, base=base) as client:
        for path in ("/", "/stats", "/name", "/?token=wrong", "/?token=", f"/pair/{table.material.pairs[0].id}"):
            answer = await client.get(path)
            assert answer.status_code == 401 and "reply" not in answer.text
        posted = await client.post("/name?token=" + TOKEN, data={"name": "x"}, headers={"origin": base})
        assert posted.status_code == 401, "a form brings its cookie"
        entered = await client.get(f"/?token={TOKEN}")
        kept = entered.headers["set-cookie"]
        assert entered.status_code == 200 and TOKEN not in entered.text + kept
        assert "HttpOnly" in kept and "samesite=strict" in kept.lower()
        page = await client.get("/")
        assert "Which is better?" in page.text
        assert "You said" in (await client.post(page.url.path, data={"choice": "tie"}, headers={"origin": base})).text
        client.cookies.set("pluribus-review-pass", "é" * 64)
    async with visiting(table, base=base) as stranger:
        stranger.cookies.set("pluribus-review-pass", TOKEN)
        assert (await stranger.get("/")).status_code == 401


async def test_every_answer_tells_the_browser_what_it_may_not_do(desk: Callable[..., Desk]) -> None:
    async with visiting(desk(varied(1))) as client:
        for path in ("/", "/stats", "/name", "/nowhere", "/static/page.css", "/static/page.js", "/static/icon.svg"):
            answer = await client.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
        assert answer.status_code == 200 and (await client.get("/")).headers["cache-control"] == "no-store"


async def test_no_way_leads_out_of_the_folder_of_static_files(desk: Callable[..., Desk]) -> None:
    async with visiting(desk(varied(1))) as client:
        for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/"):
            assert (await client.get(path)).status_code == 404


def test_pages_ask_for_nothing_from_elsewhere() -> None:
    folder = Path(make_app.__code__.co_filename).parent
    for file in [*folder.glob("templates/*.html"), *folder.glob("static/*")]:
        text = file.read_text("utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http:" not in text and "https:" not in text and "//" not in re.sub(r"^\s*//.*$", "", text, flags=re.M)
        assert "|safe" not in text.replace(" ", "") and "style=" not in text and not re.search(r"\son[a-z]+=", text)


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.1.2.3", True), ("0.0.0.0", False), ("::", False),
     ("192.168.1.5", False), ("box.lan", False), ("", False)],
)  # fmt: skip
def test_addresses_that_only_this_machine_reaches(host: str, here: bool) -> None:
    assert is_loopback(host) is here


class Full(Kept):
    """A ledger on a disk that is full."""

    def add(self, verdict: Verdict) -> None:
        raise StoreError("nothing can be written any more: <disk> is full", hint="what was flushed is safe")


async def test_a_verdict_that_can_not_be_kept_is_said_to_be_lost(desk: Callable[..., Desk]) -> None:
    table = desk(varied(1))
    table.ledger = Full()
    async with visiting(table) as client:
        page = await client.get("/")
        answer = await client.post(page.url.path, data={"choice": "first"}, headers=ORIGIN)
        assert answer.status_code == 503 and "may not be kept" in answer.text and "&lt;disk&gt; is full" in answer.text
        assert "content-security-policy" in answer.headers
        assert "Which is better?" in (await client.get("/")).text


class Broken(Kept):
    def events(self) -> Sequence[Verdict]:
        raise RuntimeError("a secret of the inside")


async def test_a_bug_shows_nothing_of_the_inside(desk: Callable[..., Desk]) -> None:
    table = desk(varied(1))
    table.ledger = Broken()
    async with visiting(table) as client:
        answer = await client.get("/")
    assert answer.status_code == 500 and "This is a bug" in answer.text and "secret" not in answer.text
    assert "content-security-policy" in answer.headers and answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("at", [253402300799.0, 1e300])
async def test_a_verdict_of_a_far_future_can_be_taken_back(desk: Callable[..., Desk], at: float) -> None:
    table = desk(varied(1))
    pair = table.material.pairs[0]
    first, second = (reply.item for reply in pair.replies)
    for choice in ("tie", "first"):
        table.ledger.add(Verdict(pair.id, pair.question.id, first, second, choice, "ada", at))  # type: ignore[arg-type]
    async with visiting(table) as client:
        page = await client.post(f"/pair/{pair.id}/undo", headers=ORIGIN)
        assert "Which is better?" in page.text
    said = table.ledger.events()
    assert len({(v.choice, v.at) for v in said}) == len(said) == 4, "the store takes the same event for one"
