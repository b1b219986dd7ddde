"""A headless Chromium, driven over its DevTools protocol: what a page asks for, complains about and shows."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
_QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--mute-audio",
)  # fmt: skip
_START_S = 60.0


@dataclass
class Tab:
    """One open page."""

    socket: aiohttp.ClientWebSocketResponse
    session: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    _last: int = 0

    async def send(self, method: str, **params: Any) -> Any:
        self._last += 1
        session = {"sessionId": self.session} if self.session else {}
        await self.socket.send_json({"id": self._last, "method": method, "params": params, **session})
        while True:
            message = await self.socket.receive_json()
            if message.get("id") == self._last:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    async def until(self, method: str) -> None:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(await self.socket.receive_json())

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def press(self, key: str) -> None:
        """A key on the element that has the focus."""
        text = {"Enter": "\r"}.get(key, key)
        for kind in ("keyDown", "keyUp"):
            code = {"Enter": 13}.get(key, 0)
            await self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text, windowsVirtualKeyCode=code
            )

    async def look(self, width: int, *, dark: bool = False) -> None:
        """Sets the width of the window, px, and the scheme of colours that the reader prefers."""
        await self.send("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])

    @property
    def requests(self) -> list[str]:
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    @property
    def complaints(self) -> list[Any]:
        """Uncaught exceptions, whatever the page logs, and what the browser says about it (its policy, for one)."""
        told = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event["params"] for event in self.events if event.get("method") in told]


@asynccontextmanager
async def opened(page: Path, profile: Path) -> AsyncIterator[Tab]:
    """The page in a tab of its own, loaded."""
    assert PROGRAM
    process = await asyncio.create_subprocess_exec(
        PROGRAM, *_QUIET, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        address = await asyncio.wait_for(_address(profile, process), _START_S)
        async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
            tab = Tab(socket)
            target = await tab.send("Target.createTarget", url="about:blank")
            attached = await tab.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
            tab.session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                await tab.send(f"{domain}.enable")
            await tab.send("Page.navigate", url=page.as_uri())
            await asyncio.wait_for(tab.until("Page.loadEventFired"), _START_S)
            yield tab
            tab.session = ""
            await tab.send("Browser.close")
    finally:
        if process.returncode is None:
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _address(profile: Path, process: asyncio.subprocess.Process) -> str:
    file = profile / "DevToolsActivePort"
    while not file.exists() or len(file.read_text("utf-8").split("\n")) < 2:
        assert process.returncode is None, "chromium ended before it was asked anything"
        await asyncio.sleep(0.1)
    port, path = file.read_text("utf-8").split("\n")[:2]
    return f"ws://127.0.0.1:{port}{path}"
