"""``graphcost calibrate``: measure this machine, write its device and cluster file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from graphcost.cli.completing import examples
from graphcost.cli.options import shared_flags
from graphcost.cli.output import say, write_result
from graphcost.errors import UsageError

LIMIT_S = 300.0
"""No pass begins that would end later, the first apart."""


@click.command(
    "calibrate",
    epilog=examples(
        "graphcost calibrate --quick",
        "graphcost calibrate --quick --workers 2 --name laptop --output machines",
    ),
)
@click.option(
    "--workers", type=click.IntRange(2), metavar="N", help="Also N processes at once, and their collectives."
)
@click.option("--backend", type=click.Choice(["gloo", "nccl"]), help="Default nccl on GPUs, gloo else.")
@click.option(
    "--device", "where", default=None, metavar="cpu|cuda", help="Default cuda where there is one, else cpu."
)
@click.option("--output", default=".", metavar="FOLDER", show_default=True, help="Where the files go.")
@click.option("--name", default="this-machine", show_default=True, help="Name of the files.")
@click.option("--quick", is_flag=True, help="One pass in place of three, and more noise.")
@shared_flags
def command(
    workers: int | None, backend: str | None, where: str | None, output: str, name: str, quick: bool, quiet: bool,
    debug: bool,
) -> int:  # fmt: skip
    """Time single layers, optimizer steps and collectives on this machine (three passes, up to five minutes).

    Writes NAME.toml (for --device) and, with --workers, NAME-xN.toml (for --cluster). CPUs are
    measured with one thread a worker. Needs torch and tomli-w (graphcost[calibrate]).
    """
    torch = _torch()
    place = where or ("cuda" if torch.cuda.is_available() else "cpu")
    if place.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError("--device cuda: torch sees no GPU here; leave it out to measure the CPU")
    if place != "cpu" and not place.startswith("cuda"):
        raise UsageError(f"--device {place}: cpu or cuda")
    if workers is not None and place.startswith("cuda") and workers > torch.cuda.device_count():
        raise UsageError(f"--workers {workers}: torch sees {torch.cuda.device_count()} GPUs")
    folder = Path(output)
    if not folder.is_dir():
        raise UsageError(f"--output {output}: no such folder")
    from graphcost.calibration.files import toml_text
    from graphcost.calibration.measuring import Effort
    from graphcost.calibration.passes import Pass, one_pass, tables

    effort = Effort(passes=1) if quick else Effort()
    chosen = backend or ("nccl" if place.startswith("cuda") else "gloo")
    found: list[Pass] = []
    begun = time.monotonic()
    for number in range(1, effort.passes + 1):
        spent_s = time.monotonic() - begun
        if found and spent_s * number / len(found) > LIMIT_S:  # another pass as long as those before
            say(f"{len(found)} passes took {spent_s:.0f} s: no further one", quiet=quiet)
            break
        beside = f", then with {workers} workers over {chosen}" if workers is not None else ""
        say(f"pass {number} of {effort.passes}: timing layers on {place}{beside}", quiet=quiet)
        found.append(one_pass(effort, place, workers, chosen))
    device, cluster = tables(found, place)
    written = [folder / f"{name}.toml"]
    write_result(toml_text(device), str(written[0]))
    if cluster is not None:
        written.append(folder / f"{name}-x{workers}.toml")
        write_result(toml_text(cluster), str(written[1]))
    for path, option in zip(written, ("--device", "--cluster"), strict=False):
        click.echo(f"{option} {path}")
    return 0


def _torch() -> Any:
    try:
        import tomli_w  # noqa: F401
        import torch
    except ImportError as error:
        raise UsageError(f"calibrate needs {error.name}: pip install 'graphcost[calibrate]'") from None
    return torch
