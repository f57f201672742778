from .build import MS, Row, back, boolean, i8, i64, op, u8

ONE = (
    "Relu LeakyRelu ThresholdedRelu HardSigmoid HardSwish Softsign Shrink Abs Neg Sqrt Reciprocal Ceil Floor "
    "Round Sign"
)
FOUR = (
    "Exp Log Tanh Sigmoid Erf Softplus Elu Selu Celu Gelu Mish Swish Sin Cos Tan Asin Acos Atan Sinh Cosh "
    "Asinh Acosh Atanh"
)
COMPARE = "Equal Greater GreaterOrEqual Less LessOrEqual"
LOGIC = "And Or Xor"
BITS = "BitwiseAnd BitwiseOr BitwiseXor BitShift"
ARITHMETIC = "Add Sub Mul Div Mod PRelu"
ADD = op("Add", [(4, 5), (5,)], (4, 5))
MUL = op("Mul", [(4, 5), (5,)], (4, 5))

ROWS = {
    **{name: Row(op(name, [(4, 5)], (4, 5)), 0, 20, 80, 80) for name in ONE.split()},
    **{name: Row(op(name, [(4, 5)], (4, 5)), 0, 4 * 20, 80, 80) for name in FOUR.split()},
    **{name: Row(op(name, [(4, 5), (5,)], boolean(4, 5)), 0, 20, 100, 20) for name in COMPARE.split()},
    **{name: Row(op(name, [boolean(4, 5)] * 2, boolean(4, 5)), 0, 20, 40, 20) for name in LOGIC.split()},
    **{name: Row(op(name, [u8(4, 5)] * 2, u8(4, 5)), 0, 20, 40, 20) for name in BITS.split()},
    **{name: Row(op(name, [(4, 5), (5,)], (4, 5)), 0, 20, 4 * (20 + 5), 80) for name in ARITHMETIC.split()},
    **{name: Row(op(name, [(4, 5)] * 3, (4, 5)), 0, 20, 240, 80) for name in ("Sum", "Mean", "Max", "Min")},
    "Pow": Row(op("Pow", [(4, 5), ()], (4, 5)), 0, 80, 84, 80),
    "Not": Row(op("Not", [boolean(4, 5)], boolean(4, 5)), 0, 20, 20, 20),
    "BitwiseNot": Row(op("BitwiseNot", [u8(4, 5)], u8(4, 5)), 0, 20, 20, 20),
    "IsNaN": Row(op("IsNaN", [(4, 5)], boolean(4, 5)), 0, 20, 80, 20),
    "IsInf": Row(op("IsInf", [(4, 5)], boolean(4, 5)), 0, 20, 80, 20),
    "Clip": Row(op("Clip", [(4, 5), (), None], (4, 5)), 0, 20, 84, 80),
    "Where": Row(op("Where", [boolean(4, 1), (4, 5), ()], (4, 5)), 0, 20, 4 + 80 + 4, 80),
    "Cast": Row(op("Cast", [(4, 5)], i64(4, 5)), 0, 0, 80, 160),
    "CastLike": Row(op("CastLike", [i64(4, 5), ()], (4, 5)), 0, 0, 164, 80),
    "SwiGLU": Row(op("SwiGLU", [(4, 5), (4, 5)], (4, 5)), 0, 100, 160, 80),
    "Dropout": Row(op("Dropout", [(4, 5)], [(4, 5), boolean(4, 5)]), 0, 20, 80, 80 + 20),
    "ms-Gelu": Row(op("Gelu", [(4, 5)], (4, 5), None, MS), 0, 80, 80, 80),
    "ms-QuickGelu": Row(op("QuickGelu", [(4, 5)], (4, 5), None, MS), 0, 80, 80, 80),
    "ms-FastGelu": Row(op("FastGelu", [(4, 5), (5,)], (4, 5), None, MS), 0, 100, 100, 80),
    "ms-BiasGelu": Row(op("BiasGelu", [(4, 5), (5,)], (4, 5), None, MS), 0, 100, 100, 80),
    # [2, 3, 8] to [2, 3, 4]: two biases, a gelu, a product
    "ms-BiasSplitGelu": Row(op("BiasSplitGelu", [(2, 3, 8), (8,)], (2, 3, 4), None, MS), 0, 7 * 24, 4 * 56, 96),
    "ms-BiasAdd": Row(op("BiasAdd", [(4, 5), (5,), (4, 5)], (4, 5), None, MS), 0, 40, 180, 80),
    "ms-BiasDropout": Row(
        op("BiasDropout", [(4, 5), (5,), (4, 5)], [(4, 5), boolean(4, 5)], None, MS), 0, 60, 180, 100
    ),
    "ms-BitmaskBiasDropout": Row(op("BitmaskBiasDropout", [(4, 5), (5,)], (4, 5), None, MS), 0, 40, 100, 80),
    "ms-BitmaskDropout": Row(op("BitmaskDropout", [(4, 5)], (4, 5), None, MS), 0, 20, 80, 80),
    "quantize": Row(op("QuantizeLinear", [(4, 5), (), i8()], i8(4, 5)), 0, 20, 80 + 5, 20),
    "dequantize": Row(op("DequantizeLinear", [i8(4, 5), (), i8()], (4, 5)), 0, 20, 20 + 5, 80),
    "quantize-ms": Row(op("QuantizeLinear", [(4, 5), ()], i8(4, 5), None, MS), 0, 20, 84, 20),
    "dequantize-ms": Row(op("DequantizeLinear", [i8(4, 5), ()], (4, 5), None, MS), 0, 20, 24, 80),
    "dynamic-quantize": Row(op("DynamicQuantizeLinear", [(4, 5)], [u8(4, 5), (), u8()]), 0, 60, 80, 25),
    **{
        name: Row(
            op(name, [i8(4, 5), (), i8(), i8(4, 5), (), i8(), (), i8()], i8(4, 5), None, MS),
            0,
            20,
            40 + 15,
            20,
        )
        for name in ("QLinearAdd", "QLinearMul")
    },
    "QLinearLeakyRelu": Row(op("QLinearLeakyRelu", [i8(4, 5), ()], i8(4, 5), None, MS), 0, 20, 24, 20),
    "QLinearSigmoid": Row(op("QLinearSigmoid", [i8(4, 5), ()], i8(4, 5), None, MS), 0, 80, 24, 20),
    "QLinearWhere": Row(op("QLinearWhere", [boolean(4, 5), i8(4, 5)], i8(4, 5), None, MS), 0, 20, 40, 20),
    "MulInteger": Row(op("MulInteger", [i8(4, 5), None, i8(4, 5)], i64(4, 5), None, MS), 0, 20, 40, 160),
    # a cosine, a product, a sum; Blackman's has two of each
    "hann": Row(op("HannWindow", [i64()], (16,)), 0, 6 * 16, 8, 64),
    "hamming": Row(op("HammingWindow", [i64()], (16,)), 0, 6 * 16, 8, 64),
    "blackman": Row(op("BlackmanWindow", [i64()], (16,)), 0, 12 * 16, 8, 64),
    "mel": Row(op("MelWeightMatrix", [i64(), i64(), i64(), (), ()], (9, 8)), 0, 72, 32, 288),
}

