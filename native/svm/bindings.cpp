// Bindings of sequential minimal optimisation and of what decomposition needs around it.
#include "core/binding.hpp"
#include "svm/smo.hpp"

#include <vector>

namespace epicycle {
namespace {

using Indices = Vector<std::int64_t>;
using Found = std::tuple<std::size_t, double, double>;

constexpr std::size_t PIECE = 1 << 22;  // entries of K read between two looks at the clock, about: some ms

template <class T>
struct Dual {
    RowMajor<T> K;
    Vector<double> diagonal;
    Weight ridge;
    Vector<double> lo, hi;
    double epsilon;
    InOut1<double> b, v;

    std::size_t n() const { return b.shape(0); }
    void check(const char *expected) const {
        require(K.shape(0) == n() && K.shape(1) == n() && diagonal.shape(0) == n() && lo.shape(0) == n() &&
                    hi.shape(0) == n() && v.shape(0) == n() && epsilon >= 0.0,
                expected);
    }
};

// Calls part(box, steps so far) until no violation is above the tolerance or the part says that it was the last.
template <class T, class Part>
Found in_parts(const Dual<T> &dual, double tolerance, const Part &part) {
    std::vector<double> up(dual.n()), low(dual.n());
    const SmoBox box{dual.lo.data(), dual.hi.data(), dual.epsilon, dual.b.data(), up.data(), low.data()};
    SmoOutcome total;
    nb::gil_scoped_release nogil;
    const Interrupts interrupts;
    for (bool last = false;;) {
        const SmoOutcome done = part(box, total.steps, last);
        total.add(done);
        if (done.violation <= tolerance || last) return {total.steps, total.violation, total.curvature};
        interrupts();
    }
}

template <class T>
void bind_smo(nb::module_ &m) {
    m.def(
        "smo",
        [](RowMajor<T> K, Vector<double> diagonal, Weight ridge, Vector<double> lo, Vector<double> hi, double epsilon,
           Indices groups, InOut1<double> b, InOut1<double> v, double tolerance, std::size_t limit) {
            constexpr const char *expected =
                "smo: expected K (n, n), diagonal, lo, hi, b and v (n,), ridge (n,) or None, epsilon >= 0, groups "
                "that rise from 0 to n";
            const Dual<T> dual{K, diagonal, ridge, lo, hi, epsilon, b, v};
            dual.check(expected);
            const std::size_t n = dual.n();
            const double *D = pointer(ridge, n, expected);
            std::vector<std::size_t> bound;
            for (std::size_t g = 0; g < groups.shape(0); ++g) {
                require(groups.data()[g] >= 0 && static_cast<std::size_t>(groups.data()[g]) <= n, expected);
                bound.push_back(static_cast<std::size_t>(groups.data()[g]));
                require(g == 0 || bound[g] >= bound[g - 1], expected);
            }
            require(bound.size() >= 2 && bound.front() == 0 && bound.back() == n, expected);
            const std::size_t piece = std::max<std::size_t>(64, PIECE / std::max<std::size_t>(n, 1));
            return in_parts(dual, tolerance, [&](const SmoBox &box, std::size_t steps, bool &last) {
                const SmoOutcome done = smo(K.data(), n, diagonal.data(), D, box, v.data(), bound.data(),
                                            bound.size() - 1, tolerance, std::min(piece, limit - steps));
                last = steps + done.steps >= limit || done.steps == 0;
                return done;
            });
        },
        "K"_a.noconvert(), "diagonal"_a.noconvert(), "ridge"_a.noconvert().none(), "lo"_a.noconvert(),
        "hi"_a.noconvert(), "epsilon"_a, "groups"_a.noconvert(), "b"_a.noconvert(), "v"_a.noconvert(), "tolerance"_a,
        "limit"_a);
    m.def(
        "coordinate_sweeps",
        [](RowMajor<T> K, Vector<double> diagonal, Weight ridge, Vector<double> lo, Vector<double> hi, double epsilon,
           InOut1<double> b, InOut1<double> v, double tolerance, std::size_t sweeps) {
            constexpr const char *expected =
                "coordinate_sweeps: expected K (n, n), diagonal, lo, hi, b and v (n,), ridge (n,) or None, "
                "epsilon >= 0, sweeps >= 1";
            const Dual<T> dual{K, diagonal, ridge, lo, hi, epsilon, b, v};
            dual.check(expected);
            require(sweeps >= 1, expected);
            const std::size_t n = dual.n();
            const double *D = pointer(ridge, n, expected);
            return in_parts(dual, tolerance, [&](const SmoBox &box, std::size_t, bool &last) {
                last = --sweeps == 0;
                return coordinate_sweeps(K.data(), n, diagonal.data(), D, box, v.data(), n, tolerance, 1);
            });
        },
        "K"_a.noconvert(), "diagonal"_a.noconvert(), "ridge"_a.noconvert().none(), "lo"_a.noconvert(),
        "hi"_a.noconvert(), "epsilon"_a, "b"_a.noconvert(), "v"_a.noconvert(), "tolerance"_a, "sweeps"_a);
    m.def(
        "add_rows",
        [](RowMajor<T> K, Indices rows, Vector<double> coefficient, std::size_t from, std::size_t to,
           InOut1<double> out) {
            constexpr const char *expected =
                "add_rows: expected K (m, n), rows (r,) of it, coefficient (r,), start <= stop <= n, out (n,)";
            require(all_below(rows, K.shape(0)) && coefficient.shape(0) == rows.shape(0) && from <= to &&
                        to <= K.shape(1) && out.shape(0) == K.shape(1),
                    expected);
            std::vector<const T *> at;
            for (std::size_t r = 0; r < rows.shape(0); ++r)
                at.push_back(K.data() + static_cast<std::size_t>(rows.data()[r]) * K.shape(1));
            nb::gil_scoped_release nogil;
            constexpr std::size_t WIDTH = 2048;  // of a piece of `out` that stays in the first-level cache
            for (std::size_t first = from; first < to; first += WIDTH)
                smo_add_rows(at.data(), coefficient.data(), at.size(), first, std::min(to, first + WIDTH), out.data());
        },
        "K"_a.noconvert(), "rows"_a.noconvert(), "coefficient"_a.noconvert(), "start"_a, "stop"_a, "out"_a.noconvert());
}

}  // namespace

void bind_svm(nb::module_ &m) {
    bind_smo<double>(m);
    bind_smo<float>(m);
    m.def(
        "gaussian_single",
        [](InOut2<float> G, Vector<float> a_squares, Vector<float> b_squares, RowMajor<float> A, RowMajor<float> B,
           std::optional<InOut2<float>> K, std::optional<Indices> rows, std::size_t start) {
            constexpr const char *expected =
                "gaussian_single: expected G (n, m), a_squares (n,), b_squares (m,), A (n, p), B (m, p), and None or K "
                "with n of its rows and m columns from start";
            const std::size_t n = G.shape(0), k = G.shape(1);
            require(a_squares.shape(0) == n && b_squares.shape(0) == k && A.shape(0) == n && B.shape(0) == k &&
                        A.shape(1) == B.shape(1) && K.has_value() == rows.has_value(),
                    expected);
            if (K)
                require(rows->shape(0) == n && all_below(*rows, K->shape(0)) && start <= K->shape(1) &&
                            k <= K->shape(1) - start,
                        expected);
            std::vector<float *> out(n);
            for (std::size_t i = 0; i < n; ++i)
                out[i] =
                    K ? K->data() + static_cast<std::size_t>(rows->data()[i]) * K->shape(1) + start : G.data() + i * k;
            nb::gil_scoped_release nogil;
            gaussian_single(G.data(), n, k, a_squares.data(), b_squares.data(), A.data(), B.data(), A.shape(1),
                            out.data());
        },
        "G"_a.noconvert(), "a_squares"_a.noconvert(), "b_squares"_a.noconvert(), "A"_a.noconvert(), "B"_a.noconvert(),
        "K"_a.noconvert().none() = nb::none(), "rows"_a.noconvert().none() = nb::none(), "start"_a = 0);
}

}  // namespace epicycle
