// Bindings of locally weighted regression.
#include "core/binding.hpp"
#include "local/line.hpp"
#include "local/space.hpp"

namespace epicycle {
namespace {

using OutBytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

constexpr std::size_t CHUNK = 32;  // queries that a thread takes at a time

// Runs work(from, to, workspace) over n queries. Chunks do not depend on the number of threads.
template <class Work>
void over_queries(std::size_t n, int threads, const Work &work) {
    const auto chunks = static_cast<std::int64_t>((n + CHUNK - 1) / CHUNK);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        LocalWorkspace ws;
#pragma omp for schedule(dynamic)
        for (std::int64_t i = 0; i < chunks; ++i) {
            const std::size_t from = static_cast<std::size_t>(i) * CHUNK;
            work(from, std::min(from + CHUNK, n), ws);
        }
    }
}

bool ascending(const Vector<double> &x) {
    for (std::size_t i = 1; i < x.shape(0); ++i)
        if (!(x.data()[i - 1] <= x.data()[i])) return false;
    return true;
}

struct Answers {
    Buffer value, own, squares, error;
    std::unique_ptr<std::uint8_t[]> status;
    std::size_t n;

    explicit Answers(std::size_t n) : value(n), own(n), squares(n), error(n), status(new std::uint8_t[n]()), n(n) {}
    LocalOutput output() {
        return {value.data.get(), own.data.get(), squares.data.get(), status.get(), error.data.get()};
    }
    auto give() {
        std::uint8_t *p = status.release();
        nb::capsule owner(p, [](void *q) noexcept { delete[] static_cast<std::uint8_t *>(q); });
        return std::make_tuple(vector_out(value, n), vector_out(own, n), vector_out(squares, n), vector_out(error, n),
                               OutBytes(p, {n}, owner));
    }
};

void check_choice(int kernel, int degree, int threads) {
    require(kernel >= 0 && kernel <= static_cast<int>(LocalKernel::gaussian) && degree >= 0 && degree <= 2 &&
                threads >= 1,
            "local regression: expected a kernel from 0 to 6, a degree from 0 to 2 and at least one thread");
}

}  // namespace

void bind_local(nb::module_ &m) {
    m.def(
        "line_radii",
        [](Vector<double> x, Weight upto, Vector<double> queries, double share, int threads) {
            constexpr const char *expected =
                "local.line_radii: expected ascending x (n,), n > 0, upto (n + 1,) or None";
            const std::size_t n = x.shape(0), k = queries.shape(0);
            require(n > 0 && ascending(x) && threads >= 1, expected);
            const LocalLine P{x.data(), nullptr, nullptr, pointer(upto, n + 1, expected), n};
            Buffer out(k);
            {
                nb::gil_scoped_release nogil;
                over_queries(k, threads, [&](std::size_t from, std::size_t to, LocalWorkspace &) {
                    for (std::size_t i = from; i < to; ++i) out.data[i] = line_radius(P, queries.data()[i], share);
                });
            }
            return vector_out(out, k);
        },
        "x"_a, "upto"_a.none(), "queries"_a, "share"_a, "threads"_a);
    m.def(
        "line",
        [](Vector<double> x, Vector<double> y, Vector<double> c, Vector<double> queries, Vector<double> h, int kernel,
           int degree, bool squares, int threads) {
            constexpr const char *expected = "local.line: expected ascending x, y, c (n,), n > 0, queries and h (k,)";
            const std::size_t n = x.shape(0), k = queries.shape(0);
            require(n > 0 && y.shape(0) == n && c.shape(0) == n && h.shape(0) == k && ascending(x), expected);
            check_choice(kernel, degree, threads);
            const LocalLine P{x.data(), y.data(), c.data(), nullptr, n};
            Answers answers(k);
            const LocalOutput out = answers.output();
            {
                nb::gil_scoped_release nogil;
                over_queries(k, threads, [&](std::size_t from, std::size_t to, LocalWorkspace &ws) {
                    line_queries(P, queries.data(), h.data(), from, to, static_cast<LocalKernel>(kernel), degree,
                                 squares, ws, out);
                });
            }
            return answers.give();
        },
        "x"_a, "y"_a, "c"_a, "queries"_a, "h"_a, "kernel"_a, "degree"_a, "squares"_a, "threads"_a);
    m.def(
        "space_radii",
        [](RowMajor<double> x, Vector<double> prior, RowMajor<double> queries, double share, int threads) {
            constexpr const char *expected =
                "local.space_radii: expected x (n, p), n > 0, prior (n,) and queries (k, p)";
            const std::size_t n = x.shape(0), k = queries.shape(0), p = x.shape(1);
            require(n > 0 && prior.shape(0) == n && queries.shape(1) == p && threads >= 1, expected);
            const LocalSpace P{x.data(), nullptr, nullptr, prior.data(), n, p};
            Buffer out(k);
            {
                nb::gil_scoped_release nogil;
                over_queries(k, threads, [&](std::size_t from, std::size_t to, LocalWorkspace &ws) {
                    for (std::size_t i = from; i < to; ++i)
                        out.data[i] = space_radius(P, queries.data() + i * p, share, ws);
                });
            }
            return vector_out(out, k);
        },
        "x"_a, "prior"_a, "queries"_a, "share"_a, "threads"_a);
    m.def(
        "space",
        [](RowMajor<double> x, Vector<double> y, Vector<double> c, RowMajor<double> queries, Vector<double> h,
           int kernel, int degree, bool squares, int threads) {
            constexpr const char *expected =
                "local.space: expected x (n, p), y, c (n,), n > 0, queries (k, p) and h (k,)";
            const std::size_t n = x.shape(0), k = queries.shape(0), p = x.shape(1);
            require(n > 0 && y.shape(0) == n && c.shape(0) == n && queries.shape(1) == p && h.shape(0) == k, expected);
            check_choice(kernel, degree, threads);
            const LocalSpace P{x.data(), y.data(), c.data(), nullptr, n, p};
            Answers answers(k);
            const LocalOutput out = answers.output();
            {
                nb::gil_scoped_release nogil;
                const BoxTree tree(P);
                over_queries(k, threads, [&](std::size_t from, std::size_t to, LocalWorkspace &ws) {
                    space_queries(P, tree, queries.data(), h.data(), from, to, static_cast<LocalKernel>(kernel), degree,
                                  squares, ws, out);
                });
            }
            return answers.give();
        },
        "x"_a, "y"_a, "c"_a, "queries"_a, "h"_a, "kernel"_a, "degree"_a, "squares"_a, "threads"_a);
}

}  // namespace epicycle
