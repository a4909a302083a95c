// Bindings of isolation forests.
#include "anomaly/isolation_tree.hpp"
#include "core/binding.hpp"
#include "tree/options.hpp"

namespace epicycle {
namespace {

template <class T>
void bind_contributions(nb::module_ &m) {
    m.def(
        "path_contributions",
        [](Matrix<T> X, RowMajor<std::uint64_t> nodes, Vector<double> expected_depth, Vector<std::int64_t> roots,
           RowMajor<std::uint64_t> levels, InOut2<double> out, int threads) {
            constexpr const char *expected =
                "path_contributions: expected X (n, p), well-formed trees of m nodes, expected_depth (m,), out (n, p)";
            const auto x = view(X);
            require(expected_depth.shape(0) == nodes.shape(0) && out.shape(0) == x.rows && out.shape(1) == x.cols,
                    expected);
            const Forest forest = forest_of(nodes, nullptr, roots, levels, expected);
            require(levels.shape(0) == 0, expected);
            threads = team(threads);
            bool fine = true;
            {
                nb::gil_scoped_release nogil;
                if ((fine = well_formed(forest, x.cols)))
                    path_contributions(forest, x, expected_depth.data(), out.data(), threads, Interrupts{});
            }
            require(fine, expected);
        },
        "X"_a.noconvert(), "nodes"_a, "expected_depth"_a, "roots"_a, "levels"_a, "out"_a.noconvert(), "threads"_a,
        "Adds to out what the splits by every column change of the depth that is expected.");
}

}  // namespace

void bind_anomaly(nb::module_ &m) {
    m.def(
        "grow_isolation_tree",
        [](RowMajor<double> X, int max_depth, Vector<std::uint64_t> seed) {
            require(X.shape(0) > 0 && max_depth >= 0 && max_depth <= 62 && seed.shape(0) == 4,
                    "grow_isolation_tree: expected X (n, p) with n > 0, max_depth from 0 to 62, seed (4,)");
            IsolationTree tree;
            {
                nb::gil_scoped_release nogil;
                Random random({seed.data()[0], seed.data()[1], seed.data()[2], seed.data()[3]});
                tree = IsolationTreeGrower(X.data(), X.shape(0), X.shape(1), max_depth, random)(Interrupts{});
            }
            return std::make_tuple(array_out(std::move(tree.column)), array_out(std::move(tree.threshold)),
                                   array_out(std::move(tree.left)), array_out(std::move(tree.missing_left)),
                                   array_out(std::move(tree.count)));
        },
        "X"_a.noconvert(), "max_depth"_a, "seed"_a,
        "(column, threshold, left child or 0, whether missing values go left, rows) of the nodes of a tree.");
    bind_contributions<double>(m);
    bind_contributions<float>(m);
}

}  // namespace epicycle
