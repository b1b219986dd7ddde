"""The page itself: a pair, a verdict, what the judges said, the next pair. Works without JavaScript."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, unquote

from pluribus.errors import MissingDependency, PluribusError
from pluribus.review.guard import HEADERS, NAME_LENGTH, Guard, Refusal, plain_name
from pluribus.review.material import Material, Pair, Reply
from pluribus.review.numbers import preferred, statistics
from pluribus.review.queue import Queue, shown
from pluribus.types import Choice, Verdict
from pluribus.verdicts import Standing, standing

try:
    import latex2mathml  # noqa: F401 (said here, before a page is asked for)
    from fastapi import FastAPI, Request, Response
    from fastapi.responses import HTMLResponse, RedirectResponse
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.staticfiles import StaticFiles

    from pluribus.review.markup import markup
except ModuleNotFoundError as missing:
    raise MissingDependency(missing.name or "fastapi", "serve") from None

_HERE = Path(__file__).parent
_NAME, _PASS = "pluribus-reviewer", "pluribus-review-pass"
"""Cookies."""
_YEAR_S = 365 * 24 * 3600
_MOST_BYTES, _MOST_FIELDS = 16_384, 20
"""Of a form."""
_MOST_SECONDS = 24 * 3600.0
"""A page that was open for longer says nothing of how long a verdict took."""
_LONG = 2_000
"""Characters from which the length of a text is said."""
_CHOICES: dict[str, Choice] = {"first": "first", "second": "second", "tie": "tie", "skip": "skip"}


class Ledger(Protocol):
    """Where verdicts are kept."""

    def events(self) -> Sequence[Verdict]: ...

    def add(self, verdict: Verdict) -> None:
        """It is on disk when this returns."""


@dataclass(slots=True)
class Desk:
    """What all requests share."""

    material: Material
    ledger: Ledger
    queue: Queue
    guard: Guard
    reviewer: str | None = None
    """Who reviews; None: everybody says their name."""
    clock: Callable[[], float] = time.time

    def stands(self) -> Standing:
        return standing(self.ledger.events())

    def say(self, pair: Pair, reviewer: str, choice: Choice, since: float | None = None) -> None:
        """Adds an event, later than all before it of this person on this pair, whatever the clock did."""
        one, other = shown(pair, reviewer)
        mine = [e.at for e in self.ledger.events() if e.pair == pair.id and e.reviewer == reviewer]
        now = self.clock()
        seconds = now - since if since is not None and 0 <= now - since <= _MOST_SECONDS else None
        at = max([now, *(max(said + 1e-3, math.nextafter(said, math.inf)) for said in mine)])
        self.ledger.add(Verdict(pair.id, pair.question.id, one.item, other.item, choice, reviewer, at, seconds))

    def decide(self, pair: Pair, reviewer: str, choice: Choice, since: float | None) -> None:
        """Keeps a verdict; the same one again, by a second click or a reload, is one."""
        held = self.stands().get((pair.id, reviewer))
        if held is None or _said(held, pair, reviewer) != choice:
            self.say(pair, reviewer, choice, since)
        self.queue.release(pair.id, reviewer)

    def undo(self, pair: Pair, reviewer: str) -> None:
        """Takes back whatever this person said of the pair: it is open to them again."""
        held = [e for e in self.ledger.events() if e.pair == pair.id and e.reviewer == reviewer]
        for _ in held:
            if (pair.id, reviewer) not in self.stands():
                break
            self.say(pair, reviewer, "undo")
        self.queue.hold(pair.id, reviewer)

    def last(self, stands: Standing, reviewer: str) -> Pair | None:
        """The pair this person spoke of last."""
        mine = [said.pair for (_, who), said in stands.items() if who == reviewer]
        return next((pair for id in reversed(mine) if (pair := self.material.pair(id)) is not None), None)


def _said(verdict: Verdict, pair: Pair, reviewer: str) -> Choice:
    """The choice as this person sees the pair; one that was imported may have had the other order."""
    if verdict.choice in ("first", "second") and tuple(verdict.first) != shown(pair, reviewer)[0].item:
        return "second" if verdict.choice == "first" else "first"
    return verdict.choice


def make_app(desk: Desk) -> FastAPI:
    """The page around a desk. Requests are answered one after the other, so no two see the same state."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.mount("/static", StaticFiles(directory=_HERE / "static"))
    app.middleware("http")(_guarding(desk.guard))
    for kind in (HTTPException, ClientDisconnect, PluribusError, Exception):
        app.exception_handler(kind)(_failed)
    routes = _Routes(desk)
    for path, method, answer in (
        ("/", "GET", routes.start),
        ("/name", "GET", routes.ask_name),
        ("/name", "POST", routes.take_name),
        ("/pair/{id}", "GET", routes.show),
        ("/pair/{id}", "POST", routes.decide),
        ("/pair/{id}/undo", "POST", routes.undo),
        ("/stats", "GET", routes.stats),
    ):
        app.add_api_route(path, answer, methods=[method], response_class=HTMLResponse, response_model=None)
    return app


