// Terms by number: an open-addressed table of byte strings. The bytes of a string in UTF-8 are in the order of its code
// points, so that the order of bytes is the order of Python's strings.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

namespace epicycle {

constexpr std::size_t PADDING = 8;  // bytes behind a term that may be read, whatever they are

struct Term {
    const char *data;
    std::size_t size;
};

class Terms {
public:
    static constexpr std::uint32_t NONE = 0xFFFFFFFFu;
    std::vector<std::int64_t> documents, occurrences;  // of each term: counts of those who count

    std::size_t size() const { return start_.size() - 1; }
    Term operator[](std::size_t id) const { return {bytes_.data() + start_[id], start_[id + 1] - start_[id]}; }

    Terms() : bytes_(PADDING, 0), start_(1, 0) { resize(1 << 10); }

    // The bytes of the term may be read 8 beyond its end.
    std::uint32_t find(Term term) const {
        const std::uint64_t key = key_of(term);
        for (std::size_t i = home(key);; i = (i + 1) & mask_) {
            const Slot &slot = slots_[i];
            if (slot.id == NONE || (slot.key == key && same(slot.id, term))) return slot.id;
        }
    }

    std::uint32_t insert(Term term) {
        const std::uint64_t key = key_of(term);
        std::size_t i = home(key);
        for (; slots_[i].id != NONE; i = (i + 1) & mask_)
            if (slots_[i].key == key && same(slots_[i].id, term)) return slots_[i].id;
        const auto id = static_cast<std::uint32_t>(size());
        slots_[i] = {key, id};
        const std::size_t from = start_.back();
        if (bytes_.capacity() < from + term.size + PADDING) bytes_.reserve(2 * (from + term.size + PADDING));
        bytes_.resize(from + term.size + PADDING);
        std::memcpy(bytes_.data() + from, term.data, term.size);
        start_.push_back(from + term.size);
        if (2 * size() > slots_.size()) resize(2 * slots_.size());
        return id;
    }

    // The numbers of the terms in the order of their bytes.
    std::vector<std::int64_t> order() const {
        std::vector<std::pair<std::uint64_t, std::uint32_t>> keys(size());
        for (std::size_t id = 0; id < keys.size(); ++id) {
            const Term term = (*this)[id];
            std::uint64_t first = 0;
            for (std::size_t i = 0; i < 8; ++i)
                first = first << 8 | (i < term.size ? static_cast<unsigned char>(term.data[i]) : 0);
            keys[id] = {first, static_cast<std::uint32_t>(id)};
        }
        std::sort(keys.begin(), keys.end(), [this](const auto &a, const auto &b) {
            if (a.first != b.first) return a.first < b.first;
            const Term s = (*this)[a.second], t = (*this)[b.second];
            const int c = std::memcmp(s.data, t.data, std::min(s.size, t.size));
            return c != 0 ? c < 0 : s.size < t.size;
        });
        std::vector<std::int64_t> ids(keys.size());
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = keys[i].second;
        return ids;
    }

private:
    struct Slot {
        std::uint64_t key = 0;
        std::uint32_t id = NONE;
    };
    std::vector<char> bytes_;
    std::vector<std::size_t> start_;
    std::vector<Slot> slots_;
    std::size_t mask_ = 0;
    int shift_ = 0;

    // Up to seven bytes are their own key; longer terms have the highest bit and 63 bits of a hash.
    static std::uint64_t key_of(Term term) {
        std::uint64_t word;
        if (term.size < 8) {
            std::memcpy(&word, term.data, 8);
            return (word & ((std::uint64_t(1) << 8 * term.size) - 1)) | std::uint64_t(term.size) << 56;
        }
        std::uint64_t h = term.size * 0x9E3779B97F4A7C15u;
        const auto mix = [&h](std::uint64_t w) {
            h = (h ^ w) * 0xD6E8FEB86659FD93u;
            h ^= h >> 32;
        };
        std::size_t i = 0;
        for (; i + 8 <= term.size; i += 8) {
            std::memcpy(&word, term.data + i, 8);
            mix(word);
        }
        std::memcpy(&word, term.data + term.size - 8, 8);
        mix(word);
        return h | std::uint64_t(1) << 63;
    }

    std::size_t home(std::uint64_t key) const { return key * 0x9E3779B97F4A7C15u >> shift_; }

    bool same(std::uint32_t id, Term term) const {
        if (term.size < 8) return true;
        const Term known = (*this)[id];
        return known.size == term.size && std::memcmp(known.data, term.data, term.size) == 0;
    }

    void resize(std::size_t n) {
        std::vector<Slot> old(n);
        old.swap(slots_);
        mask_ = n - 1;
        for (shift_ = 64; n > 1; n >>= 1) --shift_;
        for (const Slot &slot : old) {
            if (slot.id == NONE) continue;
            std::size_t i = home(slot.key);
            while (slots_[i].id != NONE) i = (i + 1) & mask_;
            slots_[i] = slot;
        }
    }
};

}  // namespace epicycle
