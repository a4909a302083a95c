// A view of a dense matrix of any memory order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epicycle {

template <class T>
struct Dense {
    const T *data;
    std::size_t rows, cols;
    std::int64_t row_stride, col_stride;  // in elements, of either sign

    const T &operator()(std::size_t i, std::size_t j) const {
        return data[static_cast<std::int64_t>(i) * row_stride + static_cast<std::int64_t>(j) * col_stride];
    }
    const T *row(std::size_t i) const { return data + static_cast<std::int64_t>(i) * row_stride; }
    const T *col(std::size_t j) const { return data + static_cast<std::int64_t>(j) * col_stride; }
};

}  // namespace epicycle
