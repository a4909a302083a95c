// Bindings of k-means.
#include "cluster/nearest_center.hpp"
#include "core/binding.hpp"

namespace epicycle {

void bind_cluster(nb::module_ &m) {
    for_rows([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "assign",
            [](X table, Vector<double> origin, RowMajor<double> centers, InOut1<std::int64_t> label,
               InOut1<double> upper, InOut2<double> lower, std::size_t per_group, std::optional<Vector<double>> shift,
               int threads) {
                constexpr const char *expected =
                    "assign: expected X (n, p), dense or CSR, origin (p,), zero for CSR, centers (k, p), label (n,) "
                    "below k, upper (n,), lower (n, groups) with groups = 0 or ceil(tiles / per_group), shift (k,) or "
                    "None for the first assignment";
                const auto rows = row_reader(table, expected);
                const std::size_t n = rows.rows(), p = rows.cols(), k = centers.shape(0), groups = lower.shape(1);
                const std::size_t tiles = (k + TILE - 1) / TILE;
                require(k > 0 && centers.shape(1) == p && label.shape(0) == n && lower.shape(0) == n, expected);
                require(groups == 0 || (per_group > 0 && groups == (tiles + per_group - 1) / per_group), expected);
                require(groups == 0 || upper.shape(0) == n, expected);
                require(!shift || (shift->shape(0) == k && all_below(label, k)), expected);
                const double *about = checked_shift<X>(origin, p, expected);
                const int size = team(threads);
                nb::gil_scoped_release nogil;
                std::vector<double> group_shift(std::max<std::size_t>(groups, 1));
                if (shift && groups > 0)
                    for (std::size_t a = 0; a < k; ++a) {
                        double &most = group_shift[a / TILE / per_group];
                        most = std::max(most, shift->data()[a]);
                    }
                const Assignment state{
                    label.data(),       upper.data(), lower.data(), groups, per_group, shift ? shift->data() : nullptr,
                    group_shift.data(), !shift};
                const Centers c(centers.data(), k, p, is_compressed<X>);
                return assign_rows(rows, about, c, state, size);
            },
            "X"_a.noconvert(), "origin"_a, "centers"_a, "label"_a.noconvert(), "upper"_a.noconvert(),
            "lower"_a.noconvert(), "per_group"_a, "shift"_a.none(), "threads"_a);
        m.def(
            "move_rows",
            [](X table, Vector<double> origin, Weight weight, std::optional<Vector<std::int64_t>> before,
               Vector<std::int64_t> after, InOut2<double> sums) {
                constexpr const char *expected =
                    "move_rows: expected X (n, p), dense or CSR, origin (p,), zero for CSR, weight (n,) or None, "
                    "before (n,) below k or None, after (n,) below k, sums (k, p)";
                const auto rows = row_reader(table, expected);
                const std::size_t n = rows.rows(), p = rows.cols(), k = sums.shape(0);
                require(sums.shape(1) == p && after.shape(0) == n && all_below(after, k), expected);
                require(!before || (before->shape(0) == n && all_below(*before, k)), expected);
                const double *about = checked_shift<X>(origin, p, expected), *v = pointer(weight, n, expected);
                nb::gil_scoped_release nogil;
                move_rows(rows, about, v, before ? before->data() : nullptr, after.data(), sums.data());
            },
            "X"_a.noconvert(), "origin"_a, "weight"_a.none(), "before"_a.none(), "after"_a, "sums"_a.noconvert());
        m.def(
            "closest_distances",
            [](X table, Vector<double> origin, RowMajor<double> candidates, Weight closest, int threads) {
                constexpr const char *expected =
                    "closest_distances: expected X (n, p), dense or CSR, origin (p,), zero for CSR, candidates (m, p), "
                    "closest (n,) or None";
                const auto rows = row_reader(table, expected);
                const std::size_t n = rows.rows(), p = rows.cols(), k = candidates.shape(0);
                require(k > 0 && candidates.shape(1) == p, expected);
                const double *about = checked_shift<X>(origin, p, expected);
                const double *before = pointer(closest, n, expected);
                const int size = team(threads);
                Buffer out(k * n);
                {
                    nb::gil_scoped_release nogil;
                    const Centers c(candidates.data(), k, p, is_compressed<X>);
                    closest_distances(rows, about, c, before, size, out.data.get());
                }
                return matrix_out(out, k, n);
            },
            "X"_a.noconvert(), "origin"_a, "candidates"_a, "closest"_a.none(), "threads"_a);
    });
}

}  // namespace epicycle
