// The thread limit that OpenMP sees (OMP_NUM_THREADS, threadpoolctl), and a fork that does not hang.
#pragma once

#include <algorithm>
#include <cstddef>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define EPICYCLE_HAS_FORK 1
#endif

namespace epicycle {

inline int max_threads() {
#if defined(_OPENMP)
    return omp_get_max_threads();
#else
    return 1 << 16;  // no limit of OpenMP's to respect
#endif
}

// GNU OpenMP keeps a pool of threads that does not exist in a forked child, where the next parallel region would wait
// for it for ever. Giving the pool back before the fork makes both sides start afresh.
inline void release_pool_before_fork() {
#if defined(EPICYCLE_HAS_FORK) && defined(_OPENMP) && (_OPENMP >= 201811 || (defined(__GNUC__) && __GNUC__ >= 9))
    pthread_atfork([] { omp_pause_resource_all(omp_pause_hard); }, nullptr, nullptr);
#endif
}

// Calls work(from, to) for one piece of a range after another, and looks for Ctrl-C between them: a parallel region
// cannot be left from within.
template <class Interrupt, class Work>
void in_pieces(std::size_t from, std::size_t end, const Interrupt &interrupt, Work work) {
    constexpr std::size_t PIECE = 1024;  // large against the start of a region, well below a second of work
    for (; from < end; from += PIECE) {
        work(from, std::min(from + PIECE, end));
        interrupt();
    }
}

}  // namespace epicycle
