// Arrays that are read in no order, such as the values of successors: each read looks up its page, and of large pages
// there are few enough for the processor to remember.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace epicycle {

template <class T>
struct HugePages {
    using value_type = T;
    static constexpr std::size_t page = std::size_t{1} << 21;

    HugePages() = default;
    template <class U>
    HugePages(const HugePages<U> &) {}

    static T *allocate(std::size_t n) {
        const std::size_t bytes = n * sizeof(T);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        if (bytes >= page) {
            void *p = nullptr;
            if (posix_memalign(&p, page, bytes) != 0) throw std::bad_alloc();
            madvise(p, bytes, MADV_HUGEPAGE);  // a wish: what the system answers does not matter
            return static_cast<T *>(p);
        }
#endif
        void *p = std::malloc(bytes == 0 ? 1 : bytes);
        if (p == nullptr) throw std::bad_alloc();
        return static_cast<T *>(p);
    }
    static void deallocate(T *p, std::size_t) { std::free(p); }

    template <class U>
    bool operator==(const HugePages<U> &) const {
        return true;
    }
    template <class U>
    bool operator!=(const HugePages<U> &) const {
        return false;
    }
};

template <class T>
using HugeVector = std::vector<T, HugePages<T>>;

}  // namespace epicycle
