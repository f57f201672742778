"""Runs the steps of a composite action as GitHub's runner does: expressions, environment files, bash's options."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")
_NAME = re.compile(r"'[^']*'|[a-z_]+(?:\.[\w-]+)+")


@dataclass
class Runner:
    """A job's state. ``github``: the context by dotted name; ``used``: (action, inputs) of steps that are actions."""

    action: Path
    workspace: Path
    temporary: Path
    github: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    used: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    output: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""

    def run(self, inputs: Mapping[str, str], *, without: tuple[str, ...] = ()) -> int:
        """Every step in order until one fails; the failing one's exit code, else 0."""
        declared = yaml.safe_load(self.action.read_text("utf-8"))
        unknown = set(inputs) - set(declared["inputs"])
        assert not unknown, f"no such inputs: {unknown}"
        self._values = {f"github.{name}": value for name, value in self.github.items()}
        for name, one in declared["inputs"].items():
            self._values[f"inputs.{name}"] = inputs.get(name, self._text(str(one["default"])))
        code = 0
        for step in declared["runs"]["steps"]:
            if step["name"] in without or not self._holds(step.get("if", "'yes' == 'yes'")):
                continue
            if "uses" in step:
                given = {name: self._text(value) for name, value in step["with"].items()}
                self.used.append((step["uses"], given))
                continue
            code = self._script(step)
            if code:
                break
        self.outputs = {name: self._text(one["value"]) for name, one in declared["outputs"].items()}
        return code

    def _script(self, step: dict[str, Any]) -> int:
        assert step["shell"] == "bash" and "${{" not in step["run"], "an input inside a script is an injection"
        script = self.temporary / "step.sh"
        script.write_text(step["run"], "utf-8")
        files = {name: self.temporary / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("", "utf-8")
        environment = {
            **os.environ,
            **self.environment,
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_REPOSITORY": self.github["repository"],
            **{name: str(file) for name, file in files.items()},
            **{name: self._text(value) for name, value in step.get("env", {}).items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.workspace / self._text(step.get("working-directory", ".")),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.output[step["name"]] = done.stdout + done.stderr
        self.summary += files["GITHUB_STEP_SUMMARY"].read_text("utf-8")
        for line in files["GITHUB_OUTPUT"].read_text("utf-8").splitlines():
            name, _, value = line.partition("=")
            self._values[f"steps.{step['id']}.outputs.{name}"] = value
        return done.returncode

    def _text(self, text: str) -> str:
        return _EXPRESSION.sub(lambda match: self._value(match[1]), text)

    def _value(self, name: str) -> str:
        return self._values.get(name, "")

    def _holds(self, condition: str) -> bool:
        """The operators that the action uses: == != < && ||, on strings and whole numbers."""
        compared = _NAME.sub(lambda m: repr(m[0][1:-1] if m[0][0] == "'" else self._value(m[0])), condition)
        compared = re.sub(r"'(\d*)' < (\d+)", lambda m: str(int(m[1] or 0) < int(m[2])), compared)
        compared = compared.replace("&&", "and").replace("||", "or")
        assert re.fullmatch(r"(?:'[^']*'|True|False|and|or|==|!=|[() ])+", compared), compared
        return bool(eval(compared))


@contextmanager
def github_api(*, may_write: bool = True) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a server with GitHub's calls for comments of an issue, and its comments."""
    comments: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _answer(self, status: int, data: Any) -> None:
            body = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _sent(self) -> dict[str, Any]:
            found: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            return found

        def do_GET(self) -> None:
            where = urlsplit(self.path)
            assert where.path == "/repos/owner/project/issues/7/comments"
            query = parse_qs(where.query)
            size, page = int(query["per_page"][0]), int(query["page"][0])
            self._answer(200, comments[(page - 1) * size : page * size])

        def do_POST(self) -> None:
            sent = self._sent()
            if not may_write or self.headers["Authorization"] != "Bearer secret":
                self._answer(403, {"message": "Resource not accessible by integration"})
                return
            comments.append({"id": 1000 + len(comments), **sent})
            self._answer(201, comments[-1])

        def do_PATCH(self) -> None:
            number = int(self.path.removeprefix("/repos/owner/project/issues/comments/"))
            found = next(one for one in comments if one["id"] == number)
            found.update(self._sent())
            self._answer(200, found)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", comments
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
