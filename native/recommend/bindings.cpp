// Bindings of the kernels of recommenders.
#include "core/binding.hpp"
#include "recommend/alternating.hpp"
#include "recommend/stochastic.hpp"

namespace epicycle {

using Indices = Vector<std::int32_t>;
using Places = Vector<std::int64_t>;

namespace {

recommend::Entries entries(const Places &start, const Indices &at, const Vector<double> &target,
                           const Weight &curvature, std::size_t partners, const char *expected) {
    require(start.shape(0) > 0 && target.shape(0) == at.shape(0), expected);
    const std::size_t rows = start.shape(0) - 1;
    const std::int64_t *s = start.data();
    require(s[0] == 0 && s[rows] == static_cast<std::int64_t>(at.shape(0)), expected);
    for (std::size_t u = 0; u < rows; ++u) require(s[u] <= s[u + 1], expected);
    require(all_below(at, partners), expected);
    return {s, at.data(), target.data(), pointer(curvature, at.shape(0), expected), rows};
}

recommend::Partners partners(const RowMajor<double> &values, bool bias, const char *expected) {
    require(values.shape(1) >= static_cast<std::size_t>(bias), expected);
    return {values.data(), values.shape(1) - bias, bias};
}

}  // namespace

void bind_recommend(nb::module_ &module) {
    module.def(
        "grouped",
        [](Indices codes, std::size_t n) {
            require(all_below(codes, n), "grouped: expected codes below n");
            const std::size_t rows = codes.shape(0);
            std::vector<std::int64_t> start(n + 1), order(rows);
            {
                nb::gil_scoped_release nogil;
                for (std::size_t j = 0; j < rows; ++j) ++start[static_cast<std::size_t>(codes.data()[j]) + 1];
                for (std::size_t i = 0; i < n; ++i) start[i + 1] += start[i];
                std::vector<std::int64_t> next(start.begin(), start.end() - 1);
                for (std::size_t j = 0; j < rows; ++j)
                    order[static_cast<std::size_t>(next[static_cast<std::size_t>(codes.data()[j])]++)] =
                        static_cast<std::int64_t>(j);
            }
            return std::tuple(array_out(std::move(start)), array_out(std::move(order)));
        },
        "codes"_a, "n"_a);
    module.def(
        "half_step",
        [](Places start, Indices at, Vector<double> target, Weight curvature, RowMajor<double> other, bool bias,
           RowMajor<double> base, Vector<double> penalty, Vector<double> scale, InOut2<double> x, int steps,
           int threads) {
            constexpr const char *expected =
                "half_step: expected start (n + 1,) rising from 0 to the number of entries, at, target and curvature "
                "(entries,), at below m, other (m, d), base (d, d), penalty (d,), scale (n,), x (n, d), steps >= 0";
            const auto p = partners(other, bias, expected);
            const auto e = entries(start, at, target, curvature, other.shape(0), expected);
            const std::size_t d = p.d();
            require(base.shape(0) == d && base.shape(1) == d && penalty.shape(0) == d, expected);
            require(scale.shape(0) == e.rows && x.shape(0) == e.rows && x.shape(1) == d && steps >= 0, expected);
            const recommend::Quadratic q{base.data(), penalty.data(), scale.data()};
            const int size = team(threads);
            Buffer numbers(e.rows * recommend::ROW_NUMBERS);
            {
                nb::gil_scoped_release nogil;
                if (steps == 0)
                    recommend::half_step(e, p, other.shape(0), q, x.data(), numbers.data.get(), size, Interrupts{});
                else
                    recommend::half_step_cg(e, p, q, steps, x.data(), numbers.data.get(), size, Interrupts{});
            }
            return matrix_out(numbers, e.rows, recommend::ROW_NUMBERS);
        },
        "start"_a, "at"_a, "target"_a, "curvature"_a.none(), "other"_a, "bias"_a, "base"_a, "penalty"_a, "scale"_a,
        "x"_a.noconvert(), "steps"_a, "threads"_a);
    module.def(
        "row_losses",
        [](Places start, Indices at, Vector<double> target, Weight curvature, RowMajor<double> other, bool bias,
           RowMajor<double> x, int threads) {
            constexpr const char *expected =
                "row_losses: expected start (n + 1,) rising from 0 to the number of entries, at, target and curvature "
                "(entries,), at below m, other (m, d), x (n, d)";
            const auto p = partners(other, bias, expected);
            const auto e = entries(start, at, target, curvature, other.shape(0), expected);
            require(x.shape(0) == e.rows && x.shape(1) == p.d(), expected);
            const int size = team(threads);
            Buffer loss(e.rows), gradient(e.rows * p.d());
            {
                nb::gil_scoped_release nogil;
                recommend::row_losses(e, p, x.data(), loss.data.get(), gradient.data.get(), size, Interrupts{});
            }
            return std::tuple(vector_out(loss, e.rows), matrix_out(gradient, e.rows, p.d()));
        },
        "start"_a, "at"_a, "target"_a, "curvature"_a.none(), "other"_a, "bias"_a, "x"_a, "threads"_a);
    module.def(
        "add_moments",
        [](Indices own, Indices at, Vector<double> target, Weight curvature, RowMajor<double> other, bool bias,
           std::size_t lo, nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu> out) {
            constexpr const char *expected =
                "add_moments: expected own, at, target and curvature (n,), own not negative, at below m, other (m, d), "
                "out (count, d + 1, d + 1)";
            const auto p = partners(other, bias, expected);
            const std::size_t n = at.shape(0);
            require(own.shape(0) == n && target.shape(0) == n && all_below(at, other.shape(0)), expected);
            require(all_below(own, std::size_t{1} << 31) && out.shape(1) == p.d() + 1 && out.shape(2) == p.d() + 1,
                    expected);
            const double *a = pointer(curvature, n, expected);
            nb::gil_scoped_release nogil;
            recommend::add_moments(own.data(), at.data(), target.data(), a, n, p, lo, out.shape(0), out.data());
        },
        "own"_a, "at"_a, "target"_a, "curvature"_a.none(), "other"_a, "bias"_a, "lo"_a, "out"_a.noconvert());
    module.def(
        "sgd_pass",
        [](Places order, Indices user, Indices item, Vector<double> target, Weight curvature,
           RowMajor<double> user_penalty, RowMajor<double> item_penalty, double rate, InOut2<double> users,
           InOut2<double> items, bool bias) {
            constexpr const char *expected =
                "sgd_pass: expected order below n, user, item, target and curvature (n,), penalties (users, 2) and "
                "(items, 2), users (users, d), items (items, d)";
            const std::size_t n = user.shape(0), d = users.shape(1);
            require(item.shape(0) == n && target.shape(0) == n && all_below(order, n), expected);
            require(all_below(user, users.shape(0)) && all_below(item, items.shape(0)), expected);
            require(items.shape(1) == d && d >= static_cast<std::size_t>(bias), expected);
            require(user_penalty.shape(0) == users.shape(0) && item_penalty.shape(0) == items.shape(0), expected);
            require(user_penalty.shape(1) == 2 && item_penalty.shape(1) == 2, expected);
            const double *a = pointer(curvature, n, expected);
            const recommend::Model model{users.data(), items.data(), d - bias, bias};
            nb::gil_scoped_release nogil;
            recommend::sgd_pass(order.data(), order.shape(0), user.data(), item.data(), target.data(), a,
                                user_penalty.data(), item_penalty.data(), rate, model);
        },
        "order"_a, "user"_a, "item"_a, "target"_a, "curvature"_a.none(), "user_penalty"_a, "item_penalty"_a, "rate"_a,
        "users"_a.noconvert(), "items"_a.noconvert(), "bias"_a);
    module.def(
        "bpr_pass",
        [](Places positive, Indices negative, Indices user, Indices item, Places start, Indices seen, double penalty,
           double rate, InOut2<double> users, InOut2<double> items, bool bias) {
            constexpr const char *expected =
                "bpr_pass: expected positive (s,) below n, negative (s,) below items, user and item (n,), start "
                "(users + 1,) rising to the length of seen, users (users, d), items (items, d)";
            const std::size_t n = user.shape(0), d = users.shape(1), s = positive.shape(0);
            require(item.shape(0) == n && negative.shape(0) == s && all_below(positive, n), expected);
            require(all_below(user, users.shape(0)) && all_below(item, items.shape(0)), expected);
            require(all_below(negative, items.shape(0)) && items.shape(1) == d, expected);
            require(d >= static_cast<std::size_t>(bias) && start.shape(0) == users.shape(0) + 1, expected);
            const std::int64_t *at = start.data();
            require(at[0] == 0 && at[users.shape(0)] == static_cast<std::int64_t>(seen.shape(0)), expected);
            for (std::size_t u = 0; u < users.shape(0); ++u) require(at[u] <= at[u + 1], expected);
            const recommend::Model model{users.data(), items.data(), d - bias, bias};
            recommend::Ranked count;
            {
                nb::gil_scoped_release nogil;
                count = recommend::bpr_pass(positive.data(), negative.data(), s, user.data(), item.data(), at,
                                            seen.data(), penalty, rate, model);
            }
            return std::tuple(count.used, count.right);
        },
        "positive"_a, "negative"_a, "user"_a, "item"_a, "start"_a, "seen"_a, "penalty"_a, "rate"_a,
        "users"_a.noconvert(), "items"_a.noconvert(), "bias"_a);
}

}  // namespace epicycle
