"""The command line: exit codes, error lines, and the list of commands."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from graphcost._version import __version__
from graphcost.cli import completing
from graphcost.errors import GraphcostError, message_of
from graphcost.many import GC_THRESHOLDS
from graphcost.registry import did_you_mean

INTERNAL_ERROR = 70
USAGE_ERROR = 2
INTERRUPTED = 130

# command -> module that holds it; a command's module is imported when it is called.
_COMMANDS = {
    "analyze": "Predict a training step and judge its communication share.",
    "count": "FLOPs, MACs, bytes and parameters of the forward pass.",
    "check": "Every model of the project against its budgets and baseline: the CI command.",
    "diff": "What changed between two results or two models.",
    "compare": "Each model under every architecture, ranked.",
    "advise": "The smallest changes that clear a model, and break-even values.",
    "sweep": "A step over values of each resource.",
    "graph": "Export the annotated op graph.",
    "ops": "Operator rules; for a model: counted, free, unknown.",
    "devices": "Devices and clusters, with sources.",
    "zoo": "Models that need no file.",
    "calibrate": "Measure this machine: a device and a cluster file.",
    "fleet": "A table of jobs: the PAI workload study.",
    "validate": "Predictions against measured step times.",
    "schedule": "Cluster schedulers, simulated or on real jobs.",
    "completion": "Completion for bash, zsh or fish.",
}


class _LazyGroup(click.Group):
    """Commands by name, imported on use, with "did you mean"."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"graphcost.cli.{cmd_name}").command
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        named = [CompletionItem(name, help=text) for name, text in _COMMANDS.items() if name.startswith(incomplete)]
        return named or click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in _COMMANDS:
            raise click.UsageError(f"no command named {args[0]!r}{did_you_mean(args[0], _COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=completing.examples(
        "graphcost analyze zoo:resnet50 --arch allreduce --gpus 8",
        "graphcost advise model.onnx --gpus 16 --cluster aws-p3.16xlarge",
        "graphcost check",
    ),
)
@click.version_option(__version__, "-V", "--version", prog_name="graphcost")
def cli() -> None:
    """Graph-level cost analyzer for TensorFlow, PyTorch and ONNX models.

    Exit codes: 0 nothing flagged, 1 a finding, 2 usage, 3 unreadable file, 4 coverage too
    low, 70 internal error.
    """


def run() -> None:
    """Entry point of the ``graphcost`` script."""
    gc.set_threshold(*GC_THRESHOLDS)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's own log lines are not ours to print
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code and never raises."""
    debug = "--debug" in arguments
    try:
        outcome = cli.main(list(arguments), prog_name="graphcost", standalone_mode=False)
        code = outcome if isinstance(outcome, int) else 0
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone (`| head`): not an error, and nothing may be printed any more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return USAGE_ERROR
    except click.ClickException as error:
        return _report(_usage_message(error), error, debug, USAGE_ERROR)
    except GraphcostError as error:
        return _report(str(error), error, debug, error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # a crash must never look like a finding
        return _report(message_of(error), error, debug, INTERNAL_ERROR)
    return code


def _usage_message(error: click.ClickException) -> str:
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{text} (try '{context.command_path} --help')" if context is not None else text


def _report(message: str, error: BaseException, debug: bool, code: int) -> int:
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    line = " ".join(message.split())
    print(f"graphcost: error: {line}", file=sys.stderr)
    return code
