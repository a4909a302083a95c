// What the coordinate descents of the lasso and of L1-penalised logistic regression are given.
#pragma once

#include "core/binding.hpp"
#include "linear/coordinate_descent.hpp"

namespace epicycle {

// sum_j l1_j |w_j| + l2_j w_j^2 / 2, over w_j >= 0 where `positive`.
struct PenaltyArrays {
    Vector<double> l1, l2;
    bool positive;

    Penalty view(std::size_t k, const char *message) const {
        require(l1.shape(0) == k && l2.shape(0) == k, message);
        return {l1.data(), l2.data(), positive};
    }
};

// When a call returns: after this many rounds, at this gap, or after about this many multiply-adds.
struct Budget {
    std::size_t rounds;
    double target, work;
};

using Columns = Vector<std::int64_t>;

inline const std::int64_t *checked(const Columns &columns, std::size_t p, const char *message) {
    require(all_below(columns, p), message);
    return columns.data();
}

// Runs a kernel without the GIL. It tells false where a column that it had to read is not that of a well-formed matrix.
template <class Kernel>
void run_on_columns(Kernel kernel) {
    bool fine;
    {
        nb::gil_scoped_release nogil;
        fine = kernel();
    }
    require(fine, "lasso: the columns of X are not those of a well-formed CSC matrix");
}

}  // namespace epicycle
