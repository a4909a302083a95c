// Weights of terms in documents: frequencies, perhaps their logarithms, times weights of terms, over the norm of the
// row.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace epicycle {

enum class RowNorm { none, l1, l2 };

template <class T, class I>
void weigh_rows(T *data, const I *columns, const I *starts, std::size_t rows, const T *idf, bool sublinear,
                RowNorm norm, int threads) {
    const auto n = static_cast<std::int64_t>(rows);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (std::int64_t i = 0; i < n; ++i) {
        double total = 0.0, largest = 0.0;
        for (I k = starts[i]; k < starts[i + 1]; ++k) {
            T x = data[k];
            if (sublinear) x = std::log(x) + T(1);
            if (idf) x *= idf[columns[k]];
            data[k] = x;
            largest = std::fmax(largest, std::fabs(static_cast<double>(x)));
        }
        if (norm == RowNorm::none || !(largest > 0.0)) continue;
        // Values whose squares leave floating point are scaled first; those of ordinary size are not touched twice.
        const bool extreme = norm == RowNorm::l2 ? (largest > 1e150 || largest < 1e-150) : largest > 1e300;
        const double scale = extreme ? largest : 1.0;
        for (I k = starts[i]; k < starts[i + 1]; ++k) {
            const double x = static_cast<double>(data[k]) / scale;
            total += norm == RowNorm::l2 ? x * x : std::fabs(x);
        }
        const double length = norm == RowNorm::l2 ? std::sqrt(total) : total;
        for (I k = starts[i]; k < starts[i + 1]; ++k)
            data[k] = static_cast<T>(static_cast<double>(data[k]) / scale / length);
    }
}

}  // namespace epicycle
