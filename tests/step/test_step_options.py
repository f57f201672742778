"""Bad values of the options of a step: exit code 2 and one line that says which option and what would be right."""

from __future__ import annotations

import pytest

from graphcost.cli.main import main
from graphcost.errors import UsageError
from graphcost.graph import build_graph
from graphcost.models_zoo import build
from graphcost.placing import lookups_of
from graphcost.recipe import OPTIMIZERS, Execution, OptimizerKernels, Precision, Recipe
from graphcost.training import plan_step

# arguments, what the line must say
BAD = [
    ("--optimizer-kernels fusd", "no optimizer implementation named 'fusd'; did you mean 'fused'?"),
    ("--optimizer adma", "no optimizer named 'adma'; did you mean 'adam'?"),
    ("--execution eagr", "no execution named 'eagr'; did you mean 'eager'?"),
    ("--overlap buckted", "no overlap named 'buckted'; did you mean 'bucketed'?"),
    ("--lookups zpif", "--lookups zpif: write all, uniform or zipf:EXPONENT"),
    ("--lookups zipf:", "zipf:EXPONENT"),
    ("--lookups zipf:-1", "exponent over 0"),
    ("--lookups zipf:nan", "exponent over 0"),
    ("--lookups uniform:3", "--lookups uniform:3"),
    ("--buckets dpd", "--buckets dpd: write ddp, horovod, or a size such as 25MiB"),
    ("--buckets 0", "--buckets 0"),
    ("--buckets 25", "a size such as 25MiB"),
    ("--buckets -1MiB", "--buckets -1MiB"),
    ("--buckets infMiB", "--buckets infMiB"),
    ("--sample-bytes 110kB", "--sample-bytes and --storage go together"),
    ("--storage 1GB/s", "--sample-bytes and --storage go together"),
    ("--storage 5 --sample-bytes 1kB", "--storage '5' is not a bandwidth; write it like 25Gb/s"),
    ("--storage 0GB/s --sample-bytes 1kB", "--storage '0GB/s' must be more than zero"),
    ("--storage 1GB/s --sample-bytes 0", "--sample-bytes '0' must be more than zero"),
    ("--storage 1GB/s --sample-bytes -5kB", "--sample-bytes '-5kB' is not a quantity"),
    ("--decode-rate nan", "--decode-rate nan"),
    ("--decode-rate inf", "more than 0 and finite"),
    ("--decode-rate 0", "--decode-rate 0"),
    ("--decode-rate fast", "--decode-rate"),
    ("--data-workers 0", "--data-workers 0: at least one"),
    ("--data-workers 1.5", "--data-workers"),
    ("--accumulate 0", "--accumulate 0: at least one micro-batch"),
    ("--accumulate -1", "--accumulate -1"),
    ("--accumulate 10000000000000000000000", "at most 65536 micro-batches"),
    ("--accumulate two", "--accumulate"),
    ("--freeze fc1.wieght", "--freeze 'fc1.wieght': no parameter of that name; did you mean 'fc1.weight'?"),
    ("--freeze fc9.*", "patterns are the shell's, names such as 'fc1.weight'"),
    ("--freeze fc1.* --freeze=", "--freeze ''"),
    ("--recompute=3", "--recompute"),
    ("--clip-grad=3", "--clip-grad"),
    ("--no-prefetch=3", "--no-prefetch"),
    ("--format trcae", "'trace'"),
    ("--format trace --profile paper", "the paper profile has no timeline; use --profile calibrated"),
    ("--profile paper --buckets horovod", "--buckets: the paper's framework knows no buckets"),
    ("--profile paper --overlap bucketed", "knows no buckets; use none or ideal"),
    ("--profile paper --accumulate 2", "--accumulate: the paper's framework knows no micro-batches"),
    ("--profile paper --decode-rate 9", "the paper's framework knows no input but its copy"),
    ("--profile paper --no-prefetch", "the paper's framework knows no input but its copy"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=[arguments for arguments, _ in BAD])
def test_bad_values(capsys: pytest.CaptureFixture[str], arguments: str, says: str) -> None:
    code = main(["analyze", "zoo:mlp", "--batch", "4", "--quiet", *arguments.split()])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 and err.startswith("graphcost: error: ") and says in err
    assert "Traceback" not in err


def test_good_values_together(capsys: pytest.CaptureFixture[str]) -> None:
    """Every option at once, on one model; several models with a frozen part that one of them lacks."""
    given = (
        "--optimizer lamb --optimizer-kernels for-loop --clip-grad --lookups zipf:1.2 --buckets 4MiB --accumulate 2 "
        "--recompute --freeze fc1.* --execution compiled --overlap bucketed --sample-bytes 110kB --storage 2GB/s "
        "--decode-rate 300 --data-workers 8 --no-prefetch --gpus 8 --batch 4 --exit-zero"
    )
    assert main(["analyze", "zoo:mlp", *given.split()]) == 0
    out = capsys.readouterr().out
    assert "compiled, overlap bucketed" in out and "lamb" in out and "decode" in out
    assert main(["analyze", "zoo:mlp", "zoo:resnet18", *given.split()]) == 2
    out, err = capsys.readouterr()
    assert "mlp" in out and "resnet18" not in out
    assert err.count("error: ") == 1 and "--freeze 'fc1.*'" in err


def test_compare_takes_the_data_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    slow = ["--sample-bytes", "110kB", "--storage", "1MB/s"]
    assert main(["compare", "zoo:mlp", "--batch", "4", "--format", "csv", "--quiet"]) == 0
    fast_out = capsys.readouterr().out
    assert main(["compare", "zoo:mlp", "--batch", "4", "--format", "csv", "--quiet", *slow]) == 0
    assert capsys.readouterr().out != fast_out


@pytest.mark.parametrize("text", ["", "zipf:0", "zipf:100", "zipf:1:2", "All"])
def test_lookups_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="write all, uniform or zipf:EXPONENT"):
        lookups_of(text)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kernels", OptimizerKernels)
def test_every_choice_makes_a_plan(optimizer: str, kernels: OptimizerKernels) -> None:
    graph = build_graph(build("mlp", batch=2))
    for precision in Precision:
        for execution in Execution:
            choices = Recipe(OPTIMIZERS[optimizer], precision, execution, kernels, clip=True, accumulate=2)
            plan = plan_step(graph, choices)
            assert plan.memory.peak_bytes > 0
            assert (plan.updates == ()) == (optimizer == "none")
