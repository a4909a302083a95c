// Byte-pair encoding (Sennrich et al., 2016) over bytes.
//
// Learning: all symbols are bytes 0 .. 255 at first. The pair of neighbours (a, b) that occurs most often, of equals
// the one with the smallest a, then b, becomes a new symbol, again and again. Pieces of text occur `count` times each,
// and no pair reaches over the end of a piece.
//
// A merge touches the places of its pair alone: symbols are a linked list, and every pair knows its count and the
// places where it stood when it came up. A pair arises while its newer symbol is made and never later, so its places
// are in order, and may only be out of date. The heap holds each pair once, with a count that is true or too high.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace epicycle {

constexpr std::uint32_t N_BYTES = 256, NOTHING = 0xFFFFFFFFu;

struct PairHash {
    std::size_t operator()(std::uint64_t pair) const {
        const std::uint64_t h = pair * 0x9E3779B97F4A7C15u;
        return h ^ h >> 32;
    }
};

inline std::uint64_t pair_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t(a) << 32 | b; }

class PairLearner {
public:
    std::int64_t tokens = 0;  // symbols of the corpus, every piece counted as often as it occurs

    // The bytes of all pieces one after another; piece i has bytes start[i] .. start[i + 1] and occurs count[i] times.
    PairLearner(const unsigned char *bytes, const std::int64_t *start, const std::int64_t *count, std::size_t pieces) {
        const auto n = static_cast<std::size_t>(start[pieces]);
        symbol_.assign(bytes, bytes + n);
        next_.resize(n);
        previous_.resize(n);
        piece_.resize(n);
        for (std::size_t i = 0; i < pieces; ++i)
            for (std::int64_t p = start[i]; p < start[i + 1]; ++p) {
                previous_[p] = p > start[i] ? static_cast<std::uint32_t>(p - 1) : NOTHING;
                next_[p] = p + 1 < start[i + 1] ? static_cast<std::uint32_t>(p + 1) : NOTHING;
                piece_[p] = static_cast<std::uint32_t>(i);
                tokens += count[i];
            }
        count_ = count;
        for (std::uint32_t p = 0; p < n; ++p)
            if (next_[p] != NOTHING) add(symbol_[p], symbol_[next_[p]], p);
        for (const auto &[pair, uses] : uses_) heap_.push({uses.count, pair});
    }

    // The next merge as (a, b, count), or a count of 0 where no pair is left.
    struct Merge {
        std::uint32_t a, b;
        std::int64_t count;
    };

    Merge best() {
        while (!heap_.empty()) {
            const Entry top = heap_.top();
            const std::int64_t now = uses_.at(top.pair).count;
            if (now == top.count)
                return {static_cast<std::uint32_t>(top.pair >> 32), static_cast<std::uint32_t>(top.pair), now};
            heap_.pop();
            if (now > 0) heap_.push({now, top.pair});
        }
        return {0, 0, 0};
    }

    // Writes `made` for every a followed by b, from left to right.
    void merge(std::uint32_t a, std::uint32_t b, std::uint32_t made) {
        const std::uint64_t pair = pair_of(a, b);
        const std::vector<std::uint32_t> places = std::move(uses_.at(pair).places);
        fresh_.clear();
        for (const std::uint32_t p : places) {
            const std::uint32_t q = next_[p];
            if (symbol_[p] != a || q == NOTHING || symbol_[q] != b) continue;
            const std::int64_t many = count_[piece_[p]];
            const std::uint32_t left = previous_[p], right = next_[q];
            uses_.at(pair).count -= many;
            if (left != NOTHING) uses_.at(pair_of(symbol_[left], a)).count -= many;
            if (right != NOTHING) uses_.at(pair_of(b, symbol_[right])).count -= many;
            symbol_[p] = made;
            symbol_[q] = NOTHING;
            next_[p] = right;
            next_[q] = NOTHING;
            if (right != NOTHING) previous_[right] = p;
            if (left != NOTHING) add_fresh(symbol_[left], made, left);
            if (right != NOTHING) add_fresh(made, symbol_[right], p);
            tokens -= many;
        }
        uses_.at(pair).places = {};
        for (const std::uint64_t key : fresh_)
            if (const std::int64_t count = uses_.at(key).count; count > 0) heap_.push({count, key});
    }

private:
    struct Uses {
        std::int64_t count = 0;
        std::vector<std::uint32_t> places;
    };
    struct Entry {
        std::int64_t count;
        std::uint64_t pair;
        bool operator<(const Entry &other) const {  // the heap has the largest on top
            return count != other.count ? count < other.count : pair > other.pair;
        }
    };
    std::vector<std::uint32_t> symbol_, next_, previous_, piece_;
    const std::int64_t *count_ = nullptr;
    std::unordered_map<std::uint64_t, Uses, PairHash> uses_;
    std::vector<std::uint64_t> fresh_;
    std::priority_queue<Entry> heap_;

