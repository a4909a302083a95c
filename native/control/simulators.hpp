// Mechanical systems to control: their equations of motion, integrators, and many trajectories at once.
//
// A system is a struct with the sizes of its state and control, `motion`, the derivative of the state by time,
// `is_speed`, the entries that a semi-implicit step moves first, and `constrain`, what walls and limits do after a
// step. All are templates over the number, so that the same lines move lanes of states and carry derivatives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "control/jets.hpp"

namespace epicycle {

template <class T>
EPICYCLE_INLINE T clipped(const T &x, double low, double high) {
    const double v = value_of(x);
    return v < low ? T(low) : (v > high ? T(high) : x);
}
template <class T>
EPICYCLE_INLINE double sign_of(const T &x) {
    const double v = value_of(x);
    return v > 0.0 ? 1.0 : (v < 0.0 ? -1.0 : 0.0);
}

EPICYCLE_INLINE double squared(double x) { return x * x; }

// State: position and speed of the cart, angle of the pole from upright and its speed; control: force on the cart.
// Parameters: gravity, mass of the cart, of the pole, half length, friction of the cart, of the hinge.
struct CartPoleSystem {
    static constexpr std::size_t states = 4, controls = 1, parameters = 6;
    static constexpr bool is_speed[] = {false, true, false, true};
    template <class T>
    static EPICYCLE_INLINE void motion(const T *x, const T *u, const double *p, T *out) {
        const double mass = p[1] + p[2], moment = p[2] * p[3];
        const auto [s, c] = sine_cosine(x[2]);
        const double rub = p[4] * sign_of(x[1]);
        const T push = (u[0] + moment * x[3] * x[3] * s - rub) / mass;
        const T turn = (p[0] * s - c * push - (p[5] / moment) * x[3]) / (p[3] * (4.0 / 3.0 - (p[2] / mass) * c * c));
        out[0] = x[1];
        out[1] = push - (moment / mass) * turn * c;
        out[2] = x[3];
        out[3] = turn;
    }
    template <class T>
    static EPICYCLE_INLINE void constrain(T *, const double *) {}
    static EPICYCLE_INLINE double reward(const double *, const double *, const double *) { return 1.0; }
};

// State: angle from upright and its speed; control: torque. Parameters: gravity, mass, length of the rod, damping,
// largest speed.
struct PendulumSystem {
    static constexpr std::size_t states = 2, controls = 1, parameters = 5;
    static constexpr bool is_speed[] = {false, true};
    template <class T>
    static EPICYCLE_INLINE void motion(const T *x, const T *u, const double *p, T *out) {
        const double inverse = 3.0 / (p[1] * p[2] * p[2]);  // of the moment of inertia of a rod about its end
        out[0] = x[1];
        out[1] = (1.5 * p[0] / p[2]) * sine_cosine(x[0]).sin + inverse * (u[0] - p[3] * x[1]);
    }
    template <class T>
    static EPICYCLE_INLINE void constrain(T *x, const double *p) {
        x[1] = clipped(x[1], -p[4], p[4]);
    }
    static EPICYCLE_INLINE double reward(const double *x, const double *u, const double *) {
        constexpr double turn = 6.283185307179586, shift = 6755399441055744.0;  // 1.5 * 2^52 rounds to integer
        const double rounds = (x[0] / turn + shift) - shift;
        return -(squared(x[0] - rounds * turn) + 0.1 * squared(x[1]) + 0.001 * squared(u[0]));
    }
};

// State: position and speed; control: throttle. Parameters: force, gravity, largest speed, position of the wall on the
// left, and of the right end.
struct MountainCarSystem {
    static constexpr std::size_t states = 2, controls = 1, parameters = 5;
    static constexpr bool is_speed[] = {false, true};
    template <class T>
    static EPICYCLE_INLINE void motion(const T *x, const T *u, const double *p, T *out) {
        out[0] = x[1];
        out[1] = p[0] * u[0] - p[1] * sine_cosine(3.0 * x[0]).cos;
    }
    // The speed of a semi-implicit step is limited before the position moves.
    template <class T>
    static EPICYCLE_INLINE void constrain(T *x, const double *p) {
        x[1] = clipped(x[1], -p[2], p[2]);
        const double at = value_of(x[0]);
        x[1] = at <= p[3] && value_of(x[1]) < 0.0 ? T(0.0) : x[1];
        x[0] = clipped(x[0], p[3], p[4]);
    }
    static EPICYCLE_INLINE double reward(const double *, const double *, const double *) { return -1.0; }
};

// State: position, height, tilt, and their speeds; controls: thrust of the right and of the left rotor. Parameters:
// gravity, mass, moment of inertia, distance of a rotor from the centre.
struct QuadrotorSystem {
    static constexpr std::size_t states = 6, controls = 2, parameters = 4;
    static constexpr bool is_speed[] = {false, false, false, true, true, true};
    template <class T>
    static EPICYCLE_INLINE void motion(const T *x, const T *u, const double *p, T *out) {
        const auto [s, c] = sine_cosine(x[2]);
        const T lift = (u[0] + u[1]) / p[1];
        out[0] = x[3];
        out[1] = x[4];
        out[2] = x[5];
        out[3] = -(lift * s);
        out[4] = lift * c - p[0];
        out[5] = (p[3] / p[2]) * (u[0] - u[1]);
    }
    template <class T>
    static EPICYCLE_INLINE void constrain(T *, const double *) {}
    static EPICYCLE_INLINE double reward(const double *x, const double *u, const double *p) {
        const double hover = 0.5 * p[0] * p[1], speeds = squared(x[3]) + squared(x[4]) + squared(x[5]);
        const double effort = squared(u[0] - hover) + squared(u[1] - hover);
        return -(squared(x[0]) + squared(x[1]) + 0.1 * (squared(x[2]) + speeds) + 0.001 * effort);
    }
};

// Kinematic bicycle, the usual model of a car. State: position in the plane, heading, speed; controls: acceleration and
// angle of the front wheel. Parameters: distances of the front and rear axle from the centre of mass, speed to keep.
struct BicycleSystem {
    static constexpr std::size_t states = 4, controls = 2, parameters = 3;
    static constexpr bool is_speed[] = {false, false, false, true};
    template <class T>
    static EPICYCLE_INLINE void motion(const T *x, const T *u, const double *p, T *out) {
        const auto [s, c] = sine_cosine(x[2]);
        const auto wheel = sine_cosine(u[1]);
        const T tangent = (p[1] / (p[0] + p[1])) * (wheel.sin / wheel.cos);  // of the angle of slip at the centre
        const T cosine = T(1.0) / square_root(T(1.0) + tangent * tangent), sine = tangent * cosine;
        out[0] = x[3] * (c * cosine - s * sine);
        out[1] = x[3] * (s * cosine + c * sine);
        out[2] = x[3] * sine / p[1];
        out[3] = u[0];
    }
    template <class T>
    static EPICYCLE_INLINE void constrain(T *, const double *) {}
    static EPICYCLE_INLINE double reward(const double *x, const double *u, const double *p) {
        const double off = squared(x[1]) + 0.1 * (squared(x[2]) + squared(x[3] - p[2]));
        return -(off + 0.01 * (squared(u[0]) + squared(u[1])));
    }
};

enum class Integrator { euler = 0, semi_implicit = 1, rk4 = 2 };

struct Clock {
    double seconds;
    Integrator integrator;
    const double *parameters;
};

template <class S, class T>
EPICYCLE_INLINE void euler_step(T *x, const T *u, const Clock &k) {
    T d[S::states];
    S::motion(x, u, k.parameters, d);
    for (std::size_t i = 0; i < S::states; ++i) x[i] = x[i] + k.seconds * d[i];
    S::constrain(x, k.parameters);
}

// Speeds first; positions then move with the new speeds, which keeps the energy of an oscillation bounded. What limits
// the speed applies before the position moves.
template <class S, class T>
EPICYCLE_INLINE void semi_implicit_step(T *x, const T *u, const Clock &k) {
    T d[S::states], moved[S::states];
    S::motion(x, u, k.parameters, d);
    for (std::size_t i = 0; i < S::states; ++i) moved[i] = S::is_speed[i] ? x[i] + k.seconds * d[i] : x[i];
    S::constrain(moved, k.parameters);
    for (std::size_t i = 0; i < S::states; ++i) x[i] = S::is_speed[i] ? moved[i] : x[i];
    S::motion(x, u, k.parameters, d);
    for (std::size_t i = 0; i < S::states; ++i) x[i] = S::is_speed[i] ? x[i] : x[i] + k.seconds * d[i];
    S::constrain(x, k.parameters);
}

template <class S, class T>
EPICYCLE_INLINE void rk4_step(T *x, const T *u, const Clock &k) {
    T d[S::states], at[S::states], sum[S::states];
    const double h = k.seconds;
    S::motion(x, u, k.parameters, d);
    for (std::size_t i = 0; i < S::states; ++i) sum[i] = d[i], at[i] = x[i] + 0.5 * h * d[i];
    S::motion(at, u, k.parameters, d);
    for (std::size_t i = 0; i < S::states; ++i) sum[i] = sum[i] + 2.0 * d[i], at[i] = x[i] + 0.5 * h * d[i];
    S::motion(at, u, k.parameters, d);
    for (std::size_t i = 0; i < S::states; ++i) sum[i] = sum[i] + 2.0 * d[i], at[i] = x[i] + h * d[i];
    S::motion(at, u, k.parameters, d);
    for (std::size_t i = 0; i < S::states; ++i) x[i] = x[i] + (h / 6.0) * (sum[i] + d[i]);
    S::constrain(x, k.parameters);
}

// States and controls of this many trajectories are moved at once, entry by entry. A last block is padded, so that a
// trajectory has the same bits whatever stands next to it.
constexpr std::size_t LANES = 32;

template <class S, class Move>
EPICYCLE_INLINE void over_lanes(double *x, const double *u, double *r, const Clock &k, Move move) {
    for (std::size_t l = 0; l < LANES; ++l) {
        double state[S::states], control[S::controls];
        for (std::size_t i = 0; i < S::states; ++i) state[i] = x[i * LANES + l];
        for (std::size_t j = 0; j < S::controls; ++j) control[j] = u[j * LANES + l];
        r[l] = S::reward(state, control, k.parameters);
        move(state, control);
        for (std::size_t i = 0; i < S::states; ++i) x[i * LANES + l] = state[i];
    }
}

// A loop for each integrator and system, compiled for several instruction sets.
#define EPICYCLE_SYSTEM(S)                                                                                             \
    EPICYCLE_CLONES inline void S##_euler(double *x, const double *u, double *r, const Clock &k) {                     \
        over_lanes<S>(x, u, r, k,                                                                                      \
                      [&](double *a, double *b) __attribute__((always_inline)) { euler_step<S>(a, b, k); });           \
    }                                                                                                                  \
    EPICYCLE_CLONES inline void S##_semi_implicit(double *x, const double *u, double *r, const Clock &k) {             \
        over_lanes<S>(x, u, r, k,                                                                                      \
                      [&](double *a, double *b) __attribute__((always_inline)) { semi_implicit_step<S>(a, b, k); });   \
    }                                                                                                                  \
    EPICYCLE_CLONES inline void S##_rk4(double *x, const double *u, double *r, const Clock &k) {                       \
        over_lanes<S>(x, u, r, k, [&](double *a, double *b) __attribute__((always_inline)) { rk4_step<S>(a, b, k); }); \
    }                                                                                                                  \
    template <>                                                                                                        \
    inline void move_lanes<S>(double *x, const double *u, double *r, const Clock &k) {                                 \
        if (k.integrator == Integrator::euler) return S##_euler(x, u, r, k);                                           \
        if (k.integrator == Integrator::semi_implicit) return S##_semi_implicit(x, u, r, k);                           \
        S##_rk4(x, u, r, k);                                                                                           \
    }

