// Bindings of the statistics and scores of classes.
#include "bayes/class_statistics.hpp"
#include "core/binding.hpp"

namespace epicycle {

void bind_bayes(nb::module_ &m) {
    for_rows([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "class_sums",
            [](X table, Vector<std::int64_t> code, Weight weight, std::size_t n_classes, int threads) {
                constexpr const char *expected =
                    "class_sums: expected X (n, p), dense or CSR, code (n,) below n_classes, weight (n,) or None";
                const auto rows = row_reader(table, expected);
                require(n_classes > 0 && code.shape(0) == rows.rows() && all_below(code, n_classes), expected);
                const double *w = pointer(weight, rows.rows(), expected);
                const int size = team(threads);
                Buffer sums(n_classes * rows.cols());
                {
                    nb::gil_scoped_release nogil;
                    const RowsByClass order(code.data(), rows.rows(), n_classes);
                    class_sums(rows, order, w, n_classes, size, sums.data.get());
                }
                return matrix_out(sums, n_classes, rows.cols());
            },
            "X"_a.noconvert(), "code"_a, "weight"_a.none(), "n_classes"_a, "threads"_a);
    });
    for_dense([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "class_moments",
            [](X table, Vector<std::int64_t> code, Weight weight, std::size_t n_classes) {
                constexpr const char *expected =
                    "class_moments: expected X (n, p), code (n,) below n_classes, weight (n,) or None";
                const auto x = view(table);
                require(n_classes > 0 && code.shape(0) == x.rows && all_below(code, n_classes), expected);
                const double *w = pointer(weight, x.rows, expected);
                const std::size_t size = n_classes * x.cols;
                Buffer total(size), mean(size), square(size);
                {
                    nb::gil_scoped_release nogil;
                    class_moments(x, code.data(), w, n_classes, total.data.get(), mean.data.get(), square.data.get());
                }
                return std::make_tuple(matrix_out(total, n_classes, x.cols), matrix_out(mean, n_classes, x.cols),
                                       matrix_out(square, n_classes, x.cols));
            },
            "X"_a.noconvert(), "code"_a, "weight"_a.none(), "n_classes"_a);
        m.def(
            "normal_scores",
            [](X table, RowMajor<double> mean, RowMajor<double> precision, RowMajor<double> log_norm) {
                constexpr const char *expected =
                    "normal_scores: expected X (n, p), mean, precision and log_norm (n_classes, p)";
                const auto x = view(table);
                const std::size_t K = mean.shape(0);
                for (const auto *a : {&mean, &precision, &log_norm})
                    require(a->shape(0) == K && a->shape(1) == x.cols, expected);
                Buffer scores(x.rows * K);
                {
                    nb::gil_scoped_release nogil;
                    normal_scores(x, mean.data(), precision.data(), log_norm.data(), K, scores.data.get());
                }
                return matrix_out(scores, x.rows, K);
            },
            "X"_a.noconvert(), "mean"_a, "precision"_a, "log_norm"_a);
    });
}

}  // namespace epicycle
