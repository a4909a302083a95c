// Bindings of independent components, and of products with the scatter of sparse rows.
#include "core/binding.hpp"
#include "decomposition/contrast.hpp"
#include "decomposition/scatter_product.hpp"

namespace epicycle {

void bind_ica(nb::module_ &m) {
    m.def(
        "contrast",
        [](InOut2<double> Y, Weight weight, int kind, double parameter, bool want_values,
           std::optional<InOut2<double>> slope_rows) {
            constexpr const char *expected = "contrast: expected Y (k, n), weight (n,) or None, kind 0 to 4, parameter "
                                             "> 0, slope_rows like Y or None";
            const std::size_t k = Y.shape(0), n = Y.shape(1);
            require(kind >= 0 && kind <= 4 && parameter > 0.0, expected);
            require(!slope_rows || (slope_rows->shape(0) == k && slope_rows->shape(1) == n), expected);
            const double *w = pointer(weight, n, expected);
            Buffer values(k), slopes(k);
            {
                nb::gil_scoped_release nogil;
                contrast(Y.data(), k, n, w, static_cast<Contrast>(kind), parameter, want_values,
                         slope_rows ? slope_rows->data() : nullptr, values.data.get(), slopes.data.get());
            }
            return std::make_tuple(vector_out(values, k), vector_out(slopes, k));
        },
        "Y"_a.noconvert(), "weight"_a.none(), "kind"_a, "parameter"_a, "want_values"_a,
        "slope_rows"_a.noconvert().none());
    for_compressed<CsrMatrix>([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "scatter_product",
            [](X table, Weight weight, RowMajor<double> shift,
               nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> V,
               nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu> out, InOut2<double> sums, int threads) {
                constexpr const char *expected =
                    "scatter_product: expected X (n, p) in CSR, weight (n,) or None, shift and sums (q, 16), V and out "
                    "(q, p, 16)";
                const auto rows = view(table, expected);
                const double *w = pointer(weight, rows.rows, expected);
                const std::size_t q = V.shape(0), p = rows.cols;
                require(V.shape(1) == p && V.shape(2) == SCATTER_PANEL && out.shape(0) == q && out.shape(1) == p &&
                            out.shape(2) == SCATTER_PANEL && shift.shape(0) == q && shift.shape(1) == SCATTER_PANEL &&
                            sums.shape(0) == q && sums.shape(1) == SCATTER_PANEL,
                        expected);
                [[maybe_unused]] const int workers = team(threads);
                nb::gil_scoped_release nogil;
#pragma omp parallel for schedule(dynamic) num_threads(workers)
                for (std::int64_t a = 0; a < static_cast<std::int64_t>(q); ++a)
                    scatter_panel(rows, w, shift.data() + a * SCATTER_PANEL, V.data() + a * p * SCATTER_PANEL,
                                  out.data() + a * p * SCATTER_PANEL, sums.data() + a * SCATTER_PANEL);
            },
            "X"_a.noconvert(), "weight"_a.none(), "shift"_a, "V"_a.noconvert(), "out"_a.noconvert(),
            "sums"_a.noconvert(), "threads"_a);
    });
}

}  // namespace epicycle
