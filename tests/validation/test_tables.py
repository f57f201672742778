"""Measured tables: what is read, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from validation.helpers_tables import write_table

from graphcost.errors import ModelFileError
from graphcost.validation import read_table


def test_a_row_is_read_with_its_units(tmp_path: Path) -> None:
    path = write_table(tmp_path / "own.csv", [{"step_time_ms": 455.5, "comm_time_ms": 13.5, "grad_accum": ""}])
    (row,) = read_table(path)
    assert (row.table, row.line, row.step_s, row.comm_s, row.accumulate) == ("own", 2, 0.4555, 0.0135, 1)
    assert (row.batch, row.gpus, row.servers, row.spread, row.layout) == (32, 1, 1, False, "nchw")


def test_what_is_not_given_is_none_and_not_zero(tmp_path: Path) -> None:
    (row,) = read_table(write_table(tmp_path / "own.csv", [{"step_time_ms": "", "batch_per_gpu": "", "n_nodes": ""}]))
    assert (row.step_s, row.batch, row.servers, row.comm_s) == (None, None, None, None)


def test_several_servers_of_unknown_number(tmp_path: Path) -> None:
    (row,) = read_table(write_table(tmp_path / "own.csv", [{"n_nodes": ">1"}]))
    assert (row.servers, row.spread) == (None, True)


def test_a_timm_table_states_the_rest_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "timm_train_amp_nhwc_pt112_rtx3090.csv"
    path.write_text(
        "model,train_samples_per_sec,train_step_time,train_batch_size,train_img_size,param_count\n"
        "resnet50,1218.0,209.5,256,224,25.56\n"
    )
    (row,) = read_table(path)
    assert (row.model_id, row.framework, row.precision) == ("resnet50", "PyTorch 1.12 (timm)", "AMP")
    assert (row.layout, row.gpu, row.batch, row.step_s, row.task_input) == (
        "channels-last", "rtx3090", 256, 0.2095, "224x224",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("model_id,gpu\nresnet50,T4\n", "no column batch_per_gpu, step_time_ms"),
        ("model_id,gpu,step_time_ms,batch_per_gpu\nresnet50,T4,fast,32\n", "line 2: step_time_ms is 'fast'"),
        ("model_id,gpu,step_time_ms,batch_per_gpu\nresnet50,T4,-3,32\n", "line 2: step_time_ms is '-3'"),
        ("model_id,gpu,step_time_ms,batch_per_gpu\nresnet50,T4,nan,32\n", "line 2: step_time_ms is 'nan'"),
        ("model_id,gpu,step_time_ms,batch_per_gpu,n_gpus\nresnet50,T4,3,32,1.5\n", "line 2: n_gpus is '1.5'"),
        ("model_id,gpu,step_time_ms,batch_per_gpu\nresnet50,T4,3\n", "line 2: another number of cells"),
        ("model_id,gpu,step_time_ms,batch_per_gpu\nresnet50,T4,3,4,5\n", "line 2: another number of cells"),
        ("model,train_step_time\nresnet50,3\n", "a timm table keeps timm's name"),
        ("", "no column"),
    ],
)
def test_what_cannot_be_read_names_file_and_line(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ModelFileError) as error:
        read_table(path)
    assert complaint in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xff\xfe\x00model_id")
    with pytest.raises(ModelFileError, match="UTF-8"):
        read_table(path)
    with pytest.raises(ModelFileError, match="No such file"):
        read_table(tmp_path / "missing.csv")
