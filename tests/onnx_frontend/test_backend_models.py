"""onnx's own backend tests: over 1 800 models of one operator, with the tensors they give.

Every model loads, or is refused with a message. Fed the test's inputs, every output has
the shape that the test's output has. A model and its twin, in which the operator is
expanded into its definition, cost the same contractions.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from graphcost.errors import GraphcostError, MissingSizeError
from graphcost.frontends.onnx.tensors import EVALUATED
from graphcost.ops import find_rule, forward_cost

from .build import Counted, count

pytestmark = pytest.mark.slow

GIVEN_NUMEL = 64
"""Inputs up to this many elements are given by value: they may be sizes."""

# Models that stop with a request, though their test feeds every tensor.
REFUSED = {
    r"test_range_bfloat16_type_positive_delta_expanded": "its trip count is computed in bfloat16, which numpy lacks",
    r"test_sequence_map_\w+_expanded": "loops over the length of an input sequence, which no file states",
}

# Outputs whose shape depends on what nobody computes here; it stays open.
OPEN = {
    r"test_image_decoder_\w+": "the picture's size stands in the encoded bytes",
    r"test_string_split_\w+": "as wide as the longest split",
    r"test_strnormalizer_\w+": "without the stop words",
    r"test_range_bfloat16_type_positive_delta": "its length is computed in bfloat16, which numpy lacks",
}

# Outputs whose size depends on the data: the largest they can be.
UPPER = {
    r"test_nonmaxsuppression_\w+": "overlapping boxes are dropped",
    r"test_unique_bfloat16_\w+": "repeated numbers are dropped; bfloat16 is not computed",
}

# Operators without a rule: strings and pictures, classical models, preview domains.
UNCOUNTED = re.compile(
    r"(ai\.onnx\.(ml|preview|preview\.training)\..*|ImageDecoder|RegexFullMatch|String\w+|TfIdfVectorizer|SequenceMap)"
)

# Operators without a rule, whose twins have costs.
TWINS_APART = {r"test_flexattention\w*": "FlexAttention is a preview operator and reported as unknown"}


@dataclass(frozen=True)
class Case:
    """A model with the first data set of its test."""

    name: str
    model: ModelProto
    inputs: Sequence[Any]
    outputs: Sequence[Any]

    @property
    def fed(self) -> dict[str, np.ndarray[Any, Any]]:
        """The tensors among the inputs, by name."""
        arrays = zip(self.model.graph.input, map(_array, self.inputs), strict=False)
        return {info.name: array for info, array in arrays if array is not None}

    @property
    def values(self) -> dict[str, tuple[Any, ...]]:
        """Inputs small enough to be given by value."""
        return {
            name: tuple(array.reshape(-1).tolist())
            for name, array in self.fed.items()
            if str(array.dtype) in EVALUATED and 0 < array.size <= GIVEN_NUMEL
        }

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: array.shape for name, array in self.fed.items()}

    def without_output_shapes(self) -> ModelProto:
        """The model without the shapes it declares of its outputs, which could be handed back."""
        stripped = ModelProto()
        stripped.ParseFromString(self.model.SerializeToString())
        for info in stripped.graph.output:
            if info.type.HasField("tensor_type"):
                info.type.tensor_type.ClearField("shape")
        return stripped


def _array(given: Any) -> np.ndarray[Any, Any] | None:
    return np.asarray(given) if isinstance(given, (np.ndarray, np.generic)) else None


def _cases() -> Iterator[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators divide by zero, and say so
        from onnx.backend.test.case.node import collect_testcases

        for case in collect_testcases(None):
            if case.model is not None and case.data_sets:
                inputs, outputs = case.data_sets[0]
                yield Case(case.name, case.model, inputs, outputs)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return list(_cases())


@pytest.fixture(scope="module")
def counted(cases: list[Case]) -> dict[str, Counted]:
    """Every model that loads without being told anything."""
    found = {}
    for case in cases:
        try:
            found[case.name] = count(case.model)
        except GraphcostError as error:
            assert "\n" not in str(error), case.name
            assert len(str(error)) > 20, case.name
    return found


def _listed(table: Mapping[str, str], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in table)


def test_there_are_many(cases: list[Case]) -> None:
    assert len(cases) > 1500


def test_every_model_loads_or_is_refused(cases: list[Case], counted: dict[str, Counted]) -> None:
    assert len(counted) > 0.99 * len(cases)


def test_operators_without_a_rule_are_listed(counted: dict[str, Counted]) -> None:
    for name, found in counted.items():
        for node in found.model.nodes:
            assert find_rule(node) is not None or UNCOUNTED.fullmatch(node.kind), (name, node.kind)


def test_shapes_are_those_of_the_test_data(cases: list[Case]) -> None:
    """With every tensor given, every output has its shape, and every operator with a rule a cost."""
    compared = 0
    for case in cases:
        try:
            found = count(case.without_output_shapes(), input_values=case.values, input_shapes=case.shapes)
        except GraphcostError as error:
            assert isinstance(error, MissingSizeError), (case.name, error)
            assert _listed(REFUSED, case.name), (case.name, error)
            continue
        assert not _listed(REFUSED, case.name), case.name
        uncosted = [node.name for node in found.model.nodes if find_rule(node) and forward_cost(node) is None]
        assert not uncosted or _listed(OPEN, case.name), (case.name, uncosted)
        shapes = {
            name: None if spec is None else spec.shape
            for node in found.model.nodes
            for name, spec in zip(node.output_names, node.outputs, strict=True)
        }
        for info, given in zip(case.model.graph.output, map(_array, case.outputs), strict=True):
            if given is None or info.name not in shapes:  # a sequence; a constant or an input passed through
                continue
            shape = shapes[info.name]
            if shape is None:
                assert _listed(OPEN, case.name), (case.name, info.name)
            elif _listed(UPPER, case.name):
                assert len(shape) == given.ndim, (case.name, info.name)
                assert all(most >= size for most, size in zip(shape, given.shape, strict=True)), case.name
            else:
                assert shape == given.shape, (case.name, info.name)
            compared += 1
    assert compared > 1900


def test_expanded_twins_agree(counted: dict[str, Counted]) -> None:
    compared = 0
    for name, found in counted.items():
        whole = counted.get(name.partition("_expanded")[0])
        if "_expanded" not in name or whole is None:
            continue
        if _listed(TWINS_APART, name):
            assert whole.unknown, name
            continue
        assert found.flops == whole.flops, name
        compared += whole.flops > 0
    assert compared > 50
