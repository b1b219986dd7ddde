"""Who may use the page: the name it is asked under, the token, where a form comes from; and what a browser may do."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # with no-referrer a browser hides the origin of its own forms too, and every one of them would be refused
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NAME_LENGTH = 60
"""Characters of a reviewer's name."""
_HERE = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address.

    >>> is_loopback("localhost"), is_loopback("127.0.0.7"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host in _HERE:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def plain_name(said: str, length: int = NAME_LENGTH) -> str:
    """A reviewer's name in one line, without signs that nobody sees.

    >>> plain_name("  Ada\\n Lovelace\\u202e ")
    'Ada Lovelace'
    """
    seen = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in unicodedata.normalize("NFC", said))
    return " ".join(seen.split())[:length].strip()


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class Guard:
    host: str = "127.0.0.1"
    """The address that the page is bound to."""
    token: str | None = None
    """What a visitor must have; None: everybody on this machine may come in."""

    def strange_host(self, said: str) -> Refusal | None:
        """A page of the web whose name was made to lead to this machine asks under that name."""
        if not is_loopback(self.host) or _parts(f"//{said}").hostname in (*_HERE, self.host):
            return None
        return Refusal(400, "Wrong address", "This page answers under the address it was started with, and no other.")

    def strange_form(self, origin: str | None, host: str) -> Refusal | None:
        """A form that another site sends in this visitor's name; browsers say where a form comes from."""
        if host and origin is not None and _parts(origin).netloc == host:
            return None
        return Refusal(403, "Refused", "Verdicts are taken from the forms of this page only.")

    def no_token(self, cookie: str | None) -> Refusal | None:
        if self.token is None or _same(cookie or "", self.pass_of(self.token)):
            return None
        return Refusal(
            401, "A token is needed", "Open the link that was printed where the review was started: it holds the token."
        )

    def knows(self, token: str) -> bool:
        return self.token is not None and _same(token, self.token)

    @staticmethod
    def pass_of(token: str) -> str:
        """What the cookie holds in the token's place."""
        return hmac.new(token.encode(), b"pluribus review", hashlib.sha256).hexdigest()


def _parts(url: str) -> SplitResult:
    """Of an address that a stranger wrote; nothing of one that is none, such as `http://[`."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
