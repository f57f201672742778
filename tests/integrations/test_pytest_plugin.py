"""The pytest plugin in runs of pytest of its own, on real models."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from helpers import RESNET50, VGG19

from graphcost.errors import UnknownNameError, UsageError
from graphcost.testing import CommunicationBoundWarning, assert_not_communication_bound, set_project_defaults

SLOW = {"gpus": 16, "cluster": "aws-p3.16xlarge", "batch": 32}
"""A network that VGG-19 waits for most of its step: 85.8 % (70.3 % to 92.2 %)."""

HEAVY = ("numpy", "onnx", "onnx_ir", "networkx", "click", "rich", "joblib", "torch", "pandas")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose pytest loads this plugin alone."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.plugins = ["graphcost.pytest_plugin"]
    return pytester


INI = "[pytest]\ngraphcost_gpus = 16\ngraphcost_cluster = aws-p3.16xlarge\n"


def test_files_as_fixture_and_imported(project: pytest.Pytester) -> None:
    project.makeini(INI)
    project.makepyfile(f"""
        from graphcost.testing import assert_not_communication_bound as imported

        def test_clear(assert_not_communication_bound):
            result = assert_not_communication_bound({str(RESNET50)!r}, gpus=8, cluster="dgx-a100", batch=32)
            assert result.placement.cluster == "dgx-a100" and 0 < result.step.comm_share < 0.5

        def test_bound(assert_not_communication_bound):
            assert_not_communication_bound({str(VGG19)!r}, batch=32)

        def test_imported_sees_the_ini():
            imported({str(VGG19)!r}, batch=32, advice=False)

        def test_doubtful(assert_not_communication_bound):
            assert_not_communication_bound({str(VGG19)!r}, batch=32, max_comm_share="80%")

        def test_doubt_fails(assert_not_communication_bound):
            assert_not_communication_bound({str(VGG19)!r}, batch=32, max_comm_share=0.8, on_doubt="fail")

        def test_doubt_passes(assert_not_communication_bound):
            assert_not_communication_bound({str(VGG19)!r}, batch=32, max_comm_share=0.8, on_doubt="pass")
        """)
    done = project.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(passed=3, failed=3, warnings=1)
    done.stdout.fnmatch_lines([
        "E * AssertionError: light_vgg19 is communication-bound",
        "E *light_vgg19: allreduce, 16 GPUs on 2 servers of aws-p3.16xlarge",
        "E *FLAGGED: communication is 8*.* % (*.* % to *.* %) of the step, limit 50.0 %",
        "E *largest tensors fc6_w_0*",
        "E *would clear it: *(communication *.* %): --*",
    ])  # fmt: skip
    done.stdout.fnmatch_lines(["*CommunicationBoundWarning: light_vgg19 may be communication-bound*"])
    shown = done.stdout.str()
    assert "graphcost/testing.py" not in shown, "the failure points into the library, not at the test"
    # Where the variable CI is set, pytest's summary repeats each message: count the lines of the failure.
    advised = [line for line in shown.splitlines() if line.startswith("E ") and "would clear it:" in line]
    assert len(advised) == 2  # not where advice=False
    assert "TOO CLOSE: communication is" in shown


def test_a_torch_module(project: pytest.Pytester) -> None:
    pytest.importorskip("torch")
    project.makeini(INI + "graphcost_max_comm_share = 40%\ngraphcost_arch = allreduce\n")
    project.makepyfile("""
        import torch
        from torch import nn

        def wide():
            return nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 4096), nn.ReLU(), nn.Linear(4096, 1000))

        def deep():
            layers = [nn.Conv2d(3, 64, 3, padding=1), nn.ReLU()]
            for _ in range(8):
                layers += [nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()]
            return nn.Sequential(*layers)

        def test_wide(assert_not_communication_bound):
            assert_not_communication_bound(wide(), (torch.zeros(32, 3, 64, 64),))

        def test_deep(assert_not_communication_bound):
            result = assert_not_communication_bound(deep(), (torch.zeros(32, 3, 64, 64),))
            assert result.step.max_comm_share == 0.4
        """)
    done = project.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["E *Sequential is communication-bound", "E *limit 40.0 %", "E *largest tensors 1.weight*"]
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("graphcost_gpus = many", "graphcost_gpus = many: not a whole number"),
        ("graphcost_max_comm_share = 140%", "graphcost_max_comm_share = '140%' is not a share"),
        ("graphcost_on_doubt = panic", "graphcost_on_doubt = panic: one of fail, warn, pass"),
    ],
)
def test_a_wrong_ini_value_ends_the_run(project: pytest.Pytester, line: str, says: str) -> None:
    project.makeini(f"[pytest]\n{line}\n")
    done = project.runpytest_subprocess()
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"ERROR: *{says}*"])


def test_a_run_without_assertions_imports_nothing_heavy(project: pytest.Pytester) -> None:
    project.makeini(INI + "graphcost_max_comm_share = 40%\n")
    project.makepyfile(f"""
        import sys

        def test_modules():
            assert "graphcost.pytest_plugin" in sys.modules
            assert [name for name in {HEAVY!r} if name in sys.modules] == []
        """)
    project.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_importing_the_plugin_costs_milliseconds() -> None:
    code = (
        "import pytest, time; t = time.perf_counter(); import graphcost.pytest_plugin; print(time.perf_counter() - t)"
    )
    best = min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )
    assert best < 0.1


def test_the_entry_point_names_the_plugin() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    (module,) = project["entry-points"]["pytest11"].values()
    assert import_module(module).pytest_addoption


@pytest.fixture
def no_defaults() -> None:
    """As in a process without the plugin's ini file."""
    set_project_defaults({})


@pytest.mark.usefixtures("no_defaults")
def test_what_cannot_fail_or_is_wrong_is_said() -> None:
    with pytest.raises(UsageError, match="light_vgg19 on one GPU communicates nothing, so the test could not fail"):
        assert_not_communication_bound(str(VGG19))
    with pytest.raises(UsageError, match="no option 'gpu'; did you mean 'gpus'"):
        assert_not_communication_bound(str(VGG19), gpu=8)
    with pytest.raises(UsageError, match="on_doubt='wrn': one of fail, warn, pass; did you mean 'warn'"):
        assert_not_communication_bound(str(VGG19), on_doubt="wrn", gpus=8)
    with pytest.raises(UnknownNameError, match="did you mean 'dgx-a100'"):
        assert_not_communication_bound(str(VGG19), cluster="dgx-a10", gpus=8)


@pytest.mark.usefixtures("no_defaults")
def test_the_warning_is_at_the_callers_line() -> None:
    with pytest.warns(CommunicationBoundWarning) as caught:
        assert_not_communication_bound(str(VGG19), max_comm_share="80%", **SLOW)
    assert [Path(one.filename).name for one in caught] == [Path(__file__).name]


@pytest.mark.usefixtures("no_defaults")
def test_nothing_helps_is_said() -> None:
    with pytest.raises(AssertionError, match="no single change clears it"):
        assert_not_communication_bound(str(VGG19), max_comm_share="0.01%", **SLOW)
