// Bindings of nearest neighbours.
#include "core/binding.hpp"
#include "neighbors/brute_force.hpp"

namespace epicycle {
namespace {

// Room for the candidates of n queries: the score and the row of each, how many there are, and the largest score that
// may still be among the k nearest.
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

// The distance of a row from query i is base_i + scale times its score, which is right within slack_i.
struct Bounds {
    Vector<double> base, slack;
    double scale;
};

template <class U, class Exact>
void take_in_block(const RowMajor<U> &G, const std::optional<Vector<U>> &c, std::size_t first, std::size_t rows,
                   const Exact &exact, const Bounds &bounds, std::size_t k, const Lists &lists) {
    constexpr const char *expected =
        "neighbors: expected G (n, m), c (m,) or None, base and slack (n,), scale > 0, lists of n queries, k >= 1, "
        "rows that exist";
    const std::size_t n = G.shape(0), m = G.shape(1);
    require(lists.n() == n && (!c || c->shape(0) == m) && bounds.base.shape(0) == n, expected);
    require(bounds.slack.shape(0) == n && bounds.scale > 0.0 && first + m <= rows && lists.sound(k, rows), expected);
    nb::gil_scoped_release nogil;
    take_in(G.data(), c ? c->data() : nullptr, n, m, first, exact, bounds.base.data(), bounds.slack.data(),
            bounds.scale, k, lists.room(), lists.score.data(), lists.row.data(), lists.count.data(),
            lists.limit.data());
}

template <class Exact>
auto settle_lists(const Exact &exact, std::size_t rows, std::size_t k, const Lists &lists) {
    const std::size_t n = lists.n();
    require(lists.sound(k, rows), "neighbors: expected lists of n queries, k >= 1, rows that exist");
    for (std::size_t i = 0; i < n; ++i)
        require(static_cast<std::size_t>(lists.count.data()[i]) >= k, "neighbors: a list is shorter than k");
    Buffer distances(n * k);
    std::vector<std::int64_t> found(n * k);
    {
        nb::gil_scoped_release nogil;
        std::vector<std::pair<double, std::int64_t>> work;
        for (std::size_t i = 0; i < n; ++i) {
            const NeighborCandidates list{lists.score.data() + i * lists.room(),
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

// Distances between the rows of A and B, dense or CSR with ascending columns.
template <class T>
DenseDistances<T> distances(const RowMajor<T> &A, const RowMajor<T> &B, int metric, double power, const char *message) {
    require(A.shape(1) == B.shape(1) && metric >= 0 && metric <= 4 && power > 0.0, message);
    return {A.data(), B.data(), A.shape(1), static_cast<Metric>(metric), power};
}
template <class T, class I>
SparseDistances<T, I> distances(const CsrMatrix<T, I> &A, const CsrMatrix<T, I> &B, int metric, double power,
                                const char *message) {
    require(A.cols == B.cols && metric >= 0 && metric <= 4, message);
    return {view(A, message), view(B, message), static_cast<Metric>(metric), power};
}

template <class T>
std::size_t row_count(const RowMajor<T> &X) {
    return X.shape(0);
}
template <class T, class I>
std::size_t row_count(const CsrMatrix<T, I> &X) {
    return X.rows;
}

template <class X, class U>
void bind_update(nb::module_ &m) {
    m.def(
        "update",
        [](RowMajor<U> G, std::optional<Vector<U>> c, std::size_t first, X A, X B, int metric, double power,
           const Bounds &bounds, std::size_t k, const Lists &lists) {
            constexpr const char *expected =
                "neighbors.update: expected G (n, m), A (n, p) and B (r, p), a metric from 0 to 4, power > 0";
            require(row_count(A) == G.shape(0), expected);
            take_in_block(G, c, first, row_count(B), distances(A, B, metric, power, expected), bounds, k, lists);
        },
        "G"_a.noconvert(), "c"_a.noconvert().none(), "first"_a, "A"_a.noconvert(), "B"_a.noconvert(), "metric"_a,
        "power"_a, "bounds"_a, "k"_a, "lists"_a);
}

template <class X>
void bind_settle(nb::module_ &m) {
    m.def(
        "settle",
        [](X A, X B, int metric, double power, std::size_t k, const Lists &lists) {
            constexpr const char *expected =
                "neighbors.settle: expected A (n, p) for n lists, B (r, p), a metric from 0 to 4, power > 0";
            require(row_count(A) == lists.n(), expected);
            return settle_lists(distances(A, B, metric, power, expected), row_count(B), k, lists);
        },
        "A"_a.noconvert(), "B"_a.noconvert(), "metric"_a, "power"_a, "k"_a, "lists"_a);
}

}  // namespace

void bind_neighbors(nb::module_ &m) {
    nb::class_<Lists>(m, "Lists")
        .def(nb::init<InOut2<double>, InOut2<std::int64_t>, InOut1<std::int64_t>, InOut1<double>>(),
             "score"_a.noconvert(), "row"_a.noconvert(), "count"_a.noconvert(), "limit"_a.noconvert());
    nb::class_<Bounds>(m, "Bounds")
        .def(nb::init<Vector<double>, Vector<double>, double>(), "base"_a.noconvert(), "slack"_a.noconvert(),
             "scale"_a);
    bind_update<RowMajor<float>, float>(m);
    bind_update<RowMajor<float>, double>(m);
    bind_update<RowMajor<double>, float>(m);
    bind_update<RowMajor<double>, double>(m);
    bind_settle<RowMajor<float>>(m);
    bind_settle<RowMajor<double>>(m);
    for_compressed<CsrMatrix>([&](auto type) {
        using X = typename decltype(type)::type;
        bind_update<X, double>(m);
        bind_settle<X>(m);
        m.def(
            "csr_distances",
            [](X A, X B, int metric, double power) {
                const auto exact = distances(A, B, metric, power,
                                             "csr_distances: expected well-formed CSR matrices A (n, p) and B (r, p), "
                                             "a metric from 0 to 4");
                Buffer out(A.rows * B.rows);
                {
                    nb::gil_scoped_release nogil;
                    for (std::size_t i = 0; i < A.rows; ++i)
                        for (std::size_t j = 0; j < B.rows; ++j) out.data[i * B.rows + j] = exact(i, j);
                }
                return matrix_out(out, A.rows, B.rows);
            },
            "A"_a.noconvert(), "B"_a.noconvert(), "metric"_a, "power"_a);
    });
    for_dense([&](auto type) {
        using X = RowMajor<Scalar<typename decltype(type)::type>>;
        m.def(
            "exact_distances",
            [](X A, X B, int metric, double power, InOut2<std::int64_t> row) {
                constexpr const char *expected =
                    "exact_distances: expected A (n, p), B (m, p), row (n, k) of rows of B";
                const std::size_t n = A.shape(0), k = row.shape(1);
                require(row.shape(0) == n, expected);
                for (std::size_t i = 0; i < n * k; ++i)
                    require(row.data()[i] >= 0 && static_cast<std::size_t>(row.data()[i]) < B.shape(0), expected);
                const auto exact = distances(A, B, metric, power, expected);
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
    });
    // Distances that are given: the block holds them, and nothing is left to be computed exactly.
    m.def(
        "update_given",
        [](RowMajor<double> G, std::size_t first, std::size_t rows, std::size_t k, const Lists &lists) {
            const std::size_t n = G.shape(0);
            const std::vector<double> zero(n, 0.0);
            require(lists.n() == n && first + G.shape(1) <= rows && lists.sound(k, rows),
                    "neighbors.update_given: expected G (n, m), lists of n queries, rows that exist");
            nb::gil_scoped_release nogil;
            take_in<double>(G.data(), nullptr, n, G.shape(1), first, GivenDistances{}, zero.data(), zero.data(), 1.0, k,
                            lists.room(), lists.score.data(), lists.row.data(), lists.count.data(), lists.limit.data());
        },
        "G"_a.noconvert(), "first"_a, "rows"_a, "k"_a, "lists"_a);
    m.def(
        "settle_given",
        [](std::size_t rows, std::size_t k, const Lists &lists) {
            return settle_lists(GivenDistances{}, rows, k, lists);
        },
        "rows"_a, "k"_a, "lists"_a);
}

}  // namespace epicycle
