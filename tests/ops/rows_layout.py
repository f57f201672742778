from .build import MS, Row, back, boolean, i32, i64, op, u8

COPIES = "Transpose ReverseSequence Trilu DepthToSpace SpaceToDepth"
FILLS = "ConstantOfShape EyeLike Range RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
VIEWS = (
    "Reshape Flatten Squeeze Unsqueeze Identity BitCast Shape Size Constant Optional OptionalGetElement "
    "OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert "
    "SequenceLength"
)
CONCAT = op("Concat", [(2, 3), (4, 3)], (6, 3))
SPLIT = op("Split", [(6, 3)], [(2, 3), (4, 3)])
GATHER = op("Gather", [(1000, 8), i64(2, 5)], (2, 5, 8))

ROWS = {
    **{name: Row(op(name, [(4, 5)], (4, 5)), 0, 0, 0, 0) for name in VIEWS.split()},
    "ExpandDims": Row(op("ExpandDims", [(4, 5), i32()], (4, 1, 5), None, MS), 0, 0, 0, 0),
    **{name: Row(op(name, [(4, 5)], (4, 5)), 0, 0, 80, 80) for name in COPIES.split()},
    **{name: Row(op(name, [i64(2)], (4, 5)), 0, 0, 0, 80) for name in FILLS.split()},
    "Range-ms": Row(op("Range", [(), ()], (20,), None, MS), 0, 0, 0, 80),
    "Trilu-ms": Row(op("Trilu", [(4, 5)], (4, 5), None, MS), 0, 0, 80, 80),
    "Concat": Row(CONCAT, 0, 0, 72, 72),
    "QLinearConcat": Row(
        op("QLinearConcat", [(), u8(), u8(2, 3), (), u8(), u8(4, 3), (), u8()], u8(6, 3), None, MS),
        0,
        18,
        18 + 15,
        18,
    ),
    "Split": Row(SPLIT, 0, 0, 72, 72),
    # 6 of 20 elements and two bounds of 2
    "Slice": Row(op("Slice", [(4, 5), i64(2), i64(2)], (2, 3)), 0, 0, 24 + 32, 24),
    "Pad": Row(op("Pad", [(4, 5), i64(4)], (6, 7)), 0, 0, 80 + 32, 168),
    "Pad-ms": Row(op("Pad", [(4, 5), i64(4)], (6, 7), None, MS), 0, 0, 112, 168),
    "CenterCropPad": Row(op("CenterCropPad", [(4, 5), i64(2)], (2, 9)), 0, 0, 72 + 16, 72),
    "Compress": Row(op("Compress", [(4, 5), boolean(4)], (2, 5)), 0, 0, 40 + 4, 40),
    "Unique": Row(op("Unique", [(20,)], (12,)), 0, 0, 80, 48),
    "Unique-ms": Row(op("Unique", [(20,)], (12,), None, MS), 0, 0, 80, 48),
    "Expand": Row(op("Expand", [(1, 5), i64(2)], (4, 5)), 0, 0, 20 + 16, 80),
    "Tile": Row(op("Tile", [(1, 5), i64(2)], (4, 5)), 0, 0, 36, 80),
    "Resize": Row(op("Resize", [(1, 1, 4, 4), None, (4,)], (1, 1, 8, 8)), 0, 0, 80, 256),
    "Upsample": Row(op("Upsample", [(1, 1, 4, 4), (4,)], (1, 1, 8, 8)), 0, 0, 80, 256),
    "GridSample": Row(op("GridSample", [(1, 3, 4, 4), (1, 2, 2, 2)], (1, 3, 2, 2)), 0, 0, 4 * 56, 48),
    "GridSample-ms": Row(op("GridSample", [(1, 3, 4, 4), (1, 2, 2, 2)], (1, 3, 2, 2), None, MS), 0, 0, 224, 48),
    "AffineGrid": Row(op("AffineGrid", [(1, 2, 3), i64(4)], (1, 4, 4, 2)), 0, 0, 24 + 32, 128),
    "SplitToSequence": Row(op("SplitToSequence", [(6, 3)], [None]), 0, 0, 72, 72),
    "ConcatFromSequence": Row(op("ConcatFromSequence", [None], (6, 3)), 0, 0, 72, 72),
    "Bernoulli": Row(op("Bernoulli", [(4, 5)], (4, 5)), 0, 0, 80, 80),
    "Multinomial": Row(op("Multinomial", [(4, 5)], i32(4, 1)), 0, 0, 80, 16),
    # 10 rows of 8, whatever the table's height
    "Gather": Row(GATHER, 0, 0, 320 + 80, 320),
    "GatherElements": Row(op("GatherElements", [(4, 5), i64(2, 5)], (2, 5)), 0, 0, 40 + 80, 40),
    "GatherND": Row(op("GatherND", [(4, 5), i64(3, 1)], (3, 5)), 0, 0, 60 + 24, 60),
    "GatherND-ms": Row(op("GatherND", [(4, 5), i64(3, 1)], (3, 5), None, MS), 0, 0, 84, 60),
    "TorchEmbedding": Row(op("TorchEmbedding", [(1000, 8), i64(5)], (5, 8), None, MS), 0, 0, 200, 160),
    # 2 of 10 rows of 32 4-bit values (16 bytes) with one scale each
    "GatherBlockQuantized": Row(
        op("GatherBlockQuantized", [u8(10, 16), i64(2), (10, 1)], (2, 32), {"bits": 4}, MS),
        0,
        64,
        32 + 16 + 8,
        256,
    ),
    **{
        name: Row(op(name, [(4, 5), i64(2, 5), (2, 5)], (4, 5)), 0, 0, 80 + 80 + 40, 80)
        for name in ("Scatter", "ScatterElements")
    },
    "ScatterND-add": Row(
        op("ScatterND", [(4, 5), i64(2, 1), (2, 5)], (4, 5), {"reduction": "add"}), 0, 10, 80 + 16 + 40, 80
    ),
    # the cache of 100 stays where it is
    "TensorScatter": Row(
        op("TensorScatter", [(2, 3, 100, 8), (2, 3, 1, 8), i64(2)], (2, 3, 100, 8)), 0, 0, 192 + 16, 192
    ),
    "OneHot": Row(op("OneHot", [i64(3), i64(), (2,)], (3, 7)), 0, 0, 24 + 8 + 8, 84),
}

BACK = {
    "transpose": back(ROWS["Transpose"].node, {0}, 0, 0, 80, 80),
    "concat": back(CONCAT, {0, 1}, 0, 0, 72, 72),
    "split": back(SPLIT, {0}, 0, 0, 72, 72),
    "slice": back(ROWS["Slice"].node, {0}, 0, 0, 24, 80),
    "pad": back(ROWS["Pad"].node, {0}, 0, 0, 80, 80),
    "expand": back(ROWS["Expand"].node, {0}, 0, 20, 80, 20),
    "gather": back(GATHER, {0}, 0, 80, 320 + 80, 320),
    "reshape": back(ROWS["Reshape"].node, {0}, 0, 0, 0, 0),
    "scatter": back(ROWS["Scatter"].node, {0, 2}, 0, 0, (80 + 80) + (40 + 80), 120),
}
