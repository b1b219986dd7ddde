"""A headless Chromium, driven by its own driver as a person would use it: keys, clicks, reloads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium on this machine")

from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

PROGRAM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--mute-audio",
)
_WAIT_S = 30


class Person:
    """Somebody at the page, with cookies of their own."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver = driver
        self.address = address

    def enter(self, name: str) -> None:
        self.driver.get(self.address)
        field = self.one("#name")
        field.clear()
        field.send_keys(name)
        self.leave(lambda: self.one("button.main").click())

    def one(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        return [found.text for found in self.driver.find_elements(By.CSS_SELECTOR, selector)]

    def press(self, key: str) -> None:
        """A key that leads to another page."""
        self.leave(lambda: self.one("body").send_keys(key))

    def leave(self, action: Any) -> None:
        """Does it, and waits for the page that comes of it."""
        self.run("window.left = true")
        action()
        WebDriverWait(self.driver, _WAIT_S, poll_frequency=0.05).until(
            lambda driver: driver.execute_script("return !window.left && document.readyState === 'complete'")
        )

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    @property
    def pair(self) -> str:
        """The id in the address."""
        return str(self.driver.current_url).rpartition("/pair/")[2]

    def complaints(self) -> list[str]:
        """What the browser says against the page: refused scripts, missing files, errors."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def look(self, width: int, *, dark: bool = False, height: int = 900) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


@contextmanager
def person(address: str, profile: Path) -> Iterator[Person]:
    options = webdriver.ChromeOptions()
    options.binary_location = PROGRAM
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Person(driver, address)
    finally:
        driver.quit()
