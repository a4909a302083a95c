// Bindings of the search for stumps.
#include "core/binding.hpp"
#include "tree/stumps.hpp"

namespace epicycle {

void bind_stumps(nb::module_ &m) {
    m.def(
        "best_stump",
        [](Vector<std::uint32_t> entries, Vector<std::int64_t> begin, Vector<std::int64_t> zeros,
           Vector<std::int64_t> missing, Vector<double> weight, std::optional<Vector<std::int32_t>> code,
           std::size_t n_classes, bool confidence, int threads) {
            constexpr const char *expected =
                "best_stump: expected columns begin (p + 1,), zeros (p,), missing (p,) of entries whose rows are in "
                "[0, n), weight (n,), code (n,) in [0, n_classes) or None, threads >= 1";
            const std::size_t p = zeros.shape(0), n = weight.shape(0);
            require(p >= 1 && n >= 1 && n <= ROW && begin.shape(0) == p + 1 && missing.shape(0) == p, expected);
            require(begin.data()[0] == 0 && static_cast<std::size_t>(begin.data()[p]) == entries.shape(0), expected);
            for (std::size_t j = 0; j < p; ++j) {
                const std::int64_t size = begin.data()[j + 1] - begin.data()[j];
                require(size >= 0 && missing.data()[j] >= 0 && missing.data()[j] <= size, expected);
                require(zeros.data()[j] >= -1 && zeros.data()[j] <= size - missing.data()[j], expected);
            }
            require(!code || (code->shape(0) == n && n_classes >= 1), expected);
            require(threads >= 1, expected);
            bool inside = true;
            Stump best;
            {
                nb::gil_scoped_release nogil;
                for (std::size_t i = 0; i < entries.shape(0); ++i) inside &= (entries.data()[i] & ROW) < n;
                if (code)
                    for (std::size_t i = 0; i < n; ++i)
                        inside &= code->data()[i] >= 0 && static_cast<std::size_t>(code->data()[i]) < n_classes;
                const SortedColumns columns{entries.data(), begin.data(), zeros.data(), missing.data(), p};
                if (inside)
                    best = code ? best_stump(columns, ManyClassSums(weight.data(), code->data(), n_classes, n), threads)
                                : best_stump(columns, TwoClassSums(weight.data(), n, confidence), threads);
            }
            require(inside, expected);
            return std::make_tuple(best.feature, best.at, best.after_zeros, best.missing_left);
        },
        "entries"_a.noconvert(), "begin"_a.noconvert(), "zeros"_a.noconvert(), "missing"_a.noconvert(),
        "weight"_a.noconvert(), "code"_a.none(), "n_classes"_a, "confidence"_a, "threads"_a,
        "The threshold on one feature that tells weighted classes apart best.");
    m.def(
        "best_binned_stump",
        [](Vector<std::uint32_t> entries, Vector<std::int64_t> begin, Vector<std::int64_t> missing,
           nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> rows,
           nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> bin_end,
           Vector<std::int32_t> n_bins, Vector<double> weight, bool confidence,
           nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> packed, int threads) {
            constexpr const char *expected =
                "best_binned_stump: expected columns of n entries each, begin (p + 1,), missing (p,), rows (n, p), "
                "bin_end (p, 256) ascending within the column, n_bins (p,), weight (n,), packed (n,), threads >= 1";
            const std::size_t p = missing.shape(0), n = weight.shape(0);
            require(p >= 1 && n >= 1 && n < (std::size_t{1} << 30) && begin.shape(0) == p + 1, expected);
            require(rows.shape(0) == n && rows.shape(1) == p && bin_end.shape(0) == p && bin_end.shape(1) == BINS,
                    expected);
            require(n_bins.shape(0) == p && packed.shape(0) == n && threads >= 1, expected);
            require(entries.shape(0) == n * p, expected);
            for (std::size_t j = 0; j <= p; ++j) require(begin.data()[j] == static_cast<std::int64_t>(j * n), expected);
            for (std::size_t j = 0; j < p; ++j) {
                const std::int64_t numbers = static_cast<std::int64_t>(n) - missing.data()[j];
                const std::int32_t bins = n_bins.data()[j];
                require(missing.data()[j] >= 0 && numbers >= 0 && bins >= 0 && bins <= 255, expected);
                std::int64_t before = 0;
                for (std::int32_t b = 0; b < bins; ++b) {
                    const std::int64_t end = bin_end.data()[j * BINS + static_cast<std::size_t>(b)];
                    require(end > before, expected);
                    before = end;
                }
                require(before == numbers, expected);
            }
            Stump best;
            {
                nb::gil_scoped_release nogil;
                const BinnedColumns columns{{entries.data(), begin.data(), nullptr, missing.data(), p},
                                            rows.data(),
                                            bin_end.data(),
                                            n_bins.data()};
                best = best_binned_stump(columns, weight.data(), n, confidence, packed.data(), threads);
            }
            return std::make_tuple(best.feature, best.at, best.after_zeros, best.missing_left);
        },
        "entries"_a.noconvert(), "begin"_a.noconvert(), "missing"_a.noconvert(), "rows"_a.noconvert(),
        "bin_end"_a.noconvert(), "n_bins"_a.noconvert(), "weight"_a.noconvert(), "confidence"_a, "packed"_a.noconvert(),
        "threads"_a, "The same for two classes and dense columns, which are also given as bins.");
}

}  // namespace epicycle