    bool add(std::uint32_t a, std::uint32_t b, std::uint32_t place) {
        const auto [found, is_new] = uses_.try_emplace(pair_of(a, b));
        found->second.count += count_[piece_[place]];
        found->second.places.push_back(place);
        return is_new;
    }

    void add_fresh(std::uint32_t a, std::uint32_t b, std::uint32_t place) {
        if (add(a, b, place)) fresh_.push_back(pair_of(a, b));
    }
};

// Encoding: of all pairs of neighbours that were ever merged the one that was merged first, the leftmost of equals, is
// merged, again and again. Merge m makes the symbol 256 + m.
class PairEncoder {
public:
    PairEncoder(const std::int32_t *merges, std::size_t n) {
        ranks_.reserve(2 * n);
        for (std::size_t m = 0; m < n; ++m)
            ranks_.try_emplace(
                pair_of(static_cast<std::uint32_t>(merges[2 * m]), static_cast<std::uint32_t>(merges[2 * m + 1])),
                static_cast<std::uint32_t>(N_BYTES + m));
    }

    void encode(std::string_view piece, std::vector<std::int32_t> &out) const {
        const auto n = static_cast<std::uint32_t>(piece.size());
        std::vector<std::uint32_t> symbol(n), next(n), previous(n);
        for (std::uint32_t p = 0; p < n; ++p) {
            symbol[p] = static_cast<unsigned char>(piece[p]);
            next[p] = p + 1 < n ? p + 1 : NOTHING;
            previous[p] = p > 0 ? p - 1 : NOTHING;
        }
        using Step = std::pair<std::uint32_t, std::uint32_t>;  // (symbol that the merge makes, place)
        std::priority_queue<Step, std::vector<Step>, std::greater<Step>> steps;
        const auto propose = [&](std::uint32_t p) {
            if (p == NOTHING || next[p] == NOTHING) return;
            const auto found = ranks_.find(pair_of(symbol[p], symbol[next[p]]));
            if (found != ranks_.end()) steps.push({found->second, p});
        };
        for (std::uint32_t p = 0; p < n; ++p) propose(p);
        while (!steps.empty()) {
            const auto [made, p] = steps.top();
            steps.pop();
            const std::uint32_t q = symbol[p] == NOTHING ? NOTHING : next[p];
            if (q == NOTHING) continue;
            const auto found = ranks_.find(pair_of(symbol[p], symbol[q]));
            if (found == ranks_.end() || found->second != made) continue;  // what stood there is merged already
            symbol[p] = made;
            symbol[q] = NOTHING;
            next[p] = next[q];
            if (next[p] != NOTHING) previous[next[p]] = p;
            propose(previous[p]);
            propose(p);
        }
        for (std::uint32_t p = n > 0 ? 0 : NOTHING; p != NOTHING; p = next[p])
            out.push_back(static_cast<std::int32_t>(symbol[p]));
    }

private:
    std::unordered_map<std::uint64_t, std::uint32_t, PairHash> ranks_;
};

}  // namespace epicycle
