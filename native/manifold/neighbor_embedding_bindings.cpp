// Bindings of neighbour embeddings.
#include "core/binding.hpp"
#include "manifold/affinities.hpp"
#include "manifold/descent.hpp"
#include "manifold/placement.hpp"
#include "manifold/sne.hpp"

namespace epicycle {
namespace {

using manifold::Graph;
using manifold::Kernel;
using manifold::Method;

// Edges in CSR with the multiplicities of the rows: what attracts.
struct Edges {
    Vector<std::int64_t> first;
    Vector<std::int32_t> other;
    Vector<float> value;
    Vector<double> weight;
    std::size_t rows() const { return first.shape(0) - 1; }
    Graph graph() const { return {first.data(), other.data(), value.data(), rows()}; }
    void check(std::size_t targets) const {
        constexpr const char *expected = "manifold: expected edges first (n + 1,), other and value (m,), that exist";
        require(first.shape(0) >= 2 && other.shape(0) == value.shape(0) && all_below(other, targets), expected);
        require(first.data()[0] == 0 && static_cast<std::size_t>(first.data()[rows()]) == other.shape(0), expected);
        for (std::size_t i = 0; i < rows(); ++i) require(first.data()[i] <= first.data()[i + 1], expected);
    }
};

// The two parts of the energy, and how the field of repulsion is computed.
struct Forces {
    bool logarithmic;
    double softness, freedom, attraction, repulsion;
    bool normalised;
    int method;
    double angle, step;
    Kernel kernel() const { return {logarithmic, softness, freedom}; }
    void check(std::size_t dim) const {
        constexpr const char *expected = "manifold: expected softness > 0 of a logarithmic kernel, freedom > 0, angle "
                                         ">= 0, step > 0, a method from 0 "
                                         "to 2, a grid for two dimensions and one degree of freedom";
        require((!logarithmic || softness > 0.0) && freedom > 0.0 && angle >= 0.0 && step > 0.0, expected);
        require(method >= 0 && method <= 2, expected);
        require(method != 2 || (dim == 2 && freedom == 1.0), expected);
    }
};

manifold::Energy energy_of(const Edges &edges, const Forces &forces, std::size_t dim) {
    return {edges.graph(),    edges.weight.data(), dim, forces.kernel(), forces.attraction,
            forces.repulsion, forces.normalised};
}

void check(const Edges &edges, const Forces &forces, std::size_t n, std::size_t dim) {
    require(dim >= 1 && edges.rows() == n && edges.weight.shape(0) == n,
            "manifold: expected points (n, d) and edges of n rows with their weights");
    edges.check(n);
    forces.check(dim);
}

nb::tuple bound_descend(InOut2<double> points, InOut2<double> velocity, InOut2<double> gains, const Edges &edges,
                        const Forces &forces, double rate, double momentum, std::size_t count, int threads) {
    const std::size_t n = points.shape(0), dim = points.shape(1);
    check(edges, forces, n, dim);
    require(velocity.shape(0) == n && velocity.shape(1) == dim && gains.shape(0) == n && gains.shape(1) == dim,
            "manifold.descend: expected velocity and gains as points (n, d)");
    const int size = team(threads);
    const manifold::Energy energy = energy_of(edges, forces, dim);
    double norm = 0.0, attraction = 0.0, Z = 0.0;
    {
        nb::gil_scoped_release nogil;
        const Interrupts interrupts;
        manifold::Repulsion repulsion(static_cast<Method>(forces.method), forces.kernel(), forces.angle, forces.step,
                                      size);
        manifold::Slopes work(n, dim);
        const bool plane = dim == 2 && forces.freedom == 1.0;
        manifold::descend(energy, repulsion, plane, {rate, momentum, count}, size, interrupts, points.data(),
                          velocity.data(), gains.data(), work);
        std::vector<double> g(n * dim);
        manifold::gradient(energy, repulsion, plane, points.data(), size, interrupts, work, g.data());
        for (std::size_t k = 0; k < n * dim; ++k) norm += g[k] * g[k];
        Z = work.Z;
        attraction = manifold::attraction_energy(energy, points.data(), size);
    }
    return nb::make_tuple(norm, attraction, Z);
}

nb::tuple bound_gradient(RowMajor<double> points, const Edges &edges, const Forces &forces, int threads) {
    const std::size_t n = points.shape(0), dim = points.shape(1);
    check(edges, forces, n, dim);
    const int size = team(threads);
    const manifold::Energy energy = energy_of(edges, forces, dim);
    Buffer g(n * dim);
    manifold::Slopes work(n, dim);
    double attraction = 0.0;
    {
        nb::gil_scoped_release nogil;
        manifold::Repulsion repulsion(static_cast<Method>(forces.method), forces.kernel(), forces.angle, forces.step,
                                      size);
        manifold::gradient(energy, repulsion, dim == 2 && forces.freedom == 1.0, points.data(), size, Interrupts{},
                           work, g.data.get());
        attraction = manifold::attraction_energy(energy, points.data(), size);
    }
    return nb::make_tuple(matrix_out(g, n, dim), attraction, work.Z);
}

void bound_place(InOut2<double> points, const Edges &edges, RowMajor<double> fixed, const Forces &forces, int threads) {
    constexpr const char *expected =
        "manifold.place: expected points (m, d), edges of m rows to fixed points (n, d) with n weights, d at most 64";
    const std::size_t m = points.shape(0), n = fixed.shape(0), dim = points.shape(1);
    require(n >= 1 && dim >= 1 && dim <= manifold::MOST_DIMENSIONS && fixed.shape(1) == dim && edges.rows() == m &&
                edges.weight.shape(0) == n,
            expected);
    edges.check(n);
    forces.check(dim);
    const int size = team(threads);
    nb::gil_scoped_release nogil;
    const Interrupts interrupts;
    const Kernel kernel = forces.kernel();
    const Graph graph = edges.graph();
    const auto all = [&](const auto &around) {
        in_pieces(0, (m + 15) / 16, interrupts, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for num_threads(size) schedule(dynamic, 1) if (size > 1)
            for (std::size_t block = from; block < to; ++block)
                for (std::size_t i = block * 16; i < std::min(block * 16 + 16, m); ++i)
                    manifold::place(around, graph, fixed.data(), dim, kernel, forces.attraction, forces.repulsion,
                                    forces.normalised, i, points.data() + i * dim);
        });
    };
    if (forces.method == 2)
        all(manifold::GridAround(fixed.data(), edges.weight.data(), n, kernel, forces.step, size));
    else
        all(manifold::PairsAround{manifold::Columns(fixed.data(), edges.weight.data(), n, dim), kernel});
}

nb::object bound_calibrate(RowMajor<double> distances, double perplexity, int threads) {
    const std::size_t n = distances.shape(0), k = distances.shape(1);
    require(k >= 1 && perplexity > 0.0, "manifold.calibrate: expected distances (n, k), k >= 1, and perplexity > 0");
    const int size = team(threads);
    Buffer p(n * k);
    {
        nb::gil_scoped_release nogil;
        in_pieces(0, (n + 63) / 64, Interrupts{}, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for num_threads(size) schedule(dynamic, 1) if (size > 1)
            for (std::size_t block = from; block < to; ++block) {
                std::vector<double> work;
                for (std::size_t i = block * 64; i < std::min(block * 64 + 64, n); ++i)
                    manifold::calibrate(distances.data() + i * k, k, std::log(perplexity), p.data.get() + i * k, work);
            }
        });
    }
    return nb::cast(matrix_out(p, n, k));
}