template <class S>
void move_lanes(double *x, const double *u, double *r, const Clock &k);
EPICYCLE_SYSTEM(CartPoleSystem)
EPICYCLE_SYSTEM(PendulumSystem)
EPICYCLE_SYSTEM(MountainCarSystem)
EPICYCLE_SYSTEM(QuadrotorSystem)
EPICYCLE_SYSTEM(BicycleSystem)
#undef EPICYCLE_SYSTEM

// Where the controls come from: an array (rows, steps, controls), or (1, steps, controls) for all rows; or linear
// feedback u = offset - gain x with one gain, or one for each step. Controls are cut to [low, high].
struct Controls {
    const double *given = nullptr;
    std::size_t row_stride = 0;
    const double *gain = nullptr, *offset = nullptr;
    bool constant = false;  // the same gain at all times
    const double *low = nullptr, *high = nullptr;
};

// A trajectory rests from the step on at which it leaves the box [low, high], if there is one.
struct Box {
    const double *low = nullptr, *high = nullptr;
};

struct Trajectories {
    double *states = nullptr;    // (rows, steps + 1, states), or null
    double *controls = nullptr;  // (rows, steps, controls), or null
    double *rewards = nullptr;   // (rows, steps), or null
    double *last = nullptr;      // (rows, states)
    std::int64_t *lengths = nullptr;
};

