// Log-densities in unconstrained coordinates, up to a constant, with their gradients.
#pragma once

#include <cstddef>

namespace epicycle {

class Density {
public:
    virtual ~Density() = default;
    virtual std::size_t dimension() const = 0;
    // log p(u), and its gradient in g unless the density has none. Called from several threads at once.
    virtual double operator()(const double *u, double *g) const = 0;
};

}  // namespace epicycle
