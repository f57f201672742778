"""Put a report into a pull request as one comment that is kept up to date: what action.yml runs.

``python comment.py report.md``, with ``GITHUB_API_URL``, ``GITHUB_REPOSITORY``, ``GITHUB_TOKEN`` and ``PULL_REQUEST``
in the environment. The report's first line is a marker, by which the comment is found again. A report of a heading
alone says that nothing changed: it updates a comment, and makes none. Standard library only; a token that may not
comment (a fork's pull request) is a warning, not a failure.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PER_PAGE = 100
MOST_CHARACTERS = 65_536  # GitHub's limit of a comment
CUT = "\n\n(cut: the report is longer than a comment may be; the job's summary has all of it)\n"


def main(report: str) -> None:
    """Create, update or leave the comment."""
    body = Path(report).read_text("utf-8")
    if len(body) > MOST_CHARACTERS:
        body = body[: MOST_CHARACTERS - len(CUT)] + CUT
    marker = body.splitlines()[0]
    comments = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{os.environ['PULL_REQUEST']}/comments"
    try:
        found = next((one for one in _pages(comments) if one["body"].startswith(marker)), None)
        if found is not None:
            _call("PATCH", f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/comments/{found['id']}", {"body": body})
            print(f"updated comment {found['id']}")
        elif _has_news(body):
            print(f"made comment {_call('POST', comments, {'body': body})['id']}")
        else:
            print("nothing changed: no comment")
    except urllib.error.HTTPError as error:
        if error.code not in (401, 403, 404):
            raise
        print(f"::warning::graphcost could not comment ({error}); the job needs `permissions: pull-requests: write`")


def _has_news(body: str) -> bool:
    return sum(bool(line.strip()) for line in body.splitlines()) > 2


def _pages(path: str) -> Iterator[dict[str, Any]]:
    page, found = 1, None
    while found is None or len(found) == PER_PAGE:
        found = _call("GET", f"{path}?per_page={PER_PAGE}&page={page}")
        yield from found
        page += 1


def _call(method: str, path: str, data: dict[str, str] | None = None) -> Any:
    request = urllib.request.Request(
        os.environ["GITHUB_API_URL"] + path,
        method=method,
        data=None if data is None else json.dumps(data).encode(),
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main(sys.argv[1])
