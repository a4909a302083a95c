// Bindings of kernel matrices, string kernels, the kernel perceptron.
#include "core/binding.hpp"
#include "kernel/blocks.hpp"
#include "kernel/perceptron.hpp"
#include "kernel/strings.hpp"

namespace epicycle {
namespace {

using Indices = Vector<std::int64_t>;

// Offsets of n runs in an array of `total` entries.
bool are_runs(const Indices &offsets, std::size_t total) {
    if (offsets.shape(0) < 1 || offsets.data()[0] != 0) return false;
    for (std::size_t i = 1; i < offsets.shape(0); ++i)
        if (offsets.data()[i] < offsets.data()[i - 1]) return false;
    return static_cast<std::size_t>(offsets.data()[offsets.shape(0) - 1]) == total;
}

bool letters_below(const Vector<Letter> &x, std::int64_t base) {
    for (std::size_t i = 0; i < x.shape(0); ++i)
        if (x.data()[i] < -1 || x.data()[i] >= base) return false;
    return true;
}

bool fits_in_63_bits(std::int64_t base, std::size_t k) {
    std::int64_t size = 1;
    for (std::size_t i = 0; i < k; ++i) {
        if (base < 1 || size > std::numeric_limits<std::int64_t>::max() / 2 / base) return false;
        size *= base;
    }
    return true;
}

constexpr std::size_t MOST_ENTRIES = std::size_t{1} << 40;  // of a table of words; more is never asked for

// The number of all words of length k, in each of n rows of a table.
std::size_t table_width(std::int64_t base, std::size_t k, std::size_t n) {
    const auto words = static_cast<std::size_t>(power_of(base, k));
    require(words <= MOST_ENTRIES / std::max<std::size_t>(n, 1), "too many words for a table");
    return words;
}

void check_words(const Vector<Letter> &letters, const Indices &offsets, std::size_t k, std::int64_t base,
                 const char *expected) {
    require(are_runs(offsets, letters.shape(0)) && k >= 1 && fits_in_63_bits(base, k) && letters_below(letters, base),
            expected);
}

template <class T>
void bind_blocks(nb::module_ &m) {
    m.def(
        "radial_block",
        [](InOut2<T> G, Vector<double> a_squares, Vector<double> b_squares, std::optional<RowMajor<T>> A,
           std::optional<RowMajor<T>> B, int kind, double parameter) {
            constexpr const char *expected =
                "radial_block: expected G (n, m), a_squares (n,), b_squares (m,), A (n, p) and B (m, p) or None, a "
                "kind from 0 to 5";
            const std::size_t n = G.shape(0), k = G.shape(1);
            require(a_squares.shape(0) == n && b_squares.shape(0) == k && kind >= 0 && kind <= 5, expected);
            require(A.has_value() == B.has_value(), expected);
            if (A) require(A->shape(0) == n && B->shape(0) == k && A->shape(1) == B->shape(1), expected);
            nb::gil_scoped_release nogil;
            radial_block(G.data(), n, k, a_squares.data(), b_squares.data(), A ? A->data() : nullptr,
                         B ? B->data() : nullptr, A ? A->shape(1) : 0, static_cast<Radial>(kind), parameter);
        },
        "G"_a.noconvert(), "a_squares"_a.noconvert(), "b_squares"_a.noconvert(), "A"_a.noconvert().none(),
        "B"_a.noconvert().none(), "kind"_a, "parameter"_a);
}

void bind_strings(nb::module_ &m) {
    m.def(
        "word_counts",
        [](Vector<Letter> letters, Indices offsets, std::size_t k, std::int64_t base) {
            check_words(letters, offsets, k, base,
                        "word_counts: expected letters from -1 to base - 1, their runs, k >= 1, base^k below 2^62");
            WordCounts found;
            {
                nb::gil_scoped_release nogil;
                found = word_counts(letters.data(), offsets.data(), offsets.shape(0) - 1, k, base);
            }
            return std::make_tuple(array_out(std::move(found.codes)), array_out(std::move(found.counts)),
                                   array_out(std::move(found.indptr)));
        },
        "letters"_a.noconvert(), "offsets"_a.noconvert(), "k"_a, "base"_a);
    m.def(
        "word_table",
        [](Vector<Letter> letters, Indices offsets, std::size_t k, std::int64_t base) {
            check_words(letters, offsets, k, base,
                        "word_table: expected letters from -1 to base - 1, their runs, k >= 1, base^k below 2^62");
            const std::size_t n = offsets.shape(0) - 1, words = table_width(base, k, n);
            Buffer out(n * words);
            {
                nb::gil_scoped_release nogil;
                word_table(letters.data(), offsets.data(), n, k, base, out.data.get());
            }
            return matrix_out(out, n, words);
        },
        "letters"_a.noconvert(), "offsets"_a.noconvert(), "k"_a, "base"_a);
    m.def(
        "gapped_words",
        [](Vector<Letter> letters, Indices offsets, std::size_t order, std::int64_t base, double decay, bool slope) {
            check_words(letters, offsets, order, base,
                        "gapped_words: expected letters from -1 to base - 1, their runs, order >= 1, base^order below "
                        "2^62");
            const std::size_t n = offsets.shape(0) - 1, words = table_width(base, order, n);
            Buffer out(n * words);
            {
                nb::gil_scoped_release nogil;
                const Interrupts interrupts;
                for (std::size_t i = 0; i < n; ++i) {
                    interrupts();
                    const auto letters_at = letters.data() + offsets.data()[i];
                    const auto length = static_cast<std::size_t>(offsets.data()[i + 1] - offsets.data()[i]);
                    double *row = out.data.get() + i * words;
                    const auto size = static_cast<std::size_t>(base);
                    if (!slope) {
                        std::vector<double> work;
                        gapped_words<double>(letters_at, length, order, size, decay, row, work);
                        continue;
                    }
                    std::vector<Dual> both(words), work;
                    gapped_words<Dual>(letters_at, length, order, size, {decay, 1.0}, both.data(), work);
                    for (std::size_t u = 0; u < words; ++u) row[u] = both[u].slope;
                }
            }
            return matrix_out(out, n, words);
        },
        "letters"_a.noconvert(), "offsets"_a.noconvert(), "order"_a, "base"_a, "decay"_a, "slope"_a);
    m.def(
        "neighbour_words",
        [](Vector<Letter> words, std::size_t k, std::int64_t base, std::size_t mismatches) {
            require(k >= 1 && words.shape(0) % k == 0 && fits_in_63_bits(base, k) && letters_below(words, base),
                    "neighbour_words: expected words of k letters from -1 to base - 1, base^k below 2^62");
            std::vector<std::int64_t> codes, indptr{0};
            {
                nb::gil_scoped_release nogil;
                for (std::size_t i = 0; i < words.shape(0); i += k) {
                    neighbour_words(words.data() + i, k, base, mismatches, 0, 0, codes);
                    indptr.push_back(static_cast<std::int64_t>(codes.size()));
                }
            }
            return std::make_tuple(array_out(std::move(codes)), array_out(std::move(indptr)));
        },
        "words"_a.noconvert(), "k"_a, "base"_a, "mismatches"_a);
    m.def(
        "sparse_product",
        [](Vector<double> a_data, Indices a_indices, Indices a_indptr, Vector<double> b_data, Indices b_rows,
           Indices b_indptr, InOut2<double> out) {
            constexpr const char *expected =
                "sparse_product: expected A in CSR (n, c), B in CSC (m, c) with 64-bit indices, out (n, m)";
            require(are_runs(a_indptr, a_data.shape(0)) && are_runs(b_indptr, b_data.shape(0)), expected);
            require(a_indices.shape(0) == a_data.shape(0) && b_rows.shape(0) == b_data.shape(0), expected);
            require(out.shape(0) == a_indptr.shape(0) - 1, expected);
            require(all_below(a_indices, b_indptr.shape(0) - 1) && all_below(b_rows, out.shape(1)), expected);
            nb::gil_scoped_release nogil;
            sparse_product(a_data.data(), a_indices.data(), a_indptr.data(), 0, out.shape(0), b_data.data(),
                           b_rows.data(), b_indptr.data(), out.shape(1), out.data());
        },
        "a_data"_a.noconvert(), "a_indices"_a.noconvert(), "a_indptr"_a.noconvert(), "b_data"_a.noconvert(),
        "b_rows"_a.noconvert(), "b_indptr"_a.noconvert(), "out"_a.noconvert());
    m.def(
        "subsequence_block",
        [](Vector<Letter> s, Indices s_offsets, Vector<Letter> t, Indices t_offsets, std::size_t order, double decay,
           bool slope) {
            require(are_runs(s_offsets, s.shape(0)) && are_runs(t_offsets, t.shape(0)) && order >= 1,
                    "subsequence_block: expected letters and their runs, order >= 1");
            const std::size_t n = s_offsets.shape(0) - 1, k = t_offsets.shape(0) - 1;
            Buffer out(n * k);
            {
                nb::gil_scoped_release nogil;
                std::vector<double> plain;
                std::vector<Dual> dual;
                for (std::size_t i = 0; i < n; ++i)
                    for (std::size_t j = 0; j < k; ++j) {
                        const std::int64_t a = s_offsets.data()[i], b = t_offsets.data()[j];
                        const auto length_a = static_cast<std::size_t>(s_offsets.data()[i + 1] - a);
                        const auto length_b = static_cast<std::size_t>(t_offsets.data()[j + 1] - b);
                        const Letter *u = s.data() + a, *v = t.data() + b;
                        out.data[i * k + j] =
                            slope ? subsequence_kernel<Dual>(u, length_a, v, length_b, order, {decay, 1.0}, dual).slope
                                  : subsequence_kernel<double>(u, length_a, v, length_b, order, decay, plain);
                    }
            }
            return matrix_out(out, n, k);
        },
        "s"_a.noconvert(), "s_offsets"_a.noconvert(), "t"_a.noconvert(), "t_offsets"_a.noconvert(), "order"_a,
        "decay"_a, "slope"_a);
}

}  // namespace

void bind_kernel(nb::module_ &m) {
    bind_blocks<double>(m);
    bind_blocks<float>(m);
    m.def(
        "columns_block",
        [](RowMajor<double> A, RowMajor<double> Bt, int kind, double parameter) {
            const std::size_t n = A.shape(0), k = Bt.shape(1);
            require(A.shape(1) == Bt.shape(0) && kind >= 0 && kind <= 5,
                    "columns_block: expected A (n, p), Bt (p, m), a kind from 0 to 5");
            Buffer out(n * k);
            {
                nb::gil_scoped_release nogil;
                columns_block(A.data(), n, A.shape(1), Bt.data(), k, static_cast<Columns>(kind), parameter,
                              out.data.get());
            }
            return matrix_out(out, n, k);
        },
        "A"_a.noconvert(), "Bt"_a.noconvert(), "kind"_a, "parameter"_a);
    bind_strings(m);
    m.def(
        "perceptron_pass",
        [](RowMajor<double> K, Indices order, Weight share, std::size_t first, Vector<double> sign,
           InOut1<double> scores, InOut1<double> counts, double square) {
            constexpr const char *expected =
                "kernel.perceptron_pass: expected K (n, n), order (m,) of rows, share (m,) or None, sign, scores and "
                "counts (n,)";
            constexpr std::size_t PIECE = 4096;  // rows between two looks at the clock
            const std::size_t n = K.shape(0), m = order.shape(0);
            require(K.shape(1) == n && sign.shape(0) == n && scores.shape(0) == n && counts.shape(0) == n, expected);
            require(all_below(order, n) && first <= m, expected);
            const double *shares = pointer(share, m, expected);
            std::vector<std::int64_t> at(m - first);
            std::size_t made = 0;
            {
                nb::gil_scoped_release nogil;
                const Interrupts interrupts;
                for (std::size_t from = first; from < m; from += PIECE) {
                    made += kernel_perceptron_pass(K.data(), n, order.data(), shares, from, std::min(m, from + PIECE),
                                                   sign.data(), scores.data(), counts.data(), square, at.data() + made);
                    interrupts();
                }
            }
            at.resize(made);
            return std::make_tuple(array_out(std::move(at)), square);
        },
        "K"_a.noconvert(), "order"_a.noconvert(), "share"_a.noconvert().none(), "first"_a, "sign"_a.noconvert(),
        "scores"_a.noconvert(), "counts"_a.noconvert(), "square"_a);
    m.def(
        "margin_pass",
        [](RowMajor<double> K, Vector<double> sign, InOut1<double> scores, InOut1<double> a, double square) {
            const std::size_t n = K.shape(0);
            require(K.shape(1) == n && sign.shape(0) == n && scores.shape(0) == n && a.shape(0) == n,
                    "kernel.margin_pass: expected K (n, n), sign, scores and a (n,)");
            nb::gil_scoped_release nogil;
            kernel_margin_pass(K.data(), n, sign.data(), scores.data(), a.data(), square);
            return square;
        },
        "K"_a.noconvert(), "sign"_a.noconvert(), "scores"_a.noconvert(), "a"_a.noconvert(), "square"_a);
}

}  // namespace epicycle
