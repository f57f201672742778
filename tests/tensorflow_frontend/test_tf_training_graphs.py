"""TF 1 training graphs: the forward pass is counted once, the graph's own gradients agree with the rules."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")

import tf_train_graphs as programs  # noqa: E402
from tf_models import load, traced  # noqa: E402

from graphcost.cli.main import main  # noqa: E402
from graphcost.errors import ModelFileError  # noqa: E402
from graphcost.graph import branch_weight, build_graph, totals  # noqa: E402
from graphcost.ir import Phase  # noqa: E402
from graphcost.training import plan_step  # noqa: E402

v1 = tf.compat.v1
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

# Batch 2. Convolutions: output positions x output channels x kernel x input channels per group.
FIRST, DEPTH, SECOND, DENSE = 64 * 4 * 9 * 3, 16 * 4 * 9, 4 * 6 * 9 * 4, 24 * 10
GROUPS, UP, DEEP = 64 * 6 * 9 * 2, 64 * 6 * 9 * 5, 4 * 4 * 16 * 3 * 8 * 5

# name: (program, loss, forward MACs of a sample, backward MACs of a sample, optimizer)
# Backward: twice the forward, without the gradients of inputs and of weights that are not trained.
PROGRAMS = {
    "mlp": (programs.mlp, "loss", 20 + 15 + 9, 20 + 2 * 15 + 9, "Adam; 3 of 4 weights trained"),
    "cnn": (programs.cnn, "add", FIRST + DEPTH + SECOND + DENSE, FIRST + 2 * (DEPTH + SECOND + DENSE),
            "Momentum; 6 of 6 weights trained"),
    "table": (programs.recommender(lambda: v1.train.AdagradOptimizer(0.1)), "loss", 8, 2 * 8,
              "Adagrad; 2 of 2 weights trained"),
    "table-clipped": (programs.recommender(v1.train.AdamOptimizer, clip=True), "loss", 8, 2 * 8,
                      "Adam; 2 of 2 weights trained"),
    # three projections of six rows, scores, values, classes
    "attention": (programs.attention, "loss", 3 * 6 * 64 + 2 * 36 * 8 + 6 * 80,
                  3 * 6 * 64 + 2 * (2 * 36 * 8 + 6 * 80), "Adam; 4 of 4 weights trained"),
    "convolutions": (programs.convolutions, "loss", GROUPS + UP + DEEP, GROUPS + 2 * (UP + DEEP),
                     "Momentum; 3 of 3 weights trained"),
    "lstm": (programs.lstm_clipped, "loss", 5 * 12 * 32, (5 + 4) * 12 * 32, "Adam; 2 of 2 weights trained"),
    "partitioned": (programs.partitioned_and_synchronous, "loss", 8, 2 * 8, "Adagrad; 4 of 4 weights trained"),
    "branches": (programs.branches, "loss", 2 * 16, 3 * 16, "Adam; 1 of 1 weights trained"),
    "ps": (programs.on_parameter_servers, "loss", 44, 59, "Adam; 3 of 4 weights trained"),
}  # fmt: skip


@pytest.mark.parametrize("resources", [True, False], ids=["handles", "references"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_once_and_backward_as_the_graph_has_it(tmp_path, monkeypatch, name, resources):
    monkeypatch.setattr("graphcost.frontends.tensorflow.told.format_flops", str)  # exact, not rounded
    build, loss, forward, backward, updates = PROGRAMS[name]
    model = load(programs.graph_file(tmp_path / "g.pb", build, resources=resources))
    graph = build_graph(model)
    assert totals(graph).macs == 2 * forward
    assert totals(graph).coverage.unknown == ()
    assert model.outputs == (f"{loss}:0",)
    assert not [node.name for node in model.nodes if "gradients" in node.name]
    by_rule = plan_step(graph).total(Phase.BACKWARD).matmul_flops
    assert by_rule == 2 * 2 * backward
    (note,) = [note for note in model.notes if note.startswith("a training graph")]
    assert f"({by_rule} in products and convolutions)" in note  # what the graph's own operators hold
    assert f"updates ({updates})" in note


def products_of(path):
    """Matmul-class FLOPs of all gradient operators of a graph, each made an operator by itself."""
    from graphcost.frontends.tensorflow.reader import read_graph_def
    from graphcost.frontends.tensorflow.walk import Walk

    load(path)  # fills the tables of operators
    program = read_graph_def(path)
    walk = Walk(program.functions, branch_weight, {}, program.variables)
    sizes = {"x": (2, 4), "labels": (2,)}
    walk.run(program.body, {name: [walk.fresh(name, 9 if name == "labels" else 1, s)] for name, s in sizes.items()})
    return branch_weight(walk.beyond(sorted(program.training.gradients)))[0]


def test_control_dependencies_keep_one_product_more(tmp_path):
    """``tf.tuple`` ties both gradients of the first product together; that of ``x`` is read by nobody."""
    path = programs.graph_file(tmp_path / "g.pb", programs.mlp)
    unread = 2 * 2 * 4 * 5 + 2 * 2 * 3 * 3  # of x, and of the weight that is not trained
    assert products_of(path) == 2 * 2 * 59 + unread


def test_what_is_trained_and_how_it_travels(tmp_path):
    def kept(build):
        model = load(programs.graph_file(tmp_path / "g.pb", build))
        return {p.name: (p.trainable, p.sparse) for node in model.nodes for _, p in node.params}

    dense = (True, False)
    assert kept(programs.mlp) == {"w": dense, "b": dense, "v": dense, "fixed": (False, False)}
    rows = {"table": (True, True), "w": dense}
    for make in (v1.train.AdamOptimizer, lambda: v1.train.GradientDescentOptimizer(0.1)):
        assert kept(programs.recommender(make)) == rows


def test_variables_on_parameter_servers_are_told(tmp_path):
    model = load(programs.graph_file(tmp_path / "g.pb", programs.on_parameter_servers))
    # round robin: w [4, 5] and v [5, 3]; b [5] and fixed [3, 3]
    assert "variables are placed on parameter servers: task 0 2 (140 B), task 1 2 (56 B)" in model.notes


# name: (program, outputs, forward MACs at batch 2, part of the notes)
OTHERS = {
    # which gradients are fetched the file does not say: 2 * 2 * (20 + 2 * 15), and 2 * 2 * 20 for that of x
    "gradients-fetched": (programs.gradients_fetched, ("loss:0",), 2 * 35, "gradient operators (280 FLOP"),
    "nested": (programs.gradient_penalty, ("Mean:0",), 2 * 25, "a loss of the graph needs gradients itself"),
    "two-losses": (programs.adversaries, ("generator_loss:0", "judge_loss:0"), 2 * 20, "GradientDescent; 2 of 2"),
    "towers": (programs.towers, ("tower_0/net/loss:0", "tower_1/net/loss:0"), 2 * 20, "Adam; 1 of 1 weights trained"),
    "frames": (programs.recurrent(old_control_flow=True), ("loss:0",), 2 * 5 * 16, "GradientDescent; 1 of 1"),
    "while": (programs.recurrent(old_control_flow=False), ("loss:0",), 2 * 5 * 16, "GradientDescent; 1 of 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_programs(tmp_path, name):
    build, outputs, macs, told = OTHERS[name]
    model = load(programs.graph_file(tmp_path / "g.pb", build))
    found = totals(build_graph(model))
    assert (model.outputs, found.macs, found.coverage.unknown) == (outputs, macs, ())
    assert any(told in note for note in model.notes)


def test_input_pipelines_feed_the_graph(tmp_path):
    model = load(programs.graph_file(tmp_path / "g.pb", programs.pipeline), None)
    assert {name: spec.shape for name, spec in model.inputs.items()} == {
        "IteratorGetNext": (7, 4), "IteratorGetNext:1": (7,)
    }  # fmt: skip
    assert totals(build_graph(model)).macs == 7 * 12


def test_graph_that_was_renamed_still_ends_at_its_loss(tmp_path):
    graph = programs.graph_of(programs.mlp).as_graph_def()
    for node in graph.node:
        node.name = node.name.replace("_grad/", "_back/")
        for index, text in enumerate(node.input):
            node.input[index] = text.replace("_grad/", "_back/")
    (tmp_path / "g.pb").write_bytes(graph.SerializeToString())
    assert "loss:0" in load(tmp_path / "g.pb").outputs


def test_frozen_graph_with_gradients(tmp_path):
    """Weights turned into constants, as ``convert_variables_to_constants`` leaves them."""

    def build():
        w = tf.constant([[0.5] * 5] * 4, name="w")
        tf.gradients(tf.reduce_sum(tf.square(tf.matmul(programs.features(4), w)), name="loss"), w)

    model = load(programs.graph_file(tmp_path / "g.pb", build))
    assert (model.outputs, totals(build_graph(model)).macs) == (("loss:0",), 2 * 20)
    assert any(note.startswith("a frozen graph does not say") for note in model.notes)


# -- with more around the graph


def meta_file(path, build):
    graph = programs.graph_of(build)
    with graph.as_default():
        v1.train.export_meta_graph(str(path))
    return path


def test_meta_file_says_what_is_trained(tmp_path):
    def forward():
        tf.matmul(tf.matmul(programs.features(4), programs.weight("w", 4, 5)),
                  programs.weight("fixed", 5, 3, trainable=False))  # fmt: skip

    model = load(meta_file(tmp_path / "m.meta", forward))
    assert {p.name: p.trainable for node in model.nodes for _, p in node.params} == {"w": True, "fixed": False}
    assert model.notes == ()
    assert main(["count", str(meta_file(tmp_path / "n.meta", programs.mlp)), "--batch", "2", "--quiet"]) == 0


def saved_training_graph(folder, outputs):
    graph = programs.graph_of(programs.mlp)
    builder = v1.saved_model.Builder(str(folder))
    with graph.as_default(), v1.Session() as session:
        session.run(v1.global_variables_initializer())
        tensors = {name: graph.get_tensor_by_name(f"{node}:0") for name, node in outputs.items()}
        signature = v1.saved_model.predict_signature_def({"rows": graph.get_tensor_by_name("x:0")}, tensors)
        builder.add_meta_graph_and_variables(session, ["train"], {"train": signature})
    builder.save()
    return folder


@pytest.mark.parametrize(
    ("outputs", "ends"),
    [
        ({"logits": "MatMul_1"}, ("MatMul_1:0",)),
        ({"loss": "loss", "gradient": "gradients/MatMul_grad/MatMul_1"}, ("loss:0",)),
        ({"gradient": "gradients/MatMul_grad/MatMul_1"}, ("loss:0",)),
    ],
)
def test_saved_model_of_a_training_graph(tmp_path, outputs, ends):
    model = load(saved_training_graph(tmp_path / "m", outputs))
    assert model.outputs == ends
    assert totals(build_graph(model)).macs == 2 * (20 + 15 + 9 * (ends == ("loss:0",)))
    assert any("Adam" in note for note in model.notes)


# -- graphs that are not what programs write


def broken(path, *nodes):
    """An MLP's training graph with more nodes (name, operator, inputs)."""
    graph = programs.graph_of(programs.mlp).as_graph_def()
    for name, op, inputs in nodes:
        graph.node.add(name=name, op=op, input=inputs).attr["T"].type = 1
    path.write_bytes(graph.SerializeToString())
    return path


@pytest.mark.parametrize("inputs", [[], ["^w"]])
def test_an_optimizer_that_names_no_variable(tmp_path, inputs):
    """Nor one that this TensorFlow knows."""
    path = broken(tmp_path / "g.pb", ("apply", "ApplyMine", inputs))
    assert totals(build_graph(load(path))).macs == 2 * 44


CIRCLES = {
    "updated": [("p", "Identity", ["q"]), ("q", "Identity", ["p"]), ("apply", "ApplyMine", ["p"])],
    "behind-the-loss": [("p", "AddV2", ["loss", "q"]), ("q", "Identity", ["p"])],
}


@pytest.mark.parametrize("name", CIRCLES)
def test_circles_are_refused(tmp_path, name):
    with pytest.raises(ModelFileError, match="no circles"):
        load(broken(tmp_path / "g.pb", *CIRCLES[name]))


def test_gradients_of_a_tape_are_told():
    w = tf.Variable([[0.5] * 5] * 4)

    def gradient(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
        return tape.gradient(loss, w)

    assert any("gradient_tape/" in note for note in load(traced(gradient)).notes)
