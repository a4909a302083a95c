"""Descriptions and answers: memory networks in NumPy, numerical gradients, known answers, blind baselines."""

import numpy as np
import pytest
import torch
from attention_samples import captions, carried, pictures, ragged, stories
from gradient_of_module import check_module
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

import epicycle as ep
from epicycle import ImageCaptioner, MemoryQA, VisualQA
from epicycle.exceptions import DataError, DataTypeError
from epicycle.nets.attention._image_memory import CaptionNet, ImageMemory, VisualQANet
from epicycle.nets.attention._memory_module import MemoryNet
from epicycle.nets.attention._rows import JointRows

MEMORY = {"n_hops": 2, "embedding_size": 4, "memory_size": 5, "dropout": 0.0, "n_tokens": 4, "n_outputs": 3}
IMAGES = {"mean": [0.1, 0.2], "deviation": [1.0, 2.0], "channels": [3, 4]}


def moved(net):
    """With weights that are not at their start, where some are zero."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in net.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
        for layer in net.modules():
            if isinstance(layer, torch.nn.Embedding):
                layer.weight[layer.padding_idx] = 0.0  # as no gradient moves it
    return net.double().eval()


def story_rows():
    tables = [np.array([[3, 4, 0], [5, 6, 3]]), np.array([[4, 0, 0]]), np.array([[3, 3, 3], [6, 0, 0], [4, 5, 0]])]
    questions = [np.array([3, 4]), np.array([5]), np.array([6, 6, 3])]
    return JointRows([tables, np.array([2, 1, 3]), questions], np.array([0, 1, 2]))


# --------------------------------------------------------------------------------------------- stories


@pytest.mark.parametrize("ordered", [True, False])
def test_a_memory_network_by_hand(ordered):
    torch.manual_seed(0)
    net = moved(MemoryNet({**MEMORY, "position_encoding": ordered}))
    E = [table.weight.detach().numpy() for table in net.words]
    T = [place.detach().numpy() for place in net.places]
    W, b = (p.detach().numpy() for p in net.last.parameters())

    def sentence(table, tokens):
        words = [table[t] for t in tokens if t]
        if not ordered:
            return sum(words)
        J, d = len(words), 4
        k = np.arange(1, d + 1)
        return sum(((1 - j / J) - k / d * (1 - 2 * j / J)) * v for j, v in enumerate(words, 1))

    rows = story_rows()
    scores, weights = net.attend(*next(rows.in_order(3)).inputs)
    for i, (table, question) in enumerate(zip(rows.columns[0], rows.columns[2], strict=True)):
        u = sentence(E[0], question)
        for hop in range(2):
            back = np.arange(len(table))[::-1]
            m = np.array([sentence(E[hop], s) for s in table]) + T[hop][back]
            c = np.array([sentence(E[hop + 1], s) for s in table]) + T[hop + 1][back]
            p = np.exp(m @ u) / np.exp(m @ u).sum()
            assert_allclose(weights[i, hop, : len(p)].detach(), p, rtol=1e-9)
            u = u + p @ c
        assert_allclose(scores[i].detach(), W @ u + b, rtol=1e-9)


@pytest.mark.parametrize("ordered", [True, False])
def test_gradients_of_a_memory_network(ordered):
    model = MemoryQA()
    model.classes_ = np.arange(3)
    torch.manual_seed(0)
    net = MemoryNet({**MEMORY, "position_encoding": ordered})
    assert check_module(net, model._row_losses(), story_rows(), n_coordinates=20)


@pytest.fixture(scope="module")
def reader():
    return MemoryQA(2, embedding_size=24, max_iter=25, learning_rate="cosine", random_state=0).fit(*stories(900))


def test_the_last_move_of_the_right_person_is_found(reader):
    X, y = stories(300, seed=1)
    assert reader.score(X, y) > 0.95
    texts = [" ".join([*story, question]) for story, question in X]
    known = [" ".join([*story, question]) for story, question in stories(900)[0]]
    bag = CountVectorizer().fit(known)
    words = ep.LogisticRegression(max_iter=1000).fit(bag.transform(known), stories(900)[1])
    assert words.score(bag.transform(texts), y) < 0.75
    # It looks at the sentence that has the answer.
    found = 0
    for (story, question), weights in zip(X[:100], reader.attention_weights(X[:100]), strict=True):
        assert weights.shape == (2, len(story))
        assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
        who = question.split()[2][:-1]
        last = max(i for i, sentence in enumerate(story) if sentence.startswith(who))
        found += weights.max(axis=0).argmax() == last
    assert found > 80


def test_a_text_is_cut_into_its_sentences(reader):
    X, _ = stories(20, seed=2)
    texts = [(" ".join(story), question) for story, question in X]
    assert_array_equal(reader.predict_proba(texts), reader.predict_proba(X))
    lines = [("\n".join(s[:-1] for s in story), question) for story, question in X]
    assert np.isfinite(reader.predict_proba(lines)).all()


def test_the_last_sentences_of_a_long_story_are_kept(reader):
    X, _ = stories(5, seed=3)
    long = [(["Ann went to the hall."] * 60 + story, question) for story, question in X]
    kept = [((["Ann went to the hall."] * 60 + story)[-50:], question) for story, question in X]
    assert_array_equal(reader.predict_proba(long), reader.predict_proba(kept))


@pytest.mark.slow
def test_two_facts_take_two_hops():
    X, y = carried(3000)
    new = carried(300, seed=1)
    settings = {"embedding_size": 24, "max_iter": 40, "learning_rate": "cosine", "random_state": 0}
    two = MemoryQA(3, **settings).fit(X, y).score(*new)
    assert two > 0.9
    assert MemoryQA(1, **settings).fit(X, y).score(*new) < two


# --------------------------------------------------------------------------------------------- images


def test_cells_of_an_image_and_their_places():
    net = ImageMemory(IMAGES).double()
    memory = net(torch.zeros(2, 5, 9, 2, dtype=torch.float64))
    assert memory.shape == (2, 2 * 3, 6)
    assert_allclose(memory[0, :, 4:].detach(), [[a, b] for a in (-1, 1) for b in (-1, 0, 1)])
    assert net(torch.zeros(1, 1, 1, 2)).shape == (1, 1, 6)


def test_gradients_of_networks_that_look_at_images():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(3, 7, 6, 2))
    torch.manual_seed(3)
    sizes = {"hidden_size": 4, "n_layers": 1, "embedding_size": 3, "dropout": 0.0, "n_targets": 2, "cell": "gru"}
    captioner = ImageCaptioner()
    captioner.architecture_ = {"mean_length": 2.0}
    net = CaptionNet({**IMAGES, **sizes, "attention": "additive"})
    targets = [np.array([2, 3, 2]), np.array([2, 4, 4, 3, 2]), np.array([2, 2])]
    assert check_module(net, captioner._row_losses(), JointRows([images, targets]), n_coordinates=15)
    answering = VisualQA()
    answering.classes_ = np.arange(3)
    net = VisualQANet({**IMAGES, **sizes, "n_tokens": 3, "n_glimpses": 2, "n_outputs": 3})
    questions = [np.array([3, 4]), np.array([5]), np.array([5, 4, 3])]
    rows = JointRows([images, questions, np.array([2, 1, 3])], np.array([0, 1, 2]))
    assert check_module(net, answering._row_losses(), rows, n_coordinates=15)


def test_shapes_are_described():
    settings = {"channels": [16, 16], "hidden_size": 32, "max_iter": 30, "learning_rate_init": 0.01, "random_state": 1}
    model = ImageCaptioner(**settings, learning_rate="cosine").fit(*captions(500))
    X, y = captions(150, seed=1)
    assert model.score(X, y) > 0.9
    most = max(set(y), key=y.count)
    assert np.mean([text == most for text in y]) < 0.15  # what does not look
    # On the way to the words of the place, the cells of the shape have more weight than they would evenly.
    maps = model.attention_maps(X[:40])
    assert maps[0].shape == (len(y[0].split()) + 1, 3, 3)
    assert_allclose(maps[0].sum(axis=(1, 2)), 1, rtol=1e-5)


def test_colours_and_numbers_are_answered():
    X, y = pictures(1500)
    settings = {"channels": [16, 32], "hidden_size": 32, "max_iter": 15, "learning_rate_init": 0.005, "random_state": 0}
    model = VisualQA(**settings, learning_rate="cosine").fit(X, y)
    new, right = pictures(300, seed=1)
    assert model.score(new, right) > 0.9
    questions = [question for _, question in X]
    bag = CountVectorizer().fit(questions)
    blind = ep.LogisticRegression().fit(bag.transform(questions), y)  # what reads the question alone
    assert blind.score(bag.transform([question for _, question in new]), right) < 0.6
    assert model.attention_maps(new[:5]).shape == (5, 2, 3, 3)


# --------------------------------------------------------------------------------------------- rules and bad input


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (MemoryQA(dropout=0.2, embedding_size=8), stories),
        (VisualQA(channels=[4], hidden_size=8), pictures),
        (ImageCaptioner(channels=[4], hidden_size=8, dropout=0.2), captions),
    ],
    ids=lambda value: type(value).__name__ if not callable(value) else value.__name__,
)
def test_equal_bits_weights_of_zero_and_held_out_rows(model, data):
    X, y = data(90)
    short = clone(model).set_params(max_iter=2, random_state=0)
    fits = []
    for threads in (1, 2):
        with ep.config(n_jobs=threads):
            fits.append(clone(short).fit(X, y))
    for a, b in zip(*(fit._weights_.values() for fit in fits), strict=True):
        assert_array_equal(a, b)
    v = np.r_[np.ones(60), np.zeros(30)]
    short.set_params(dropout=0.0)
    weighted, plain = clone(short).fit(X, y, sample_weight=v), clone(short).fit(X[:60], y[:60])
    if hasattr(model, "predict_proba"):
        assert_allclose(weighted.predict_proba(X[:60]), plain.predict_proba(X[:60]), atol=1e-5)
    else:
        assert_allclose(weighted.score_samples(X, y), plain.score_samples(X, y), atol=1e-3)
    stopped = short.set_params(early_stopping=True).fit(X, y)
    assert np.isfinite(stopped.history_["validation_score"]).all()


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        (["text"], DataTypeError, "row 0 has str; MemoryQA expects pairs of a story and a question"),
        ([("a story", "q", 3)], DataTypeError, "row 0 has 3 entries"),
        ([([], "where?")], DataError, "the story of row 0 is empty"),
        ([("", "where?")], DataError, "the story of row 0 is empty"),
        ([(["Ann went.", " "], "where?")], DataError, "story of row 0: the text of entry 1 is empty"),
        ([(["Ann went.", 3], "where?")], DataTypeError, r"entry 1 is 3 \(int\)"),
        ([(3, "where?")], DataTypeError, "the story of row 0 is int"),
        ([("Ann went.", "")], DataError, "the text of entry 0 is empty"),
        ([], DataError, "0 sample"),
    ],
)
def test_what_is_no_story_is_refused(X, error, match):
    with pytest.raises(error, match=match):
        MemoryQA().fit(X, ["a"] * len(X))


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        ([(np.zeros((4, 4)), "q"), (np.zeros((5, 4)), "q")], DataError, "images of one size"),
        ([(np.zeros((4, 4)), "q"), (np.zeros((4, 4)), 3)], DataTypeError, r"entry 1 is 3 \(int\)"),
        ([(np.full((4, 4), np.nan), "q")] * 2, DataError, "NaN"),
        ([(np.zeros(4), "q")] * 2, DataError, r"shape \(2, 4\)"),
        ([np.zeros((4, 4))] * 2, DataTypeError, "row 0 has 4 entries"),
    ],
)
def test_what_is_no_question_about_an_image_is_refused(X, error, match):
    with pytest.raises(error, match=match):
        VisualQA().fit(ragged(X), ["a", "b"][: len(X)])


def test_images_of_another_size_and_descriptions_that_are_no_texts_are_refused():
    X, y = captions(20)
    model = ImageCaptioner(channels=[2], hidden_size=2, max_iter=1).fit(X, y)
    with pytest.raises(DataError, match=r"fitted to \(12, 12, 3\)"):
        model.predict(X[:, :8])
    with pytest.raises(DataTypeError, match=r"y: entry 0 is 1 \(int\)"):
        ImageCaptioner().fit(X, np.ones(20, dtype=int).tolist())
    with pytest.raises(DataError, match="y has 3"):
        ImageCaptioner().fit(X, y[:3])
