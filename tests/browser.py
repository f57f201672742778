"""The system's Chromium without a screen, for tests of pages."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def chromium() -> str | None:
    """The browser: $CHROMIUM, else the system's."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    return found if found and Path(found).exists() else None


def missing(*packages: str) -> str:
    """What a test with a browser needs and is not here; empty where all is."""
    absent = [name for name in ("playwright", *packages) if find_spec(name) is None]
    return ", ".join([*absent, *([] if chromium() else ["chromium"])])