_Answer = Callable[[Request], Awaitable[Response]]


def _guarding(guard: Guard) -> Callable[[Request, _Answer], Awaitable[Response]]:
    async def guarded(request: Request, answer: _Answer) -> Response:
        response = _refused(guard, request) or _let_in(guard, request) or await answer(request)
        return _headed(response, kept=request.url.path.startswith("/static/"))

    return guarded


def _headed(response: Response, *, kept: bool = False) -> Response:
    """With what the browser may not do, and whether it may keep it."""
    for name, value in HEADERS.items():
        response.headers[name] = value
    response.headers["Cache-Control"] = "no-cache" if kept else "no-store"
    return response


def _refused(guard: Guard, request: Request) -> Response | None:
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    refusal = guard.strange_host(host)
    if refusal is None and request.method not in ("GET", "HEAD"):
        refusal = guard.strange_form(origin, host)
    if refusal is None and not request.url.path.startswith("/static/") and not _brings_token(guard, request):
        refusal = guard.no_token(request.cookies.get(_PASS))
    return None if refusal is None else _complaint(refusal)


def _brings_token(guard: Guard, request: Request) -> bool:
    return request.method == "GET" and guard.knows(request.query_params.get("token", ""))


def _let_in(guard: Guard, request: Request) -> Response | None:
    """The first visit, by the link with the token: a cookie takes its place, and the address bar forgets it.

    The page leads on by itself. A redirect would be part of whatever the visitor clicked, on another site perhaps, and
    a strict cookie is not sent along with that.
    """
    if not _brings_token(guard, request):
        return None
    response = _page("enter.html", title="Review")
    response.set_cookie(_PASS, guard.pass_of(guard.token or ""), max_age=_YEAR_S, httponly=True, samesite="strict")
    return response


_NOT_KEPT = "What you just said may not be kept: the review has to be started again, and shows the pair again if so."
_FAILURES: dict[int, tuple[str, str]] = {
    400: ("Not understood", "This is no form of this page."),
    404: ("There is nothing here", "This address is no pair of the run under review."),
    405: ("Not in this way", "Pages are read, and verdicts are given by their forms."),
    413: ("Too long", f"A form of this page has at most {_MOST_BYTES:,} bytes."),
}


async def _failed(request: Request, error: Exception) -> Response:
    """What a visitor sees of an error; what only the one who serves the page can mend is said there as well."""
    if isinstance(error, HTTPException):
        title, message = _FAILURES.get(error.status_code, ("Refused", str(error.detail)))
        return _complaint(Refusal(error.status_code, title, message))
    if isinstance(error, ClientDisconnect):  # nobody is left who could read an answer
        return Response(status_code=400)
    if isinstance(error, PluribusError):
        logging.getLogger("uvicorn.error").error("%s %s: %s", request.method, request.url.path, error)
        return _complaint(Refusal(503, "The review can not go on", f"{error}. {_NOT_KEPT}"))
    return _headed(_complaint(Refusal(500, "This is a bug", _NOT_KEPT)))


def _complaint(refusal: Refusal) -> Response:
    return _page("refused.html", refusal.status, title=refusal.title, message=refusal.message)


