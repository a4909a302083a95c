// Bindings of the learners that take one row at a time.
#include "online/sgd.hpp"

#include <chrono>

#include "core/binding.hpp"

namespace epicycle {
namespace {

using Maybe1 = std::optional<InOut1<double>>;
using Maybe2 = std::optional<InOut2<double>>;
using Order = std::optional<Vector<std::int64_t>>;

constexpr std::size_t WORK_BETWEEN_LOOKS = 1 << 22;  // multiply-adds: a few milliseconds

OnlineRule rule_of(const Vector<double> &r, const char *message) {
    require(r.shape(0) == 11, message);
    const double *x = r.data();
    require(x[0] >= 0 && x[0] <= 8 && x[2] >= 0 && x[2] <= 5, message);
    return {static_cast<OnlineLoss>(static_cast<int>(x[0])),
            x[1],
            static_cast<Schedule>(static_cast<int>(x[2])),
            x[3],
            x[4],
            x[5],
            x[6],
            x[7],
            x[8],
            x[9],
            x[10]};
}

template <class Rows>
double learn(Rows rows, const Vector<double> &rule, const Vector<double> &y, const Weight &positive, const Order &order,
             const Weight &fraction, InOut2<double> &v, InOut1<double> &b, InOut1<double> &number, Maybe2 &a,
             Maybe2 &base, Maybe1 &b_sum, Maybe2 &q, Maybe2 &dual, Maybe2 &scores, InOut1<double> &mistakes, bool one) {
    constexpr const char *expected =
        "online.learn: expected sound rows (n, p), rule (11,), y (n,), positive (K,) or "
        "None, order (m,) with rows in 0 "
        ".. n-1 or None, fraction (m,) or None, v (p, K), b (K,), number (8,), a, base "
        "(p, K) and b_sum (K,) or None, q "
        "(p, K) or None, dual (n, K) or None, scores (m, K) or None, mistakes (K,), one only for K = 1";
    const OnlineRule r = rule_of(rule, expected);
    const std::size_t n = rows.rows(), p = rows.cols(), K = v.shape(1), m = order ? order->shape(0) : n;
    const auto fits = [&](const Maybe2 &x) { return !x || (x->shape(0) == p && x->shape(1) == K); };
    require(v.shape(0) == p && K >= 1 && b.shape(0) == K && number.shape(0) == ONLINE_NUMBERS, expected);
    require(y.shape(0) == n && mistakes.shape(0) == K && (!one || K == 1), expected);
    require(fits(a) && fits(base) && fits(q) && a.has_value() == base.has_value(), expected);
    require(a.has_value() == b_sum.has_value() && (!b_sum || b_sum->shape(0) == K), expected);
    require(!dual || (dual->shape(0) == n && dual->shape(1) == K), expected);
    require(!scores || (scores->shape(0) == m && scores->shape(1) == K), expected);
    const double *sign = pointer(positive, K, expected), *f = pointer(fraction, m, expected);
    if (order)
        for (std::size_t i = 0; i < m; ++i)
            require(order->data()[i] >= 0 && static_cast<std::size_t>(order->data()[i]) < n, expected);
    OnlineState state{v.data(),
                      b.data(),
                      number.data(),
                      a ? a->data() : nullptr,
                      base ? base->data() : nullptr,
                      b_sum ? b_sum->data() : nullptr,
                      q ? q->data() : nullptr,
                      p,
                      K};
    std::vector<double> z(2 * K);
    const std::size_t piece = std::max<std::size_t>(1, WORK_BETWEEN_LOOKS / (K * rows.cost()));
    double losses = 0.0;
    for (std::size_t from = 0; from < m; from += piece) {
        if (from > 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
        nb::gil_scoped_release nogil;
        const std::size_t to = std::min(m, from + piece);
        double *d = dual ? dual->data() : nullptr;
        double *s = scores ? scores->data() : nullptr;
        const std::int64_t *rank = order ? order->data() : nullptr;
        losses +=
            one ? online_learn<true>(rows, r, state, y.data(), sign, rank, f, from, to, d, s, mistakes.data(), z.data())
                : online_learn<false>(rows, r, state, y.data(), sign, rank, f, from, to, d, s, mistakes.data(),
                                      z.data());
        if (!std::isfinite(losses)) break;
    }
    return losses;
}

template <class Rows>
void margins(Rows rows, const Vector<double> &sign, const Vector<double> &square, bool intercept, InOut1<double> &a,
             InOut1<double> &w) {
    constexpr const char *expected =
        "margin_pass: expected sound rows (n, p), sign (n,), square (n,), a (n,), w (p + 1,)";
    const std::size_t n = rows.rows();
    require(sign.shape(0) == n && square.shape(0) == n && a.shape(0) == n && w.shape(0) == rows.cols() + 1, expected);
    nb::gil_scoped_release nogil;
    margin_pass(rows, sign.data(), square.data(), intercept, a.data(), w.data());
}

template <class T>
void bind_dense(nb::module_ &m) {
    m.def(
        "learn",
        [](Matrix<T> X, Vector<double> rule, Vector<double> y, Weight positive, Order order, Weight fraction,
           InOut2<double> v, InOut1<double> b, InOut1<double> number, Maybe2 a, Maybe2 base, Maybe1 b_sum, Maybe2 q,
           Maybe2 dual, Maybe2 scores, InOut1<double> mistakes, bool one) {
            return learn(DenseRowReader<T>(view(X)), rule, y, positive, order, fraction, v, b, number, a, base, b_sum,
                         q, dual, scores, mistakes, one);
        },
        "X"_a.noconvert(), "rule"_a.noconvert(), "y"_a.noconvert(), "positive"_a.noconvert().none(),
        "order"_a.noconvert().none(), "fraction"_a.noconvert().none(), "v"_a.noconvert(), "b"_a.noconvert(),
        "number"_a.noconvert(), "a"_a.noconvert().none(), "base"_a.noconvert().none(), "b_sum"_a.noconvert().none(),
        "q"_a.noconvert().none(), "dual"_a.noconvert().none(), "scores"_a.noconvert().none(), "mistakes"_a.noconvert(),
        "one"_a);
    m.def(
        "margin_pass",
        [](Matrix<T> X, Vector<double> sign, Vector<double> square, bool intercept, InOut1<double> a,
           InOut1<double> w) { margins(DenseRowReader<T>(view(X)), sign, square, intercept, a, w); },
        "X"_a.noconvert(), "sign"_a.noconvert(), "square"_a.noconvert(), "intercept"_a, "a"_a.noconvert(),
        "w"_a.noconvert());
}

template <class T, class I>
void bind_sparse(nb::module_ &m) {
    m.def(
        "csr_learn",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> rule,
           Vector<double> y, Weight positive, Order order, Weight fraction, InOut2<double> v, InOut1<double> b,
           InOut1<double> number, Maybe2 a, Maybe2 base, Maybe1 b_sum, Maybe2 q, Maybe2 dual, Maybe2 scores,
           InOut1<double> mistakes, bool one) {
            return learn(
                rows_of<T, I>(data, indices, indptr, n_columns, "online.csr_learn: expected a CSR matrix (n, p)"), rule,
                y, positive, order, fraction, v, b, number, a, base, b_sum, q, dual, scores, mistakes, one);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "rule"_a.noconvert(),
        "y"_a.noconvert(), "positive"_a.noconvert().none(), "order"_a.noconvert().none(),
        "fraction"_a.noconvert().none(), "v"_a.noconvert(), "b"_a.noconvert(), "number"_a.noconvert(),
        "a"_a.noconvert().none(), "base"_a.noconvert().none(), "b_sum"_a.noconvert().none(), "q"_a.noconvert().none(),
        "dual"_a.noconvert().none(), "scores"_a.noconvert().none(), "mistakes"_a.noconvert(), "one"_a);
    m.def(
        "csr_margin_pass",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> sign,
           Vector<double> square, bool intercept, InOut1<double> a, InOut1<double> w) {
            const auto X =
                rows_of<T, I>(data, indices, indptr, n_columns, "csr_margin_pass: expected a CSR matrix (n, p)");
            margins(X, sign, square, intercept, a, w);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "sign"_a.noconvert(),
        "square"_a.noconvert(), "intercept"_a, "a"_a.noconvert(), "w"_a.noconvert());
}

}  // namespace

void bind_online(nb::module_ &m) {
    bind_dense<double>(m);
    bind_dense<float>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
}

}  // namespace epicycle
