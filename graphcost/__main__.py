"""``python -m graphcost``."""

from graphcost.cli.main import run

run()
