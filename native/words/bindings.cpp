// Bindings of the trainers of word vectors.
#include "core/binding.hpp"
#include "words/glove.hpp"
#include "words/word2vec.hpp"

namespace epicycle {

namespace {

using Ids = Vector<std::int32_t>;
using Places = Vector<std::int64_t>;
constexpr std::size_t CHUNK = std::size_t{1} << 17;  // words, or entries, between two looks for Ctrl-C

bool rises(const Places &first, std::size_t end) {
    if (first.shape(0) == 0 || first.data()[0] != 0) return false;
    for (std::size_t s = 0; s + 1 < first.shape(0); ++s)
        if (first.data()[s] > first.data()[s + 1]) return false;
    return static_cast<std::size_t>(first.data()[first.shape(0) - 1]) == end;
}

// Work over `count` pieces in chunks: in order on one thread, or without locks on several.
template <class Work, class Poll>
void in_chunks(std::size_t count, std::size_t chunk, int threads, Work work, Poll poll) {
    for (std::size_t begin = 0; begin < count; begin += chunk) {
        const auto end = static_cast<std::ptrdiff_t>(std::min(count, begin + chunk));
#pragma omp parallel num_threads(threads) if (threads > 1)
        work(static_cast<std::ptrdiff_t>(begin), end);
        poll();
    }
}

template <class T>
void bind_glove(nb::module_ &m) {
    m.def(
        "glove_epoch",
        [](Ids row, Ids column, Vector<T> log_x, Vector<T> f, Places order, InOut2<T> word, InOut2<T> context,
           InOut2<T> word_square, InOut2<T> context_square, InOut2<T> biases, double rate, int threads) {
            constexpr const char *expected =
                "glove_epoch: expected row, column, log_x, f and order of one length, indices below the number of "
                "words, four matrices (words, multiple of 16) and biases (4, words)";
            const std::size_t n = word.shape(0), width = word.shape(1), entries = row.shape(0);
            require(width % WIDTH == 0 && column.shape(0) == entries && log_x.shape(0) == entries &&
                        f.shape(0) == entries && all_below(order, std::max<std::size_t>(entries, 1)) &&
                        all_below(row, n) && all_below(column, n) && biases.shape(0) == 4 && biases.shape(1) == n,
                    expected);
            for (const InOut2<T> *M : {&context, &word_square, &context_square})
                require(M->shape(0) == n && M->shape(1) == width, expected);
            T *b = biases.data();
            const Glove<T> model{width, word.data(), context.data(), word_square.data(), context_square.data(),
                                 b,     b + n,       b + 2 * n,      b + 3 * n};
            const int size = team(threads);
            double total = 0.0;
            nb::gil_scoped_release nogil;
            in_chunks(
                order.shape(0), CHUNK, size,
                [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                    double part = 0.0;
#pragma omp for schedule(static)
                    for (std::ptrdiff_t k = begin; k < end; ++k) {
                        const auto e = static_cast<std::size_t>(order.data()[k]);
                        part += glove_step(model, static_cast<std::size_t>(row.data()[e]),
                                           static_cast<std::size_t>(column.data()[e]), log_x.data()[e], f.data()[e],
                                           static_cast<T>(rate));
                    }
#pragma omp atomic
                    total += part;
                },
                Interrupts{});
            return total;
        },
        "row"_a, "column"_a, "log_x"_a.noconvert(), "f"_a.noconvert(), "order"_a, "word"_a.noconvert(),
        "context"_a.noconvert(), "word_square"_a.noconvert(), "context_square"_a.noconvert(), "biases"_a.noconvert(),
        "rate"_a, "threads"_a);
}

// Word vectors and how they are learnt: negative samples, a tree, or both.
struct Word2VecArrays {
    std::size_t window;
    bool cbow;
    std::size_t negative;
    Vector<float> keep, alias_keep;
    Ids alias_other;
    Places way_first;
    Ids way_node;
    Vector<std::uint8_t> way_right;
    InOut2<float> input, output;
};

}  // namespace

void bind_words(nb::module_ &m) {
    nb::class_<Word2VecArrays>(m, "Word2VecModel")
        .def(nb::init<std::size_t, bool, std::size_t, Vector<float>, Vector<float>, Ids, Places, Ids,
                      Vector<std::uint8_t>, InOut2<float>, InOut2<float>>(),
             nb::kw_only(), "window"_a, "cbow"_a, "negative"_a, "keep"_a, "alias_keep"_a, "alias_other"_a,
             "way_first"_a, "way_node"_a, "way_right"_a, "input"_a.noconvert(), "output"_a.noconvert());
    m.def(
        "word2vec_epoch",
        [](const Word2VecArrays &arrays, Ids ids, Places first, Vector<float> rates, std::uint64_t seed, int threads) {
            const auto &[window, cbow, negative, keep, alias_keep, alias_other, way_first, way_node, way_right, input,
                         output] = arrays;
            constexpr const char *expected =
                "word2vec_epoch: expected ids below the number of words, first (sentences + 1,) rising from 0 to their "
                "number, rates (sentences,), window >= 1, keep and the alias table (words,), ways through a tree with "
                "nodes below words - 1 or none, input (words, multiple of 16), output as wide with a row for each word "
                "(for negative samples) and for each node of the tree";
            const std::size_t n = input.shape(0), width = input.shape(1), sentences = rates.shape(0);
            const bool tree = way_first.shape(0) > 0;
            const std::size_t tree_row = negative > 0 ? n : 0, nodes = tree ? std::max<std::size_t>(n, 1) - 1 : 0;
            require(width % WIDTH == 0 && window >= 1 && all_below(ids, n) && rises(first, ids.shape(0)) &&
                        first.shape(0) == sentences + 1 && keep.shape(0) == n && output.shape(1) == width &&
                        output.shape(0) == tree_row + nodes && (negative > 0 || tree),
                    expected);
            require(negative == 0 ||
                        (alias_keep.shape(0) == n && alias_other.shape(0) == n && all_below(alias_other, n)),
                    expected);
            require(!tree || (way_first.shape(0) == n + 1 && rises(way_first, way_node.shape(0)) &&
                              way_right.shape(0) == way_node.shape(0) && all_below(way_node, nodes)),
                    expected);
            const Word2Vec model{n,
                                 width,
                                 input.data(),
                                 output.data(),
                                 keep.data(),
                                 window,
                                 cbow,
                                 negative,
                                 alias_keep.data(),
                                 alias_other.data(),
                                 tree ? way_first.data() : nullptr,
                                 way_node.data(),
                                 way_right.data(),
                                 tree_row};
            const int size = team(threads);
            Progress total;
            {
                nb::gil_scoped_release nogil;
                in_chunks(
                    sentences, std::max<std::size_t>(1, CHUNK * sentences / std::max<std::size_t>(ids.shape(0), 1)),
                    size,
                    [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                        Word2VecTrainer trainer(model);
                        Progress part;
#pragma omp for schedule(dynamic, 8)
                        for (std::ptrdiff_t s = begin; s < end; ++s) {
                            const std::int64_t from = first.data()[s], to = first.data()[s + 1];
                            const Progress done =
                                trainer.sentence(ids.data() + from, static_cast<std::size_t>(to - from),
                                                 rates.data()[s], Stream(seed, static_cast<std::uint64_t>(s)));
                            part.loss += done.loss;
                            part.pairs += done.pairs;
                            part.targets += done.targets;
                            part.words += done.words;
                        }
#pragma omp critical(epicycle_word2vec)
                        {
                            total.loss += part.loss;
                            total.pairs += part.pairs;
                            total.targets += part.targets;
                            total.words += part.words;
                        }
                    },
                    Interrupts{});
            }
            return std::make_tuple(total.loss, total.pairs, total.targets, total.words);
        },
        "model"_a, "ids"_a, "first"_a, "rates"_a, "seed"_a, "threads"_a);
    m.def(
        "word2vec_step",
        [](Vector<double> v, InOut2<double> targets, Vector<std::uint8_t> yes, double rate, InOut1<double> change) {
            const std::size_t n = v.shape(0), count = targets.shape(0);
            require(
                n % WIDTH == 0 && targets.shape(1) == n && yes.shape(0) == count && count <= MOST_TARGETS &&
                    change.shape(0) == n,
                "word2vec_step: expected v and change (multiple of 16,), at most 64 targets as wide, yes (targets,)");
            double *rows[MOST_TARGETS];
            bool answer[MOST_TARGETS];
            for (std::size_t j = 0; j < count; ++j) rows[j] = targets.data() + j * n, answer[j] = yes.data()[j] != 0;
            return step(v.data(), rows, answer, count, n, rate, change.data());
        },
        "v"_a, "targets"_a.noconvert(), "yes"_a, "rate"_a, "change"_a.noconvert());
    m.def(
        "cooccurrences",
        [](Ids ids, Places first, Vector<double> weight, std::size_t window) {
            require(rises(first, ids.shape(0)) && weight.shape(0) + 1 == first.shape(0) && window >= 1 &&
                        all_below(ids, std::size_t{1} << 31),
                    "cooccurrences: expected ids >= 0, first (sentences + 1,) rising from 0 to their number, weight "
                    "(sentences,), window >= 1");
            std::vector<std::int32_t> row, column;
            std::vector<double> count;
            {
                nb::gil_scoped_release nogil;
                const auto sums =
                    cooccurrences(ids.data(), first.data(), weight.shape(0), weight.data(), window, Interrupts{});
                row.reserve(sums.size());
                column.reserve(sums.size());
                count.reserve(sums.size());
                for (const auto &[key, sum] : sums) {
                    row.push_back(static_cast<std::int32_t>(key >> 32));
                    column.push_back(static_cast<std::int32_t>(key & 0xffffffff));
                    count.push_back(sum);
                }
            }
            return nb::make_tuple(array_out(std::move(row)), array_out(std::move(column)), array_out(std::move(count)));
        },
        "ids"_a, "first"_a, "weight"_a, "window"_a);
    bind_glove<float>(m);
    bind_glove<double>(m);
}

}  // namespace epicycle
