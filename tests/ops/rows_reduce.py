from .build import MS, Row, back, i8, i32, i64, op

REDUCE = (
    "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
    "ReduceLogSumExp"
)
MAXPOOL = op("MaxPool", [(1, 2, 8, 8)], (1, 2, 4, 4), {"kernel_shape": [3, 3], "strides": [2, 2]})
AVGPOOL = op("AveragePool", [(1, 2, 8, 8)], (1, 2, 4, 4), {"kernel_shape": (2, 2)})
SOFTMAX = op("Softmax", [(2, 3, 5)], (2, 3, 5))
CROSS = op("SoftmaxCrossEntropyLoss", [(6, 10), i64(6)], ())

ROWS = {
    **{name: Row(op(name, [(4, 5), i64(1)], (4,)), 0, 20, 80 + 8, 16) for name in REDUCE.split()},
    "ArgMax": Row(op("ArgMax", [(4, 5)], i64(4)), 0, 20, 80, 32),
    "ArgMin": Row(op("ArgMin", [(4, 5)], i64(4)), 0, 20, 80, 32),
    "CumSum": Row(op("CumSum", [(4, 5), i64()], (4, 5)), 0, 20, 88, 80),
    "CumProd": Row(op("CumProd", [(4, 5), i64()], (4, 5)), 0, 20, 88, 80),
    "TopK": Row(op("TopK", [(4, 5), i64(1)], [(4, 2), i64(4, 2)]), 0, 20, 88, 32 + 64),
    "Hardmax": Row(op("Hardmax", [(4, 5)], (4, 5)), 0, 20, 80, 80),
    "NonZero": Row(op("NonZero", [(4, 5)], i64(2, 7)), 0, 20, 80, 112),
    "NonMaxSuppression": Row(op("NonMaxSuppression", [(1, 6, 4), (1, 3, 6)], i64(2, 3)), 0, 18, 96 + 72, 48),
    # LU of 3 x 3: (1 + 2) + (2 + 8) = 13, and 2 products along the diagonal
    "Det": Row(op("Det", [(2, 3, 3)], (2,)), 0, 2 * (13 + 2), 72, 8),
    # 5 and the exponential's 4
    "Softmax": Row(SOFTMAX, 0, 9 * 30, 120, 120),
    "LogSoftmax": Row(op("LogSoftmax", [(2, 3, 5)], (2, 3, 5)), 0, 270, 120, 120),
    "BiasSoftmax": Row(op("BiasSoftmax", [(2, 3, 5), (1, 3, 5)], (2, 3, 5), None, MS), 0, 300, 180, 120),
    "QLinearSoftmax": Row(op("QLinearSoftmax", [i8(4, 5), ()], i8(4, 5), None, MS), 0, 180, 24, 20),
    "QLinearReduceMean": Row(op("QLinearReduceMean", [i8(4, 5), ()], i8(4), None, MS), 0, 20, 24, 4),
    "ReduceSumInteger": Row(op("ReduceSumInteger", [i8(4, 5)], i32(4), None, MS), 0, 20, 20, 16),
    # 32 outputs, windows of 9 and 4
    "MaxPool": Row(MAXPOOL, 0, 288, 512, 128),
    "AveragePool": Row(AVGPOOL, 0, 128, 512, 128),
    "LpPool": Row(op("LpPool", [(1, 2, 8)], (1, 2, 4), {"kernel_shape": [2]}), 0, 16, 64, 32),
    **{
        name: Row(op(name, [(1, 2, 8, 8)], (1, 2, 1, 1)), 0, 128, 512, 8)
        for name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    },
    "QLinearAveragePool": Row(
        op("QLinearAveragePool", [i8(1, 2, 8, 8), ()], i8(1, 2, 4, 4), {"kernel_shape": [2, 2]}, MS),
        0,
        128,
        132,
        32,
    ),
    "QLinearGlobalAveragePool": Row(
        op("QLinearGlobalAveragePool", [i8(1, 2, 8, 8), ()], i8(1, 2, 1, 1), None, MS), 0, 128, 132, 2
    ),
    # 3 regions x 2 channels x 4 bins
    "MaxRoiPool": Row(op("MaxRoiPool", [(1, 2, 8, 8), (3, 5)], (3, 2, 2, 2)), 0, 24, 96 + 60, 96),
    # four points a bin: 384 bytes at most of the 512
    "RoiAlign": Row(op("RoiAlign", [(1, 2, 8, 8), (3, 4), i64(3)], (3, 2, 2, 2)), 0, 96, 384 + 48 + 24, 96),
    "MaxUnpool": Row(op("MaxUnpool", [(1, 1, 2, 2), i64(1, 1, 2, 2)], (1, 1, 4, 4)), 0, 0, 16 + 32, 64),
    # a softmax over 60 scores, 6 terms summed
    "cross-entropy": Row(CROSS, 0, 9 * 60 + 6, 240 + 48, 4),
    "cross-entropy-weighted": Row(
        op("SoftmaxCrossEntropyLoss", [(2, 10, 3), i64(2, 3), (10,)], [(), (2, 10, 3)]),
        0,
        540 + 12,
        240 + 48 + 40,
        4 + 240,
    ),
    # 6 of the 60 log-probabilities
    "nll": Row(op("NegativeLogLikelihoodLoss", [(6, 10), i64(6)], ()), 0, 6, 24 + 48, 4),
    # 3 rows of 16 real points: 5 * 16 * 4 / 2
    "dft": Row(op("DFT", [(3, 16, 1)], (3, 16, 2)), 0, 3 * 160, 192, 384),
    # opset 17 axis; 5 complex points are rounded up to 3 bits: 5 * 5 * 3
    "dft-complex": Row(op("DFT", [(2, 5, 2)], (2, 5, 2), {"axis": 1}), 0, 2 * 75, 80, 80),
    # 2 signals x 7 frames of 16 points: 160 and 16 products
    "stft": Row(op("STFT", [(2, 64, 1), i64(), (16,)], (2, 7, 9, 2)), 0, 14 * 176, 512 + 8 + 64, 4 * 252),
}

BACK = {
    "reduce-sum": back(ROWS["ReduceSum"].node, {0}, 0, 20, 16, 80),
    "reduce-max": back(ROWS["ReduceMax"].node, {0}, 0, 20, 16 + 80 + 16, 80),
    "argmax": back(ROWS["ArgMax"].node, {0}, 0, 0, 0, 0),
    "softmax": back(SOFTMAX, {0}, 0, 4 * 30, 240, 120),
    # one element of each window, found by its eight-byte position
    "max-pool": back(MAXPOOL, {0}, 0, 32, 128 + 8 * 32, 512),
    "average-pool": back(AVGPOOL, {0}, 0, 128, 128, 512),
    "cross-entropy": back(CROSS, {0}, 0, 120, 288 + 4, 240),
    "nll": back(ROWS["nll"].node, {0}, 0, 6, 48 + 4, 240),
    "dft": back(ROWS["dft"].node, {0}, 0, 480, 384, 192),
}