nb::object bound_fuzzy(RowMajor<double> distances, double target, int threads) {
    const std::size_t n = distances.shape(0), k = distances.shape(1);
    require(target > 0.0, "manifold.fuzzy: expected distances (n, k) and a target > 0");
    const int size = team(threads);
    Buffer p(n * k);
    {
        nb::gil_scoped_release nogil;
        in_pieces(0, (n + 63) / 64, Interrupts{}, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for num_threads(size) schedule(dynamic, 1) if (size > 1)
            for (std::size_t block = from; block < to; ++block)
                for (std::size_t i = block * 64; i < std::min(block * 64 + 64, n); ++i)
                    manifold::fuzzy(distances.data() + i * k, k, target, p.data.get() + i * k);
        });
    }
    return nb::cast(matrix_out(p, n, k));
}

nb::tuple bound_sne(RowMajor<double> P, RowMajor<double> both, RowMajor<double> points, int threads) {
    const std::size_t n = points.shape(0), dim = points.shape(1);
    require(P.shape(0) == n && P.shape(1) == n && both.shape(0) == n && both.shape(1) == n,
            "manifold.sne: expected P and P + P' (n, n), and points (n, d)");
    const int size = team(threads);
    Buffer g(n * dim);
    double value = 0.0;
    {
        nb::gil_scoped_release nogil;
        value = manifold::sne(P.data(), both.data(), points.data(), n, dim, size, Interrupts{}, g.data.get());
    }
    return nb::make_tuple(value, matrix_out(g, n, dim));
}

}  // namespace

void bind_neighbor_embeddings(nb::module_ &m) {
    nb::class_<Edges>(m, "Edges")
        .def(
            "__init__",
            [](Edges *self, Vector<std::int64_t> first, Vector<std::int32_t> other, Vector<float> value,
               Vector<double> weight) { new (self) Edges{first, other, value, weight}; },
            "first"_a.noconvert(), "other"_a.noconvert(), "value"_a.noconvert(), "weight"_a.noconvert());
    nb::class_<Forces>(m, "Forces")
        .def(
            "__init__",
            [](Forces *self, bool logarithmic, double softness, double freedom, double attraction, double repulsion,
               bool normalised, int method, double angle, double step) {
                new (self)
                    Forces{logarithmic, softness, freedom, attraction, repulsion, normalised, method, angle, step};
            },
            "logarithmic"_a, "softness"_a, "freedom"_a, "attraction"_a, "repulsion"_a, "normalised"_a, "method"_a,
            "angle"_a, "step"_a);
    m.def("descend", &bound_descend, "points"_a.noconvert(), "velocity"_a.noconvert(), "gains"_a.noconvert(), "edges"_a,
          "forces"_a, "rate"_a, "momentum"_a, "count"_a, "threads"_a);
    m.def("gradient", &bound_gradient, "points"_a, "edges"_a, "forces"_a, "threads"_a);
    m.def("place", &bound_place, "points"_a.noconvert(), "edges"_a, "fixed"_a, "forces"_a, "threads"_a);
    m.def("calibrate", &bound_calibrate, "distances"_a, "perplexity"_a, "threads"_a);
    m.def("fuzzy", &bound_fuzzy, "distances"_a, "target"_a, "threads"_a);
    m.def("sne", &bound_sne, "P"_a, "both"_a, "points"_a, "threads"_a);
}

}  // namespace epicycle
