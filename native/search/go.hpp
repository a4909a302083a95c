// Go on small boards: area scoring, positional superko, no suicide.
//
// A game ends after two passes in a row, or after LONGEST moves, and is then counted as it stands: stones and the empty
// regions that touch stones of one colour alone. No position of the board may come up a second time.
#pragma once

#include <cstring>

#include "search/board_games.hpp"

namespace epicycle {

constexpr std::uint64_t left_column(int n) {
    std::uint64_t x = 0;
    for (int row = 0; row < n; ++row) x |= 1ull << (n * row);
    return x;
}

template <int N>
struct Go {
    static constexpr int ROWS = N, COLUMNS = N, CELLS = N * N, PASS = N * N, ACTIONS = N * N + 1, LONGEST = 4 * N * N;
    static constexpr std::uint64_t BOARD = (1ull << CELLS) - 1;
    std::uint64_t side[2] = {0, 0};  // black, who begins, and white
    int count = 0, passes = 0, komi = 0;
    std::uint64_t past = 0;  // of the positions that were, as a number

    explicit Go(int half_points = 0) : komi(half_points) { remember(); }
    Go(const Go &other) { *this = other; }
    Go &operator=(const Go &other) {  // of the positions that were, only as many as there are
        if (this == &other) return *this;
        std::copy(std::begin(other.side), std::end(other.side), side);
        count = other.count, passes = other.passes, komi = other.komi, past = other.past, kept_ = other.kept_;
        std::memcpy(seen_, other.seen_, sizeof(seen_[0]) * static_cast<std::size_t>(kept_));
        return *this;
    }

    int player() const { return count & 1; }
    bool over() const { return passes == 2 || count == LONGEST; }
    int area_lead() const { return area(0) - area(1); }
    int result() const {
        const int lead = 2 * area_lead() - komi;
        return (lead > 0) - (lead < 0);
    }
    int moves(std::uint8_t *out) const {
        int n = 0;
        for (std::uint64_t free = empty(); free != 0; free &= free - 1) {
            const int cell = lowest_bit(free);
            if (allowed(cell)) out[n++] = static_cast<std::uint8_t>(cell);
        }
        out[n++] = PASS;
        return n;
    }
    bool legal(int move) const {
        if (move == PASS) return true;
        return move >= 0 && move < CELLS && (empty() >> move & 1u) != 0 && allowed(move);
    }
    void play(int move) {
        if (move == PASS) {
            ++passes;
        } else {
            const Board after = placed(move);
            side[0] = after.black, side[1] = after.white;
            passes = 0;
            remember();
        }
        ++count;
    }
    // Uniform over legal moves that fill no eye of one's own; a pass where there are none.
    int random_move(SplitMix &generator) const {
        std::uint64_t free = empty();
        while (free != 0) {
            const int cell = nth_bit(free, below(generator, bits(free)));
            if (!own_eye(cell) && allowed(cell)) return cell;
            free &= ~(1ull << cell);
        }
        return PASS;
    }
    // Two lines of play meet only where the same moves are allowed from then on: the past counts.
    std::uint64_t key() const {
        const auto rest = static_cast<std::uint64_t>(count * 4 + passes);
        return mixed(mixed(side[0], side[1]) ^ past, rest);
    }
    int stone(int cell) const { return side[0] >> cell & 1u ? 0 : (side[1] >> cell & 1u ? 1 : -1); }
    int promise(int move) const {
        if (move == PASS) return -1;
        const Board after = placed(move);
        const int enemy = 1 - player();
        const int taken = bits(side[enemy]) - bits(enemy == 0 ? after.black : after.white);
        const int edge = std::min({move / N, N - 1 - move / N, move % N, N - 1 - move % N});
        return 16 * taken + edge;
    }
    int estimate() const {
        const int lead = std::clamp(2 * area_lead() - komi, -4 * CELLS, 4 * CELLS);
        return 4 * (player() == 0 ? lead : -lead);
    }

private:
    struct Board {
        std::uint64_t black, white;
    };
    Board seen_[LONGEST + 1];
    int kept_ = 0;

    static constexpr std::uint64_t LEFT = left_column(N), RIGHT = LEFT << (N - 1);
    static std::uint64_t around(std::uint64_t x) {
        return ((x & ~RIGHT) << 1 | (x & ~LEFT) >> 1 | x << N | x >> N) & BOARD;
    }
    static std::uint64_t group(std::uint64_t from, std::uint64_t within) {
        for (std::uint64_t grown = from;; from = grown) {
            grown |= around(grown) & within;
            if (grown == from) return from;
        }
    }
    std::uint64_t empty() const { return BOARD & ~(side[0] | side[1]); }
    void remember() {
        seen_[kept_++] = {side[0], side[1]};
        past += mixed(side[1], side[0]);  // a sum: the order in which positions came does not matter
    }

    // The board after a stone, with what it takes; own stones without a liberty stay on it.
    Board placed(int cell) const {
        const int me = player();
        const std::uint64_t stone = 1ull << cell, mine = side[me] | stone;
        std::uint64_t theirs = side[1 - me];
        for (std::uint64_t near = around(stone) & theirs; near != 0; near &= near - 1) {
            const std::uint64_t at = near & (~near + 1);
            if ((at & theirs) == 0) continue;  // taken with a neighbour
            const std::uint64_t whole = group(at, theirs);
            if ((around(whole) & BOARD & ~(mine | theirs)) == 0) theirs &= ~whole;
        }
        return me == 0 ? Board{mine, theirs} : Board{theirs, mine};
    }
    bool allowed(int cell) const {
        const Board after = placed(cell);
        const std::uint64_t mine = player() == 0 ? after.black : after.white, stone = 1ull << cell;
        const std::uint64_t free = BOARD & ~(after.black | after.white);
        if ((around(stone) & free) == 0 && (around(group(stone, mine)) & free) == 0) return false;  // suicide
        for (int i = kept_ - 1; i >= 0; --i)
            if (seen_[i].black == after.black && seen_[i].white == after.white) return false;
        return true;
    }
    // An empty cell between own stones that the enemy cannot cut apart: of its corners at most one is the enemy's, none
    // at the edge.
    bool own_eye(int cell) const {
        const std::uint64_t at = 1ull << cell, mine = side[player()], theirs = side[1 - player()];
        const std::uint64_t next = around(at);
        if ((next & ~mine) != 0) return false;
        const std::uint64_t sides = (at & ~RIGHT) << 1 | (at & ~LEFT) >> 1;
        const std::uint64_t corners = (sides << N | sides >> N) & BOARD;
        return bits(corners & theirs) <= (bits(next) == 4 ? 1 : 0);
    }
    int area(int who) const {
        const std::uint64_t reached = group(side[1 - who], side[1 - who] | empty());
        return bits(BOARD & ~reached) - (side[who] == 0 ? bits(empty() & ~reached) : 0);
    }
};

}  // namespace epicycle
