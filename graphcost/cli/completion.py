"""``graphcost completion``: the script that makes a shell complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from graphcost.cli.completing import examples
from graphcost.cli.output import write_result

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog=examples(
        "graphcost completion bash >> ~/.bashrc",
        "graphcost completion zsh >> ~/.zshrc",
        "graphcost completion fish > ~/.config/fish/completions/graphcost.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, models of the zoo, clusters and devices."""
    found = get_completion_class(shell)
    assert found is not None
    write_result(found(context.find_root().command, {}, "graphcost", "_GRAPHCOST_COMPLETE").source())