BACK = {
    # dY itself is one gradient, the bias' sums 20 elements to 5
    "add-broadcast": back(ADD, {0, 1}, 0, 20, 80, 20),
    # as above, and the second operand's five sums are negated
    "sub": back(ROWS["Sub"].node, {0, 1}, 0, 20 + 5, 80 + 20, 20 + 20),
    "mul-broadcast": back(MUL, {0, 1}, 0, 60, (80 + 20) + (80 + 80), 100),
    "relu": back(ROWS["Relu"].node, {0}, 0, 20, 160, 80),
    "gelu": back(ROWS["Gelu"].node, {0}, 0, 80, 160, 80),
    "dropout": back(ROWS["Dropout"].node, {0}, 0, 20, 80 + 20, 80),
    "equal": back(ROWS["Equal"].node, {0, 1}, 0, 0, 0, 0),
    "floor": back(ROWS["Floor"].node, {0}, 0, 0, 0, 0),
    "cast-to-integers": back(ROWS["Cast"].node, {0}, 0, 0, 0, 0),
    "cast-down": back(op("Cast", [(4, 5)], op("", [], (4, 5), dtype="float16").out), {0}, 0, 0, 40, 80),
    "where": back(ROWS["Where"].node, {0, 1}, 0, 20, 84, 80),
}