template <class S>
class Rollout {
public:
    Rollout(const double *start, std::size_t rows, std::size_t steps, const Controls &from, const Box &box,
            const Clock &clock, const Trajectories &out)
        : start_(start), rows_(rows), steps_(steps), from_(from), box_(box), clock_(clock), out_(out) {}

    void block(std::size_t first) const {
        const std::size_t count = std::min(LANES, rows_ - first);
        alignas(64) double x[S::states * LANES] = {}, u[S::controls * LANES] = {}, before[S::states * LANES], r[LANES];
        bool moving[LANES] = {};
        for (std::size_t l = 0; l < count; ++l) {
            for (std::size_t i = 0; i < S::states; ++i) x[i * LANES + l] = start_[(first + l) * S::states + i];
            out_.lengths[first + l] = static_cast<std::int64_t>(steps_);
            moving[l] = true;
        }
        store(x, first, count, 0);
        for (std::size_t t = 0; t < steps_; ++t) {
            choose(x, u, first, count, t);
            const bool ended = box_.low != nullptr && rest(x, moving, first, count, t);
            if (ended) std::copy(std::begin(x), std::end(x), std::begin(before));
            move_lanes<S>(x, u, r, clock_);
            if (ended) restore(x, before, moving);
            if (out_.rewards != nullptr)
                for (std::size_t l = 0; l < count; ++l) out_.rewards[(first + l) * steps_ + t] = moving[l] ? r[l] : 0.0;
            store(x, first, count, t + 1);
        }
        for (std::size_t l = 0; l < count; ++l)
            for (std::size_t i = 0; i < S::states; ++i) out_.last[(first + l) * S::states + i] = x[i * LANES + l];
    }

private:
    void choose(const double *x, double *u, std::size_t first, std::size_t count, std::size_t t) const {
        for (std::size_t j = 0; j < S::controls; ++j) {
            double *v = u + j * LANES;
            if (from_.given != nullptr) {
                const double *given = from_.given + first * from_.row_stride + t * S::controls + j;
                for (std::size_t l = 0; l < count; ++l) v[l] = given[l * from_.row_stride];
            } else {
                const std::size_t at = from_.constant ? 0 : t;
                const double *K = from_.gain + (at * S::controls + j) * S::states;
                for (std::size_t l = 0; l < LANES; ++l) {
                    double sum = from_.offset[at * S::controls + j];
                    for (std::size_t i = 0; i < S::states; ++i) sum -= K[i] * x[i * LANES + l];
                    v[l] = sum;
                }
            }
            for (std::size_t l = 0; l < LANES; ++l) v[l] = std::max(from_.low[j], std::min(from_.high[j], v[l]));
        }
        if (out_.controls == nullptr) return;
        for (std::size_t l = 0; l < count; ++l)
            for (std::size_t j = 0; j < S::controls; ++j)
                out_.controls[((first + l) * steps_ + t) * S::controls + j] = u[j * LANES + l];
    }

