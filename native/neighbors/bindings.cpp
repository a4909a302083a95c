// Bindings of nearest neighbours.
#include "core/binding.hpp"
#include "neighbors/brute_force.hpp"

namespace epicycle {
namespace {

// Places of the short lists of n queries.
struct Lists {
    InOut2<double> score;
    InOut2<std::int64_t> row;
    InOut1<std::int64_t> count;
    InOut1<double> limit;

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
void take_in_block(const RowMajor<U> &G, const std::optional<Vector<U>> &c, std::size_t first, std::size_t rows,
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
    return std::make_tuple(matrix_out(distances, n, k), array_out(std::move(found)));
}

template <class T>
DenseRows<T> dense_rows(const RowMajor<T> &A, const RowMajor<T> &B, int metric, double power) {
    require(A.shape(1) == B.shape(1) && metric >= 0 && metric <= 4 && power > 0.0,
            "neighbours: expected A (n, p), B (m, p), a metric from 0 to 4, power > 0");
    return {A.data(), B.data(), A.shape(1), static_cast<Metric>(metric), power};
}

template <class T, class U>
void bind_dense_neighbours(nb::module_ &m) {
    m.def(
        "dense_update",
        [](RowMajor<U> G, std::optional<Vector<U>> c, std::size_t first, RowMajor<T> A, RowMajor<T> B, int metric,
           double power, Vector<double> base, Vector<double> slack, double scale, std::size_t k, InOut2<double> score,
           InOut2<std::int64_t> row, InOut1<std::int64_t> count, InOut1<double> limit) {
            require(A.shape(0) == G.shape(0), "neighbors.dense_update: expected A (n, p) for G (n, m)");
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
        "dense_settle",
        [](RowMajor<T> A, RowMajor<T> B, int metric, double power, std::size_t k, InOut2<double> score,
           InOut2<std::int64_t> row, InOut1<std::int64_t> count, InOut1<double> limit) {
            require(A.shape(0) == score.shape(0), "neighbors.dense_settle: expected A (n, p) for n lists");
            return settle_lists(dense_rows(A, B, metric, power), B.shape(0), k, Lists{score, row, count, limit});
        },
        "A"_a.noconvert(), "B"_a.noconvert(), "metric"_a, "power"_a, "k"_a, "score"_a.noconvert(), "row"_a.noconvert(),
        "count"_a.noconvert(), "limit"_a.noconvert());
    m.def(
        "exact_distances",
        [](RowMajor<T> A, RowMajor<T> B, int metric, double power, InOut2<std::int64_t> row) {
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
        "csr_update",
        [](RowMajor<double> G, std::optional<Vector<double>> c, std::size_t first, Vector<T> a_data,
           Vector<I> a_indices, Vector<I> a_indptr, Vector<T> b_data, Vector<I> b_indices, Vector<I> b_indptr,
           std::size_t n_columns, int metric, double power, Vector<double> base, Vector<double> slack, double scale,
           std::size_t k, InOut2<double> score, InOut2<std::int64_t> row, InOut1<std::int64_t> count,
           InOut1<double> limit) {
            const Csr<T, I> A = csr_rows(a_data, a_indices, a_indptr, n_columns),
                            B = csr_rows(b_data, b_indices, b_indptr, n_columns);
            require(A.rows == G.shape(0) && metric >= 0 && metric <= 4,
                    "neighbors.csr_update: expected A for G (n, m)");
            take_in_block(G, c, first, B.rows, SparseRows<T, I>{A, B, static_cast<Metric>(metric), power}, base, slack,
                          scale, k, Lists{score, row, count, limit});
        },
        "G"_a.noconvert(), "c"_a.noconvert().none(), "first"_a, "a_data"_a.noconvert(), "a_indices"_a.noconvert(),
        "a_indptr"_a.noconvert(), "b_data"_a.noconvert(), "b_indices"_a.noconvert(), "b_indptr"_a.noconvert(),
        "n_columns"_a, "metric"_a, "power"_a, "base"_a.noconvert(), "slack"_a.noconvert(), "scale"_a, "k"_a,
        "score"_a.noconvert(), "row"_a.noconvert(), "count"_a.noconvert(), "limit"_a.noconvert());
    m.def(
        "csr_settle",
        [](Vector<T> a_data, Vector<I> a_indices, Vector<I> a_indptr, Vector<T> b_data, Vector<I> b_indices,
           Vector<I> b_indptr, std::size_t n_columns, int metric, double power, std::size_t k, InOut2<double> score,
           InOut2<std::int64_t> row, InOut1<std::int64_t> count, InOut1<double> limit) {
            const Csr<T, I> A = csr_rows(a_data, a_indices, a_indptr, n_columns),
                            B = csr_rows(b_data, b_indices, b_indptr, n_columns);
            require(A.rows == score.shape(0) && metric >= 0 && metric <= 4, "neighbors.csr_settle: expected n lists");
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

}  // namespace

void bind_neighbors(nb::module_ &m) {
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
        "given_update",
        [](RowMajor<double> G, std::size_t first, std::size_t rows, std::size_t k, InOut2<double> score,
           InOut2<std::int64_t> row, InOut1<std::int64_t> count, InOut1<double> limit) {
            const std::size_t n = G.shape(0);
            const std::vector<double> zero(n, 0.0);
            constexpr const char *expected =
                "neighbors.given_update: expected G (n, m), lists of n queries, rows that exist";
            Lists lists{score, row, count, limit};
            require(lists.n() == n && first + G.shape(1) <= rows && lists.sound(k, rows), expected);
            nb::gil_scoped_release nogil;
            take_in<double>(G.data(), nullptr, n, G.shape(1), first, GivenRows{}, zero.data(), zero.data(), 1.0, k,
                            lists.room(), lists.score.data(), lists.row.data(), lists.count.data(), lists.limit.data());
        },
        "G"_a.noconvert(), "first"_a, "rows"_a, "k"_a, "score"_a.noconvert(), "row"_a.noconvert(),
        "count"_a.noconvert(), "limit"_a.noconvert());
    m.def(
        "given_settle",
        [](std::size_t rows, std::size_t k, InOut2<double> score, InOut2<std::int64_t> row, InOut1<std::int64_t> count,
           InOut1<double> limit) { return settle_lists(GivenRows{}, rows, k, Lists{score, row, count, limit}); },
        "rows"_a, "k"_a, "score"_a.noconvert(), "row"_a.noconvert(), "count"_a.noconvert(), "limit"_a.noconvert());
}

}  // namespace epicycle
