"""The cell of the guide in a real Jupyter kernel: what it shows is the result's own HTML."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]


class Tags(HTMLParser):
    """Names and texts of a piece of HTML; a tag that is not closed in order fails."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(value and "://" in value for _, value in attrs)
        self.names.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the client's and the kernel's own
def test_the_cell_shows_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "start.md").read_text("utf-8")
    cell = re.search(r"<!-- file: notebook_cell.py -->\n```python\n(.*?)```", text, re.DOTALL)
    assert cell
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell[1])])
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={})
    client.execute(cwd=str(tmp_path))
    (shown,) = [one for one in notebook.cells[0].outputs if one.output_type == "execute_result"]
    tags = Tags()
    tags.feed(shown.data["text/html"])
    assert tags.open == [] and not {"script", "link", "img", "iframe"} & set(tags.names)
    words = " ".join(tags.texts)
    assert "Sequential" in words and "of the step, limit 50.0 %" in words and "Conv" in words
    assert len(shown.data["text/html"]) < 8_000
