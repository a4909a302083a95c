// Bindings of the learners that take one row at a time.
#include "core/binding.hpp"
#include "online/sgd.hpp"

namespace epicycle {
namespace {

using Order = std::optional<Vector<std::int64_t>>;
using Table = std::optional<InOut2<double>>;

constexpr std::size_t WORK_BETWEEN_LOOKS = 1 << 22;  // multiply-adds between two looks at the clock: a few milliseconds

// What a learner carries along: (v, b) and its counters; a, base and b_sum for the mean of (w, b), q for the L1
// penalty.
struct LearnerState {
    InOut2<double> v;
    InOut1<double> b, number;
    Table a, base;
    std::optional<InOut1<double>> b_sum;
    Table q;

    OnlineState view(std::size_t p, const char *message) const {
        const std::size_t K = v.shape(1);
        const auto fits = [&](const Table &x) { return !x || (x->shape(0) == p && x->shape(1) == K); };
        const auto data = [](const auto &x) { return x ? x->data() : nullptr; };
        require(v.shape(0) == p && K >= 1 && b.shape(0) == K && number.shape(0) == ONLINE_NUMBERS, message);
        require(fits(a) && fits(base) && fits(q) && a.has_value() == base.has_value(), message);
        require(a.has_value() == b_sum.has_value() && (!b_sum || b_sum->shape(0) == K), message);
        return {v.data(), b.data(), number.data(), data(a), data(base), data(b_sum), data(q), p, K};
    }
};

}  // namespace

void bind_online(nb::module_ &m) {
    nb::class_<OnlineRule>(m, "Rule").def(
        "__init__",
        [](OnlineRule *rule, int loss, double epsilon, int schedule, double eta0, double exponent, double offset,
           double alpha, double l2, double l1, double intercept, double average_from, double pull) {
            require(known_plainly(static_cast<LossId>(loss)) && schedule >= 0 &&
                        schedule <= static_cast<int>(Schedule::pa2),
                    "online.Rule: expected a known loss and schedule");
            new (rule) OnlineRule{static_cast<LossId>(loss),
                                  epsilon,
                                  static_cast<Schedule>(schedule),
                                  eta0,
                                  exponent,
                                  offset,
                                  alpha,
                                  l2,
                                  l1,
                                  intercept,
                                  average_from,
                                  pull};
        },
        nb::kw_only(), "loss"_a, "epsilon"_a, "schedule"_a, "eta0"_a, "exponent"_a, "offset"_a, "alpha"_a, "l2"_a,
        "l1"_a, "intercept"_a, "average_from"_a, "pull"_a);
    nb::class_<LearnerState>(m, "State")
        .def(nb::init<InOut2<double>, InOut1<double>, InOut1<double>, Table, Table, std::optional<InOut1<double>>,
                      Table>(),
             nb::kw_only(), "v"_a.noconvert(), "b"_a.noconvert(), "number"_a.noconvert(), "a"_a.noconvert().none(),
             "base"_a.noconvert().none(), "b_sum"_a.noconvert().none(), "q"_a.noconvert().none());
    for_rows([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "learn",
            [](X table, const OnlineRule &rule, const LearnerState &learner, Vector<double> y, Weight positive,
               Order order, Weight fraction, Table dual, Table scores, InOut1<double> mistakes, bool one) {
                constexpr const char *expected =
                    "online.learn: expected rows (n, p), dense or CSR, a rule, a state with v (p, K), b (K,), number "
                    "(8,), a, base (p, K) and b_sum (K,) or None, q (p, K) or None, y (n,), positive (K,) or None, "
                    "order (m,) with rows in 0 .. n-1 or None, fraction (m,) or None, dual (n, K) or None, scores "
                    "(m, K) or None, mistakes (K,), one only for K = 1";
                auto rows = row_reader(table, expected);
                OnlineState state = learner.view(rows.cols(), expected);
                const std::size_t n = rows.rows(), K = state.K, m = order ? order->shape(0) : n;
                require(y.shape(0) == n && mistakes.shape(0) == K && (!one || K == 1), expected);
                require(!dual || (dual->shape(0) == n && dual->shape(1) == K), expected);
                require(!scores || (scores->shape(0) == m && scores->shape(1) == K), expected);
                require(!order || all_below(*order, n), expected);
                const double *sign = pointer(positive, K, expected), *f = pointer(fraction, m, expected);
                const std::int64_t *rank = order ? order->data() : nullptr;
                double *d = dual ? dual->data() : nullptr, *s = scores ? scores->data() : nullptr;
                std::vector<double> z(2 * K);
                const std::size_t piece = std::max<std::size_t>(1, WORK_BETWEEN_LOOKS / (K * rows.cost()));
                double losses = 0.0;
                const auto step = one ? online_learn<true, decltype(rows)> : online_learn<false, decltype(rows)>;
                nb::gil_scoped_release nogil;
                const Interrupts interrupts;
                for (std::size_t from = 0; from < m && std::isfinite(losses); from += piece) {
                    losses += step(rows, rule, state, y.data(), sign, rank, f, from, std::min(m, from + piece), d, s,
                                   mistakes.data(), z.data());
                    interrupts();
                }
                return losses;
            },
            "X"_a.noconvert(), "rule"_a, "state"_a, "y"_a.noconvert(), "positive"_a.noconvert().none(),
            "order"_a.noconvert().none(), "fraction"_a.noconvert().none(), "dual"_a.noconvert().none(),
            "scores"_a.noconvert().none(), "mistakes"_a.noconvert(), "one"_a);
        m.def(
            "margin_pass",
            [](X table, Vector<double> sign, Vector<double> square, bool intercept, InOut1<double> a,
               InOut1<double> w) {
                constexpr const char *expected = "online.margin_pass: expected rows (n, p), dense or CSR, sign, square "
                                                 "and a (n,), w (p + 1,)";
                auto rows = row_reader(table, expected);
                const std::size_t n = rows.rows();
                require(sign.shape(0) == n && square.shape(0) == n && a.shape(0) == n, expected);
                require(w.shape(0) == rows.cols() + 1, expected);
                nb::gil_scoped_release nogil;
                margin_pass(rows, sign.data(), square.data(), intercept, a.data(), w.data());
            },
            "X"_a.noconvert(), "sign"_a.noconvert(), "square"_a.noconvert(), "intercept"_a, "a"_a.noconvert(),
            "w"_a.noconvert());
    });
}

}  // namespace epicycle
