// The module epicycle._native. Each family of kernels has a binding file of its own; those are the only files that know
// Python.
#include "binding.hpp"
#include "simd.hpp"
#include "threads.hpp"

namespace epicycle {
void bind_cart(nb::module_ &m);
void bind_glm(nb::module_ &m);
void bind_kernel(nb::module_ &m);
void bind_lars(nb::module_ &m);
void bind_lasso(nb::module_ &m);
void bind_linear(nb::module_ &m);
void bind_linear_svm(nb::module_ &m);
void bind_local(nb::module_ &m);
void bind_logistic(nb::module_ &m);
void bind_online(nb::module_ &m);
void bind_robust(nb::module_ &m);
void bind_stumps(nb::module_ &m);
void bind_svm(nb::module_ &m);
void bind_tree(nb::module_ &m);
void bind_tree_parts(nb::module_ &m);
}  // namespace epicycle

NB_MODULE(_native, m) {
    using namespace epicycle;
    m.doc() = "Compiled kernels: pure functions of arrays.";
    release_pool_before_fork();
    m.def("max_threads", &max_threads, "Threads that OpenMP would use here.");
    m.def(
        "instruction_set", [] { return isa() == Isa::avx512 ? "avx512"
                                       : isa() == Isa::avx2 ? "avx2"
                                                            : "baseline"; },
        "The instruction set that was chosen for the tiled kernels.");
    bind_cart(m);
    bind_glm(m);
    bind_kernel(m);
    bind_lars(m);
    bind_lasso(m);
    bind_linear(m);
    bind_linear_svm(m);
    bind_local(m);
    bind_logistic(m);
    bind_online(m);
    bind_robust(m);
    bind_stumps(m);
    bind_svm(m);
    bind_tree(m);
    bind_tree_parts(m);
}
