// Bindings of topics of documents: variational inference and Gibbs sampling.
#include "core/binding.hpp"
#include "core/threads.hpp"
#include "decomposition/topic_inference.hpp"
#include "decomposition/topic_sampler.hpp"

namespace epicycle {

namespace {

// The words of all documents, one by one; a segment has those of a document in a part of the vocabulary.
struct TokenArrays {
    Vector<std::int32_t> words;
    Vector<std::int64_t> segments, bounds;
    Vector<double> sizes;
};

}  // namespace

void bind_topics(nb::module_ &m) {
    m.def("padded_topics", [](std::size_t k) { return padded(k); }, "k"_a);
    m.def(
        "expected_topics",
        [](RowMajor<double> lambda, Vector<double> totals, double prior, bool want_bound, InOut2<double> b,
           InOut1<double> shift, int threads) {
            const std::size_t p = lambda.shape(0), k = lambda.shape(1), kp = padded(k);
            require(totals.shape(0) == k && b.shape(0) == p && b.shape(1) == kp && shift.shape(0) == p,
                    "expected_topics: expected lambda (p, k), totals (k,), b (p, padded k), shift (p,)");
            constexpr std::size_t WORDS = 256;  // of a piece, whose terms are added up in the order of the pieces
            const std::size_t pieces = (p + WORDS - 1) / WORDS;
            [[maybe_unused]] const int many = team(threads);
            Buffer term(k);
            std::vector<double> terms(pieces * k, 0.0), log_totals(k);
            for (std::size_t j = 0; j < k; ++j) log_totals[j] = digamma(totals.data()[j]);
            {
                nb::gil_scoped_release nogil;
#pragma omp parallel for schedule(static) num_threads(many) if (many > 1)
                for (std::int64_t piece = 0; piece < static_cast<std::int64_t>(pieces); ++piece) {
                    const std::size_t from = static_cast<std::size_t>(piece) * WORDS;
                    for (std::size_t w = from; w < std::min(from + WORDS, p); ++w) {
                        double *row = b.data() + w * kp;
                        std::fill(row + k, row + kp, 0.0);
                        shift.data()[w] = expected_row(lambda.data() + w * k, log_totals.data(), k, prior, row,
                                                       terms.data() + static_cast<std::size_t>(piece) * k, want_bound);
                    }
                }
                for (std::size_t piece = 0; piece < pieces; ++piece)
                    for (std::size_t j = 0; j < k; ++j) term.data[j] += terms[piece * k + j];
            }
            return vector_out(term, k);
        },
        "lambda_"_a.noconvert(), "totals"_a.noconvert(), "prior"_a, "want_bound"_a, "b"_a.noconvert(),
        "shift"_a.noconvert(), "threads"_a);
    for_compressed<CsrMatrix>([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "infer_documents",
            [](X table, Weight weight, RowMajor<double> b, Vector<double> shift, Vector<double> alpha, double tol,
               std::size_t most, bool want_bound, InOut2<double> gamma, std::optional<InOut2<double>> sums,
               std::optional<InOut1<double>> logs, int threads) {
                constexpr const char *expected =
                    "infer_documents: expected X (n, p) in CSR, weight (n,) or None, b (p, padded k), shift (p,), "
                    "alpha (k,) above 0, most >= 1, gamma (n, k), sums like b or None, logs (k,) or None";
                const auto rows = view(table, expected);
                const double *w = pointer(weight, rows.rows, expected);
                const std::size_t k = alpha.shape(0), kp = padded(k), p = rows.cols;
                require(k >= 1 && most >= 1 && b.shape(0) == p && b.shape(1) == kp && shift.shape(0) == p &&
                            gamma.shape(0) == rows.rows && gamma.shape(1) == k &&
                            (!sums || (sums->shape(0) == p && sums->shape(1) == kp)) && (!logs || logs->shape(0) == k),
                        expected);
                double total = 0.0, term = 0.0;
                for (std::size_t j = 0; j < k; ++j) {
                    require(alpha.data()[j] > 0.0, expected);
                    total += alpha.data()[j];
                    term -= std::lgamma(alpha.data()[j]);
                }
                const TopicRows topics{b.data(), shift.data(), alpha.data(), term + std::lgamma(total), k, kp};
                const int many = team(threads);
                Ascent made;
                {
                    nb::gil_scoped_release nogil;
                    made = ascend_documents(rows, w, topics, tol, most, want_bound, gamma.data(),
                                            sums ? sums->data() : nullptr, logs ? logs->data() : nullptr, many,
                                            Interrupts());
                }
                return std::make_tuple(made.bound, made.steps);
            },
            "X"_a.noconvert(), "weight"_a.none(), "b"_a.noconvert(), "shift"_a.noconvert(), "alpha"_a.noconvert(),
            "tol"_a, "most"_a, "want_bound"_a, "gamma"_a.noconvert(), "sums"_a.noconvert().none(),
            "logs"_a.noconvert().none(), "threads"_a);
    });
    m.def("lanes_of_topics", [](std::size_t k) { return in_lanes(k); }, "k"_a);
    nb::class_<TokenArrays>(m, "Tokens")
        .def(nb::init<Vector<std::int32_t>, Vector<std::int64_t>, Vector<std::int64_t>, Vector<double>>(), "words"_a,
             "segments"_a, "bounds"_a, "sizes"_a);
    m.def(
        "draw_tokens",
        [](const TokenArrays &arrays, RowMajor<double> masses, Vector<float> alpha, double eta, std::uint64_t seed,
           std::uint64_t sweep, InOut1<std::int32_t> z, InOut2<float> counts, InOut2<double> totals, int threads) {
            const auto &[words, segments, bounds, sizes] = arrays;
            constexpr const char *expected =
                "draw_tokens: expected words and z (N,), bounds (parts + 1,) of documents, segments (documents * parts "
                "+ 1,) from 0 to N that never fall, sizes (parts,), masses and totals (parts, k), counts (p, kp) and "
                "alpha (kp,) with kp the multiple of 16 from k, words below p, z below k, eta above 0";
            const std::size_t parts = sizes.shape(0), k = masses.shape(1), kp = in_lanes(k), p = counts.shape(0);
            const std::size_t N = words.shape(0);
            require(parts >= 1 && k >= 1 && z.shape(0) == N && counts.shape(1) == kp && alpha.shape(0) == kp &&
                        masses.shape(0) == parts && totals.shape(0) == parts && totals.shape(1) == k && eta > 0.0 &&
                        all_below(words, p) && all_below(z, k) && bounds.shape(0) == parts + 1 &&
                        segments.shape(0) >= 1 && (segments.shape(0) - 1) % parts == 0,
                    expected);
            const std::size_t documents = (segments.shape(0) - 1) / parts;
            const auto rising = [](const Vector<std::int64_t> &x, std::size_t last) {
                for (std::size_t i = 0; i + 1 < x.shape(0); ++i)
                    if (x.data()[i] > x.data()[i + 1]) return false;
                return x.data()[0] == 0 && x.data()[x.shape(0) - 1] == static_cast<std::int64_t>(last);
            };
            require(rising(segments, N) && rising(bounds, documents), expected);
            const Tokens tokens{words.data(),  segments.data(), documents, parts, sizes.data(),
                                masses.data(), alpha.data(),    eta,       k,     kp};
            const int many = team(threads);
            nb::gil_scoped_release nogil;
            draw_tokens(tokens, bounds.data(), seed, sweep, z.data(), counts.data(), totals.data(), many, Interrupts());
        },
        "tokens"_a, "masses"_a.noconvert(), "alpha"_a.noconvert(), "eta"_a, "seed"_a, "sweep"_a, "z"_a.noconvert(),
        "counts"_a.noconvert(), "totals"_a.noconvert(), "threads"_a);
}

}  // namespace epicycle