@dataclass(slots=True)
class _Routes:
    desk: Desk

    async def start(self, request: Request) -> Response:
        """Leads to the reviewer's next pair, or says that there is none."""
        skipped = "skipped" in request.query_params
        reviewer = self._reviewer(request)
        if reviewer is None:
            return RedirectResponse("/name", 303)
        stands = self.desk.stands()
        pair = self.desk.queue.next(stands, reviewer, skipped=skipped)
        if pair is not None:
            return RedirectResponse(f"/pair/{pair.id}", 303)
        return _page("done.html", **self._frame(reviewer, stands), alone=self.desk.material.alone)

    async def ask_name(self, request: Request) -> Response:
        if self.desk.reviewer is not None:
            return RedirectResponse("/", 303)
        return _page("name.html", **self._name_page(self._reviewer(request) or ""))

    async def take_name(self, request: Request) -> Response:
        name = plain_name((await _form(request)).get("name", ""))
        if not name:
            return _page("name.html", 400, **self._name_page("", "Please type a name."))
        response = RedirectResponse("/", 303)
        response.set_cookie(_NAME, quote(name), max_age=_YEAR_S, httponly=True, samesite="strict")
        return response

    async def show(self, request: Request, id: str) -> Response:
        """The pair as a question, or with everything about it once this reviewer has decided."""
        reviewer, pair = self._reviewer(request), self._pair(id)
        if reviewer is None:
            return RedirectResponse("/name", 303)
        stands = self.desk.stands()
        held = stands.get((pair.id, reviewer))
        frame = {**self._frame(reviewer, stands), "pair": pair, "question": _asked(pair)}
        if held is not None and held.choice != "skip":
            choice = _said(held, pair, reviewer)
            return _page("reveal.html", **frame, **_revealed(pair, reviewer), choice=choice)
        since = self.desk.queue.hold(pair.id, reviewer)
        last = self.desk.last(stands, reviewer)
        replies = [_shown(reply) for reply in shown(pair, reviewer)]
        return _page("pair.html", **frame, replies=replies, since=since, last=last)

    async def decide(self, request: Request, id: str) -> Response:
        reviewer, pair = self._reviewer(request), self._pair(id)
        if reviewer is None:
            return RedirectResponse("/name", 303)
        form = await _form(request)
        choice = _CHOICES.get(form.get("choice", ""))
        if choice is None:
            return _complaint(Refusal(400, "No such verdict", f"A verdict is one of {', '.join(_CHOICES)}."))
        self.desk.decide(pair, reviewer, choice, _number(form.get("since", "")))
        return RedirectResponse("/" if choice == "skip" else f"/pair/{pair.id}", 303)

    async def undo(self, request: Request, id: str) -> Response:
        reviewer, pair = self._reviewer(request), self._pair(id)
        if reviewer is None:
            return RedirectResponse("/name", 303)
        self.desk.undo(pair, reviewer)
        return RedirectResponse(f"/pair/{pair.id}", 303)

    async def stats(self, request: Request) -> Response:
        stands = self.desk.stands()
        found = statistics(self.desk.material, stands, self.desk.queue.votes)
        return _page("stats.html", **self._frame(self._reviewer(request), stands), found=found)

    def _reviewer(self, request: Request) -> str | None:
        if self.desk.reviewer is not None:
            return self.desk.reviewer
        return plain_name(unquote(request.cookies.get(_NAME, ""))) or None

    def _pair(self, id: str) -> Pair:
        pair = self.desk.material.pair(id)
        if pair is None:
            raise HTTPException(404)
        return pair

    def _frame(self, reviewer: str | None, stands: Standing) -> dict[str, Any]:
        """What every page shows around itself."""
        progress = self.desk.queue.progress(stands, reviewer or "")
        return {
            "title": self.desk.material.name, "run": self.desk.material, "reviewer": reviewer, "progress": progress,
            "fixed": self.desk.reviewer is not None,
        }  # fmt: skip

    def _name_page(self, name: str, complaint: str | None = None) -> dict[str, Any]:
        return {"title": self.desk.material.name, "name": name, "length": NAME_LENGTH, "complaint": complaint}


def _shown(reply: Reply) -> dict[str, Any]:
    length = len(reply.text) if len(reply.text) >= _LONG else None
    return {"text": markup(reply.text), "length": length, "reply": reply}


def _revealed(pair: Pair, reviewer: str) -> dict[str, Any]:
    """Both replies with who wrote them, and each judge's word on both."""
    first, second = shown(pair, reviewer)
    voices = [
        {"judge": a.judge, "first": a, "second": b, "prefers": preferred(a.score, b.score)}
        for a, b in zip(first.voices, second.voices, strict=True)
    ]
    council = preferred(first.reward.value, second.reward.value)
    return {"replies": [_shown(first), _shown(second)], "voices": voices, "council": council}


def _asked(pair: Pair) -> dict[str, Any]:
    question = pair.question
    choices = [(chr(ord("A") + place), markup(choice)) for place, choice in enumerate(question.choices)]
    return {
        "text": markup(question.text), "choices": choices, "labels": question.labels,
        "context": None if question.context is None else markup(question.context),
    }  # fmt: skip


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; HTTPException where it is far longer than one."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise HTTPException(413)
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise HTTPException(400) from None


def _number(said: str) -> float | None:
    try:
        return float(said)
    except ValueError:
        return None


def _pages() -> Environment:
    pages = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    pages.filters["share"] = lambda value: "–" if value is None else f"{100 * value:.0f} %"
    pages.filters["number"] = lambda value, digits=2: "–" if value is None else f"{value:.{digits}f}"
    pages.filters["count"] = lambda value: f"{value:,}"
    return pages


_PAGES = _pages()


def _page(template: str, status: int = 200, **fields: Any) -> HTMLResponse:
    # a name or a judge's word may hold half a surrogate pair, which no page can
    return HTMLResponse(_PAGES.get_template(template).render(**fields).encode("utf-8", "replace"), status)
