"""The page around the content: one file with its styles, scripts and data inside, and no way to the network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from graphcost._version import __version__
from graphcost.report import palette
from graphcost.report.page.markup import Html, element

_SCRIPTS = ("echarts.common.min.js", "base.js", "charts.js", "tables.js", "modules.js")
_LAST = "page.js"
_FROM_A_GRAPH = "Predicted from the graph; nothing was run."


def document(
    title: str, body: Html, data: Mapping[str, Any], *, scripts: Sequence[str] = (), footer: str = _FROM_A_GRAPH
) -> str:
    """A whole page. ``data``: what its script draws; ``scripts``: files with further charts.

    Scripts run by their hash only and nothing may be fetched, so that a name that broke out
    of its place would still be dead text.
    """
    texts = [_asset(name) for name in (*_SCRIPTS, *scripts, _LAST)]
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in texts)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}"
    inks = {
        name: {key: [ink.light, ink.dark, ink.hatch] for key, ink in table.items()}
        for name, table in (("parts", palette.PARTS), ("memory", palette.MEMORY))
    }
    whole = {**data, "inks": {**inks, "series": [[ink.light, ink.dark] for ink in palette.SERIES]}}
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="graphcost {__version__}">\n'
        f"{element('title', title)}\n<style>\n{_asset('page.css')}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#content">Skip to the content</a>\n'
        f'<header class="top"><h1>{element("span", title)}</h1>'
        '<button type="button" id="theme" hidden></button></header>\n'
        f'<main id="content">{body}</main>\n'
        f"<footer>graphcost {__version__}. {footer} "
        "Charts: Apache ECharts (Apache-2.0).</footer>\n"
        f'<script type="application/json" id="data">{embedded(whole)}</script>\n'
        + "".join(f"<script>{script}</script>\n" for script in texts)
        + "</body>\n</html>\n"
    )


def embedded(data: Any) -> str:
    """JSON that cannot end its script element, open a comment, or hold what JavaScript takes for a line's end."""
    made = json.dumps(data, allow_nan=False, separators=(",", ":"))  # ASCII: U+2028 is written as an escape
    return made.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _asset(name: str) -> str:
    return files("graphcost.report.page").joinpath("assets", name).read_text("utf-8")


@cache
def _digest(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()
