// Bindings of kernel matrices, string kernels, the kernel perceptron and nearest neighbours.
#include "binding.hpp"
#include "kernel_blocks.hpp"
#include "kernel_perceptron.hpp"
#include "kernel_strings.hpp"
#include "neighbours.hpp"

namespace epicycle {
namespace {

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Change1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Change2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Indices = Vector<std::int64_t>;
using OutIndices = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;
using OutNumbers = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

template <class Out, class T>
Out hand_over(std::vector<T> &&found) {
    auto *held = new std::vector<T>(std::move(found));
    nb::capsule owner(held, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return Out(held->data(), {held->size()}, owner);
}

// Offsets of n runs in an array of `total` entries.
bool are_runs(const Indices &offsets, std::size_t total) {
    if (offsets.shape(0) < 1 || offsets.data()[0] != 0) return false;
    for (std::size_t i = 1; i < offsets.shape(0); ++i)
        if (offsets.data()[i] < offsets.data()[i - 1]) return false;
    return static_cast<std::size_t>(offsets.data()[offsets.shape(0) - 1]) == total;
}

bool all_below(const Indices &x, std::size_t bound) {
    for (std::size_t i = 0; i < x.shape(0); ++i)
        if (x.data()[i] < 0 || static_cast<std::size_t>(x.data()[i]) >= bound) return false;
    return true;
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

std::size_t power_of(std::int64_t base, std::size_t k) {
    std::size_t size = 1;
    for (std::size_t i = 0; i < k; ++i) size *= static_cast<std::size_t>(base);
    return size;
}

template <class T>
void bind_blocks(nb::module_ &m) {
    m.def(
        "radial_block",
        [](Change2<T> G, Vector<double> a_squares, Vector<double> b_squares, std::optional<Rows<T>> A,
           std::optional<Rows<T>> B, int kind, double parameter) {
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

// Places of the short lists of n queries.
struct Lists {
    Change2<double> score;
    Change2<std::int64_t> row;
    Change1<std::int64_t> count;
    Change1<double> limit;

    std::size_t n() const { return score.shape(0); }
    std::size_t room() const { return score.shape(1); }
    bool sound(std::size_t k, std::size_t rows) const {
        if (row.shape(0) != n() || row.shape(1) != room() || count.shape(0) != n() || limit.shape(0) != n() || k < 1 ||
            room() < k + 1)
            return false;
        for (std::size_t i = 0; i < n(); ++i) {
            if (count.data()[i] < 0 || static_cast<std::size_t>(count.data()[i]) >= room()) return false;
            for (std::int64_t j = 0; j < count.data()[i]; ++j) {
                const std::int64_t r = row.data()[i * room() + static_cast<std::size_t>(j)];
                if (r < 0 || static_cast<std::size_t>(r) >= rows) return false;
            }
        }
        return true;
    }
};

template <class U, class Exact>
void take_in_block(const Rows<U> &G, const std::optional<Vector<U>> &c, std::size_t first, std::size_t rows,
                   const Exact &exact, const Vector<double> &base, const Vector<double> &slack, double scale,
                   std::size_t k, Lists lists) {
    constexpr const char *expected =
        "neighbours: expected G (n, m), c (m,) or None, base and slack (n,), scale > 0, lists of n queries, k >= 1, "
        "rows that exist";
    const std::size_t n = G.shape(0), m = G.shape(1);
    require(lists.n() == n && (!c || c->shape(0) == m) && base.shape(0) == n && slack.shape(0) == n, expected);
    require(scale > 0.0 && first + m <= rows && lists.sound(k, rows), expected);
    nb::gil_scoped_release nogil;
    take_in(G.data(), c ? c->data() : nullptr, n, m, first, exact, base.data(), slack.data(), scale, k, lists.room(),
            lists.score.data(), lists.row.data(), lists.count.data(), lists.limit.data());
}

template <class Exact>
auto settle_lists(const Exact &exact, std::size_t rows, std::size_t k, Lists lists) {
    const std::size_t n = lists.n();
    require(lists.sound(k, rows), "neighbours: expected lists of n queries, k >= 1, rows that exist");
    for (std::size_t i = 0; i < n; ++i)
        require(static_cast<std::size_t>(lists.count.data()[i]) >= k, "neighbours: a list is shorter than k");
    Buffer distances(n * k);
    std::vector<std::int64_t> found(n * k);
    {
        nb::gil_scoped_release nogil;
        std::vector<std::pair<double, std::int64_t>> work;
        for (std::size_t i = 0; i < n; ++i) {
            const Candidates list{lists.score.data() + i * lists.room(),
                                  lists.row.data() + i * lists.room(),
                                  lists.count.data()[i],
                                  lists.limit.data()[i],
                                  lists.room(),
                                  k};
            list.nearest(exact, i, work);
            for (std::size_t j = 0; j < k; ++j) {
                distances.data[i * k + j] = work[j].first;
                found[i * k + j] = work[j].second;
            }
        }
    }
    return std::make_tuple(matrix_out(distances, n, k), hand_over<OutIndices>(std::move(found)));
}

template <class T>
DenseRows<T> dense_rows(const Rows<T> &A, const Rows<T> &B, int metric, double power) {
    require(A.shape(1) == B.shape(1) && metric >= 0 && metric <= 4 && power > 0.0,
            "neighbours: expected A (n, p), B (m, p), a metric from 0 to 4, power > 0");
    return {A.data(), B.data(), A.shape(1), static_cast<Metric>(metric), power};
}

template <class T, class U>
void bind_dense_neighbours(nb::module_ &m) {
    m.def(
        "neighbours_dense",
        [](Rows<U> G, std::optional<Vector<U>> c, std::size_t first, Rows<T> A, Rows<T> B, int metric, double power,
           Vector<double> base, Vector<double> slack, double scale, std::size_t k, Change2<double> score,
           Change2<std::int64_t> row, Change1<std::int64_t> count, Change1<double> limit) {
            require(A.shape(0) == G.shape(0), "neighbours_dense: expected A (n, p) for G (n, m)");
            take_in_block(G, c, first, B.shape(0), dense_rows(A, B, metric, power), base, slack, scale, k,
                          Lists{score, row, count, limit});
        },
        "G"_a.noconvert(), "c"_a.noconvert().none(), "first"_a, "A"_a.noconvert(), "B"_a.noconvert(), "metric"_a,
        "power"_a, "base"_a.noconvert(), "slack"_a.noconvert(), "scale"_a, "k"_a, "score"_a.noconvert(),
        "row"_a.noconvert(), "count"_a.noconvert(), "limit"_a.noconvert());
}

template <class T>
void bind_dense_exact(nb::module_ &m) {
    m.def(
        "neighbours_dense_settle",
        [](Rows<T> A, Rows<T> B, int metric, double power, std::size_t k, Change2<double> score,
           Change2<std::int64_t> row, Change1<std::int64_t> count, Change1<double> limit) {
            require(A.shape(0) == score.shape(0), "neighbours_dense_settle: expected A (n, p) for n lists");
            return settle_lists(dense_rows(A, B, metric, power), B.shape(0), k, Lists{score, row, count, limit});
        },
        "A"_a.noconvert(), "B"_a.noconvert(), "metric"_a, "power"_a, "k"_a, "score"_a.noconvert(), "row"_a.noconvert(),
        "count"_a.noconvert(), "limit"_a.noconvert());
    m.def(
        "exact_distances",
        [](Rows<T> A, Rows<T> B, int metric, double power, Change2<std::int64_t> row) {
            constexpr const char *expected = "exact_distances: expected A (n, p), B (m, p), row (n, k) of rows of B";
            const std::size_t n = A.shape(0), k = row.shape(1);
            require(row.shape(0) == n, expected);
            for (std::size_t i = 0; i < n * k; ++i)
                require(row.data()[i] >= 0 && static_cast<std::size_t>(row.data()[i]) < B.shape(0), expected);
            const DenseRows<T> exact = dense_rows(A, B, metric, power);
            Buffer out(n * k);
            {
                nb::gil_scoped_release nogil;
                for (std::size_t i = 0; i < n; ++i)
                    for (std::size_t j = 0; j < k; ++j)
                        out.data[i * k + j] = exact(i, static_cast<std::size_t>(row.data()[i * k + j]));
            }
            return matrix_out(out, n, k);
        },
        "A"_a.noconvert(), "B"_a.noconvert(), "metric"_a, "power"_a, "row"_a.noconvert());
}

template <class T, class I>
Csr<T, I> csr_rows(const Vector<T> &data, const Vector<I> &indices, const Vector<I> &indptr, std::size_t cols) {
    constexpr const char *expected = "neighbours: expected a CSR matrix";
    require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), expected);
    const Csr<T, I> X{data.data(), indices.data(), indptr.data(), indptr.shape(0) - 1, cols};
    // Columns are compared, never followed: only the runs can lead out of the arrays.
    require(X.indptr[0] >= 0 && static_cast<std::size_t>(X.indptr[X.rows]) <= data.shape(0), expected);
    for (std::size_t i = 0; i < X.rows; ++i) require(X.indptr[i] <= X.indptr[i + 1], expected);
    return X;
}

template <class T, class I>
void bind_sparse_neighbours(nb::module_ &m) {
    m.def(
        "neighbours_csr",
        [](Rows<double> G, std::optional<Vector<double>> c, std::size_t first, Vector<T> a_data, Vector<I> a_indices,
           Vector<I> a_indptr, Vector<T> b_data, Vector<I> b_indices, Vector<I> b_indptr, std::size_t n_columns,
           int metric, double power, Vector<double> base, Vector<double> slack, double scale, std::size_t k,
           Change2<double> score, Change2<std::int64_t> row, Change1<std::int64_t> count, Change1<double> limit) {
            const Csr<T, I> A = csr_rows(a_data, a_indices, a_indptr, n_columns),
                            B = csr_rows(b_data, b_indices, b_indptr, n_columns);
            require(A.rows == G.shape(0) && metric >= 0 && metric <= 4, "neighbours_csr: expected A for G (n, m)");
            take_in_block(G, c, first, B.rows, SparseRows<T, I>{A, B, static_cast<Metric>(metric), power}, base, slack,
                          scale, k, Lists{score, row, count, limit});
        },
        "G"_a.noconvert(), "c"_a.noconvert().none(), "first"_a, "a_data"_a.noconvert(), "a_indices"_a.noconvert(),
        "a_indptr"_a.noconvert(), "b_data"_a.noconvert(), "b_indices"_a.noconvert(), "b_indptr"_a.noconvert(),
        "n_columns"_a, "metric"_a, "power"_a, "base"_a.noconvert(), "slack"_a.noconvert(), "scale"_a, "k"_a,
        "score"_a.noconvert(), "row"_a.noconvert(), "count"_a.noconvert(), "limit"_a.noconvert());
    m.def(
        "neighbours_csr_settle",
        [](Vector<T> a_data, Vector<I> a_indices, Vector<I> a_indptr, Vector<T> b_data, Vector<I> b_indices,
           Vector<I> b_indptr, std::size_t n_columns, int metric, double power, std::size_t k, Change2<double> score,
           Change2<std::int64_t> row, Change1<std::int64_t> count, Change1<double> limit) {
            const Csr<T, I> A = csr_rows(a_data, a_indices, a_indptr, n_columns),
                            B = csr_rows(b_data, b_indices, b_indptr, n_columns);
            require(A.rows == score.shape(0) && metric >= 0 && metric <= 4, "neighbours_csr_settle: expected n lists");
            return settle_lists(SparseRows<T, I>{A, B, static_cast<Metric>(metric), power}, B.rows, k,
                                Lists{score, row, count, limit});
        },
        "a_data"_a.noconvert(), "a_indices"_a.noconvert(), "a_indptr"_a.noconvert(), "b_data"_a.noconvert(),
        "b_indices"_a.noconvert(), "b_indptr"_a.noconvert(), "n_columns"_a, "metric"_a, "power"_a, "k"_a,
        "score"_a.noconvert(), "row"_a.noconvert(), "count"_a.noconvert(), "limit"_a.noconvert());
    m.def(
        "csr_distances",
        [](Vector<T> a_data, Vector<I> a_indices, Vector<I> a_indptr, Vector<T> b_data, Vector<I> b_indices,
           Vector<I> b_indptr, std::size_t n_columns, int metric, double power) {
            const Csr<T, I> A = csr_rows(a_data, a_indices, a_indptr, n_columns),
                            B = csr_rows(b_data, b_indices, b_indptr, n_columns);
            require(metric >= 0 && metric <= 4, "csr_distances: expected a metric from 0 to 4");
            const SparseRows<T, I> exact{A, B, static_cast<Metric>(metric), power};
            Buffer out(A.rows * B.rows);
            {
                nb::gil_scoped_release nogil;
                for (std::size_t i = 0; i < A.rows; ++i)
                    for (std::size_t j = 0; j < B.rows; ++j) out.data[i * B.rows + j] = exact(i, j);
            }
            return matrix_out(out, A.rows, B.rows);
        },
        "a_data"_a.noconvert(), "a_indices"_a.noconvert(), "a_indptr"_a.noconvert(), "b_data"_a.noconvert(),
        "b_indices"_a.noconvert(), "b_indptr"_a.noconvert(), "n_columns"_a, "metric"_a, "power"_a);
}

void bind_strings(nb::module_ &m) {
    m.def(
        "word_counts",
        [](Vector<Letter> letters, Indices offsets, std::size_t k, std::int64_t base) {
            require(are_runs(offsets, letters.shape(0)) && k >= 1 && fits_in_63_bits(base, k) &&
                        letters_below(letters, base),
                    "word_counts: expected letters from -1 to base - 1, their runs, k >= 1, base^k below 2^62");
            WordCounts found;
            {
                nb::gil_scoped_release nogil;
                found = word_counts(letters.data(), offsets.data(), offsets.shape(0) - 1, k, base);
            }
            return std::make_tuple(hand_over<OutIndices>(std::move(found.codes)),
                                   hand_over<OutNumbers>(std::move(found.counts)),
                                   hand_over<OutIndices>(std::move(found.indptr)));
        },
        "letters"_a.noconvert(), "offsets"_a.noconvert(), "k"_a, "base"_a);
    m.def(
        "word_table",
        [](Vector<Letter> letters, Indices offsets, std::size_t k, std::int64_t base) {
            require(are_runs(offsets, letters.shape(0)) && k >= 1 && fits_in_63_bits(base, k) &&
                        letters_below(letters, base),
                    "word_table: expected letters from -1 to base - 1, their runs, k >= 1, base^k below 2^62");
            const std::size_t n = offsets.shape(0) - 1, words = power_of(base, k);
            require(words <= MOST_ENTRIES / std::max<std::size_t>(n, 1), "too many words for a table");
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
            require(are_runs(offsets, letters.shape(0)) && order >= 1 && fits_in_63_bits(base, order) &&
                        letters_below(letters, base),
                    "gapped_words: expected letters from -1 to base - 1, their runs, order >= 1, base^order below "
                    "2^62");
            const std::size_t n = offsets.shape(0) - 1, words = power_of(base, order);
            require(words <= MOST_ENTRIES / std::max<std::size_t>(n, 1), "too many words for a table");
            Buffer out(n * words);
            for (std::size_t i = 0; i < n; ++i) {
                if (i % 64 == 63 && PyErr_CheckSignals() != 0) throw nb::python_error();
                nb::gil_scoped_release nogil;
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
            return std::make_tuple(hand_over<OutIndices>(std::move(codes)), hand_over<OutIndices>(std::move(indptr)));
        },
        "words"_a.noconvert(), "k"_a, "base"_a, "mismatches"_a);
    m.def(
        "sparse_product",
        [](Vector<double> a_data, Indices a_indices, Indices a_indptr, Vector<double> b_data, Indices b_rows,
           Indices b_indptr, Change2<double> out) {
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
        [](Rows<double> A, Rows<double> Bt, int kind, double parameter) {
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
        "kernel_perceptron_pass",
        [](Rows<double> K, Indices order, Weight share, std::size_t first, Vector<double> sign, Change1<double> scores,
           Change1<double> counts, double square) {
            constexpr const char *expected =
                "kernel_perceptron_pass: expected K (n, n), order (m,) of rows, share (m,) or None, sign, scores and "
                "counts (n,)";
            constexpr std::size_t PIECE = 4096;  // rows between two looks for an interrupt
            const std::size_t n = K.shape(0), m = order.shape(0);
            require(K.shape(1) == n && sign.shape(0) == n && scores.shape(0) == n && counts.shape(0) == n, expected);
            require(all_below(order, n) && first <= m, expected);
            const double *shares = pointer(share, m, expected);
            std::vector<std::int64_t> at(m - first);
            std::size_t made = 0;
            for (std::size_t from = first; from < m; from += PIECE) {
                if (from > first && PyErr_CheckSignals() != 0) throw nb::python_error();
                nb::gil_scoped_release nogil;
                made += kernel_perceptron_pass(K.data(), n, order.data(), shares, from, std::min(m, from + PIECE),
                                               sign.data(), scores.data(), counts.data(), square, at.data() + made);
            }
            at.resize(made);
            return std::make_tuple(hand_over<OutIndices>(std::move(at)), square);
        },
        "K"_a.noconvert(), "order"_a.noconvert(), "share"_a.noconvert().none(), "first"_a, "sign"_a.noconvert(),
        "scores"_a.noconvert(), "counts"_a.noconvert(), "square"_a);
    m.def(
        "kernel_margin_pass",
        [](Rows<double> K, Vector<double> sign, Change1<double> scores, Change1<double> a, double square) {
            const std::size_t n = K.shape(0);
            require(K.shape(1) == n && sign.shape(0) == n && scores.shape(0) == n && a.shape(0) == n,
                    "kernel_margin_pass: expected K (n, n), sign, scores and a (n,)");
            nb::gil_scoped_release nogil;
            kernel_margin_pass(K.data(), n, sign.data(), scores.data(), a.data(), square);
            return square;
        },
        "K"_a.noconvert(), "sign"_a.noconvert(), "scores"_a.noconvert(), "a"_a.noconvert(), "square"_a);
    bind_dense_neighbours<float, float>(m);
    bind_dense_neighbours<float, double>(m);
    bind_dense_neighbours<double, float>(m);
    bind_dense_neighbours<double, double>(m);
    bind_dense_exact<float>(m);
    bind_dense_exact<double>(m);
    bind_sparse_neighbours<float, std::int32_t>(m);
    bind_sparse_neighbours<float, std::int64_t>(m);
    bind_sparse_neighbours<double, std::int32_t>(m);
    bind_sparse_neighbours<double, std::int64_t>(m);
    m.def(
        "neighbours_given",
        [](Rows<double> G, std::size_t first, std::size_t rows, std::size_t k, Change2<double> score,
           Change2<std::int64_t> row, Change1<std::int64_t> count, Change1<double> limit) {
            const std::size_t n = G.shape(0);
            const std::vector<double> zero(n, 0.0);
            constexpr const char *expected = "neighbours_given: expected G (n, m), lists of n queries, rows that exist";
            Lists lists{score, row, count, limit};
            require(lists.n() == n && first + G.shape(1) <= rows && lists.sound(k, rows), expected);
            nb::gil_scoped_release nogil;
            take_in<double>(G.data(), nullptr, n, G.shape(1), first, GivenRows{}, zero.data(), zero.data(), 1.0, k,
                            lists.room(), lists.score.data(), lists.row.data(), lists.count.data(), lists.limit.data());
        },
        "G"_a.noconvert(), "first"_a, "rows"_a, "k"_a, "score"_a.noconvert(), "row"_a.noconvert(),
        "count"_a.noconvert(), "limit"_a.noconvert());
    m.def(
        "neighbours_given_settle",
        [](std::size_t rows, std::size_t k, Change2<double> score, Change2<std::int64_t> row,
           Change1<std::int64_t> count,
           Change1<double> limit) { return settle_lists(GivenRows{}, rows, k, Lists{score, row, count, limit}); },
        "rows"_a, "k"_a, "score"_a.noconvert(), "row"_a.noconvert(), "count"_a.noconvert(), "limit"_a.noconvert());
}

}  // namespace epicycle
