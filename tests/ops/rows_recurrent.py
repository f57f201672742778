from .build import MS, Row, back, i8, op

# T = 5 steps, batch 3, input 4, hidden 6, both directions
LSTM = op(
    "LSTM",
    [(5, 3, 4), (2, 24, 4), (2, 24, 6), (2, 48)],
    [(5, 2, 3, 6), (2, 3, 6), (2, 3, 6)],
    {"hidden_size": 6, "direction": "bidirectional"},
)
STATES = 5 * 3 * 2 * 6  # 180
LSTM_READ = 4 * (60 + 192 + 288 + 96)

ROWS = {
    # per state: 5 functions of 4, 4 gates x (product sum + bias), 4 to combine
    "lstm": Row(LSTM, 2 * 5 * 3 * 2 * 24 * (4 + 6), 32 * STATES, LSTM_READ, 4 * (180 + 36 + 36)),
    "lstm-batch-first-peephole": Row(
        op(
            "LSTM",
            [(3, 5, 4), (1, 24, 4), (1, 24, 6), None, None, None, None, (1, 18)],
            (3, 5, 1, 6),
            {"layout": 1},
        ),
        2 * 15 * 24 * 10,
        (20 + 4 + 4 + 6) * 90,
        4 * (60 + 96 + 144 + 18),
        360,
    ),
    "gru": Row(
        op("GRU", [(5, 3, 4), (1, 18, 4), (1, 18, 6), (1, 36)], (5, 1, 3, 6)),
        2 * 15 * 18 * 10,
        (12 + 6 + 5) * 90,
        4 * (60 + 72 + 108 + 36),
        360,
    ),
    "rnn": Row(
        op("RNN", [(5, 3, 4), (1, 6, 4), (1, 6, 6)], (5, 1, 3, 6)),
        2 * 15 * 6 * 10,
        5 * 90,
        4 * (60 + 24 + 36),
        360,
    ),
    "quantized-lstm": Row(
        op("DynamicQuantizeLSTM", [(5, 3, 4), i8(1, 4, 24), i8(1, 6, 24), (1, 48)], (5, 1, 3, 6), None, MS),
        2 * 15 * 24 * 10,
        32 * 90,
        240 + 96 + 144 + 192,
        360,
    ),
}

BACK = {
    # dX and dW 5760 each, dR 8640, and back through R from step 5 to step 1: four products of 1728
    "lstm-all": back(
        LSTM, {0, 1, 2}, 2 * 5760 + 8640 + 4 * 1728, 32 * STATES, LSTM_READ + 2 * 720, 4 * (60 + 192 + 288)
    ),
    # without dX
    "lstm-first-layer": back(LSTM, {1, 2}, 5760 + 8640 + 4 * 1728, 5760, LSTM_READ + 1440, 4 * 480),
    # a trained initial state takes the fifth product: dX 2160, dR 3240, back 3240
    "gru-initial-state": back(
        op("GRU", [(5, 3, 4), (1, 18, 4), (1, 18, 6), None, None, (1, 3, 6)], (5, 1, 3, 6)),
        {0, 2, 5},
        2 * (15 * 18 * 4 + 2 * 15 * 18 * 6),
        (12 + 3 + 5) * 90,
        4 * (60 + 72 + 108 + 18) + 2 * 360,
        4 * (60 + 108 + 18),
    ),
}
