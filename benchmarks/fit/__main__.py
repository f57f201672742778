"""``python -m benchmarks.fit WHAT ...``: one module of this folder per WHAT."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

KNOWN = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))

if len(sys.argv) < 2 or sys.argv[1] not in KNOWN:
    sys.exit(f"usage: python -m benchmarks.fit {{{','.join(KNOWN)}}} ...")
sys.exit(import_module(f"benchmarks.fit.{sys.argv[1]}").main(sys.argv[2:]))