    // Trajectories that are outside of the box move no further; true if there are any.
    bool rest(const double *x, bool *moving, std::size_t first, std::size_t count, std::size_t t) const {
        bool any = false;
        for (std::size_t l = 0; l < count; ++l) {
            for (std::size_t i = 0; i < S::states && moving[l]; ++i) {
                const double v = x[i * LANES + l];
                if (v < box_.low[i] || v > box_.high[i]) {
                    moving[l] = false;
                    out_.lengths[first + l] = static_cast<std::int64_t>(t);
                }
            }
            any = any || !moving[l];
        }
        return any;
    }

    static void restore(double *x, const double *before, const bool *moving) {
        for (std::size_t i = 0; i < S::states; ++i)
            for (std::size_t l = 0; l < LANES; ++l)
                if (!moving[l]) x[i * LANES + l] = before[i * LANES + l];
    }

    void store(const double *x, std::size_t first, std::size_t count, std::size_t t) const {
        if (out_.states == nullptr) return;
        for (std::size_t l = 0; l < count; ++l)
            for (std::size_t i = 0; i < S::states; ++i)
                out_.states[((first + l) * (steps_ + 1) + t) * S::states + i] = x[i * LANES + l];
    }

    const double *start_;
    std::size_t rows_, steps_;
    Controls from_;
    Box box_;
    Clock clock_;
    Trajectories out_;
};

// Value (states), derivatives (states, n) and second derivatives (states, n, n) of one step by its n = states +
// controls arguments. `second` may be null.
template <class S>
void expand_step(const double *x, const double *u, const Clock &k, double *value, double *first, double *second) {
    constexpr std::size_t d = S::states, n = d + S::controls;
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = a; b < (second != nullptr ? n : a + 1); ++b) {
            Jet z[n];
            for (std::size_t i = 0; i < n; ++i) z[i] = Jet(i < d ? x[i] : u[i - d], i == a, i == b, 0.0);
            if (k.integrator == Integrator::euler)
                euler_step<S>(z, z + d, k);
            else if (k.integrator == Integrator::semi_implicit)
                semi_implicit_step<S>(z, z + d, k);
            else
                rk4_step<S>(z, z + d, k);
            for (std::size_t i = 0; i < d; ++i) {
                value[i] = z[i].a;
                first[i * n + a] = z[i].b;
                if (second != nullptr) second[(i * n + a) * n + b] = second[(i * n + b) * n + a] = z[i].d;
            }
        }
}

}  // namespace epicycle
