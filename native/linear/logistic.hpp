// One fused pass of binary logistic regression over a block of rows, labels y in {0, 1}.
//
// With margin s_i = (2 y_i - 1) (b + (x_i - shift)'w):  loss sum_i w_i log(1 + exp(-s_i)), residual r_i = p_i - y_i,
// curvature h_i = p_i (1 - p_i). The gradient and the Hessian are taken in (w, b). X is read from memory once.
#pragma once

#include "core/margins.hpp"
#include "core/moments.hpp"

namespace epicycle {

// Turns margins z into weighted residuals r and curvatures h; returns the weighted loss.
EPICYCLE_CLONES inline double logistic_rows(const double *z, const double *y, const double *weight, std::size_t n,
                                            double *r, double *h) {
    double loss[ROWS];
    for (std::size_t i = 0; i < n; ++i) {
        const double sign = 2.0 * y[i] - 1.0, s = sign * z[i], w = weight ? weight[i] : 1.0;
        const double t = exp_nonpositive(-std::fabs(s)), u = 1.0 / (1.0 + t);
        const double q = s >= 0.0 ? t * u : u;  // probability of the other class
        loss[i] = w * ((s >= 0.0 ? 0.0 : -s) + log1p_unit(t));
        r[i] = -sign * q * w;
        h[i] = t * u * u * w;
    }
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += loss[i];
    return sum;
}

// Gradient only: g has p + 1 entries (w, b) and is zero on entry; `curvature` is the second derivative in b.
template <class T>
double logistic_gradient(const Dense<T> &X, const double *y, const double *weight, const double *shift, const double *w,
                         double b, double *g, double &curvature) {
    double z[ROWS], r[ROWS], h[ROWS], loss = 0.0;
    // Fewer rows at a time than ROWS when rows are long, so that the second use of X still finds it in the cache.
    const std::size_t step =
        std::max<std::size_t>(8, std::min(ROWS, (std::size_t{1} << 15) / std::max<std::size_t>(X.cols, 1)));
    for (std::size_t i0 = 0; i0 < X.rows; i0 += step) {
        const std::size_t n = std::min(step, X.rows - i0);
        margins(X, i0, n, shift, w, b, z);
        loss += logistic_rows(z, y + i0, weight ? weight + i0 : nullptr, n, r, h);
        add_gradient(X, i0, n, shift, r, g);
        for (std::size_t i = 0; i < n; ++i) g[X.cols] += r[i], curvature += h[i];
    }
    return loss;
}

// Loss, gradient and Hessian. Rows are packed as sqrt(h_i) (x_i - shift, 1) with one more column r_i / sqrt(h_i): the
// product of that column with the others is the gradient, so one symmetric product gives both.
template <class T>
double logistic_hessian(const Dense<T> &X, const double *y, const double *weight, const double *shift, const double *w,
                        double b, double *g, double *H) {
    constexpr double tiny = 1e-100;  // curvature floor: far below anything that shows in H, keeps r / sqrt(h) finite
    const std::size_t p = X.cols, d = p + 2;
    SyrkWorkspace &ws = SyrkWorkspace::of_thread(d);
    double z[ROWS], r[ROWS], h[ROWS], loss = 0.0;
    const double zero = 0.0, one = 1.0;
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS) {
        const std::size_t n = std::min(ROWS, X.rows - i0);
        margins(X, i0, n, shift, w, b, z);
        loss += logistic_rows(z, y + i0, weight ? weight + i0 : nullptr, n, r, h);
        for (std::size_t i = 0; i < n; ++i) h[i] = std::sqrt(std::max(h[i], tiny));
        pack(X, i0, n, shift, h, ws, 0);
        pack(Dense<double>{&one, n, 1, 0, 0}, 0, n, &zero, h, ws, p);
        double *last = ws.column(p + 1);
        for (std::size_t i = 0; i < n; ++i) last[i * PANEL] = r[i] / h[i];
        ws.accumulate(n);
    }
    const std::size_t ldc = panels(d) * PANEL;
    for (std::size_t i = 0; i <= p; ++i) {
        g[i] = ws.c[(p + 1) * ldc + i];
        for (std::size_t j = 0; j <= i; ++j) H[i * (p + 1) + j] = H[j * (p + 1) + i] = ws.c[i * ldc + j];
    }
    return loss;
}

// The same for CSR rows, which are not shifted: most of their entries are zero. Without H the gradient alone.
template <class T, class I>
double logistic_sums(const Csr<T, I> &X, const double *y, const double *weight, const double *w, double b, double *g,
                     double &curvature, double *H) {
    const std::size_t p = X.cols;
    double z[ROWS], r[ROWS], h[ROWS], loss = 0.0;
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS) {
        const std::size_t n = std::min(ROWS, X.rows - i0);
        for (std::size_t i = 0; i < n; ++i) {
            double sum = b;
            for (I a = X.indptr[i0 + i]; a < X.indptr[i0 + i + 1]; ++a)
                sum += static_cast<double>(X.data[a]) * w[X.indices[a]];
            z[i] = sum;
        }
        loss += logistic_rows(z, y + i0, weight ? weight + i0 : nullptr, n, r, h);
        for (std::size_t i = 0; i < n; ++i) {
            g[p] += r[i];
            curvature += h[i];
            for (I a = X.indptr[i0 + i]; a < X.indptr[i0 + i + 1]; ++a) {
                const double xa = static_cast<double>(X.data[a]);
                g[X.indices[a]] += r[i] * xa;
                if (!H) continue;
                double *row = H + static_cast<std::size_t>(X.indices[a]) * (p + 1);
                const double hx = h[i] * xa;
                for (I c = X.indptr[i0 + i]; c < X.indptr[i0 + i + 1]; ++c)
                    row[X.indices[c]] += hx * static_cast<double>(X.data[c]);
                row[p] += hx;
            }
            if (H) H[(p + 1) * (p + 1) - 1] += h[i];
        }
    }
    if (H)
        for (std::size_t j = 0; j < p; ++j) H[p * (p + 1) + j] = H[j * (p + 1) + p];
    return loss;
}

template <class T, class I>
double logistic_gradient(const Csr<T, I> &X, const double *y, const double *weight, const double *, const double *w,
                         double b, double *g, double &curvature) {
    return logistic_sums(X, y, weight, w, b, g, curvature, nullptr);
}
template <class T, class I>
double logistic_hessian(const Csr<T, I> &X, const double *y, const double *weight, const double *, const double *w,
                        double b, double *g, double *H) {
    double curvature = 0.0;
    return logistic_sums(X, y, weight, w, b, g, curvature, H);
}

}  // namespace epicycle
