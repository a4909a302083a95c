// Rules of games on bitboards: tic-tac-toe, Connect Four, Othello on 6 x 6.
//
// A game is a struct that is copied as a value. It has ROWS, COLUMNS, ACTIONS and LONGEST (moves that a game can take
// at most), and
//   player()        who moves, 0 or 1                over(), result()  the end, and 1, 0 or -1 for player 0
//   moves(out)      legal moves in ascending order   play(move)        of a legal move
//   random_move(g)  for playouts                     key()             a number for the position
//   stone(cell)     -1, 0 or 1, rows from the top    promise(move)     larger where a search should look first
//   estimate()      a guess for the player to move, inside (-ESTIMATE_LIMIT, ESTIMATE_LIMIT)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "core/splitmix.hpp"

namespace epicycle {

constexpr int ESTIMATE_LIMIT = 1000;

inline int bits(std::uint64_t x) { return __builtin_popcountll(x); }
inline int lowest_bit(std::uint64_t x) { return __builtin_ctzll(x); }

// A whole number below n, uniform but for 2^-32 n.
inline int below(SplitMix &generator, int n) {
    return static_cast<int>(((generator.next() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
}

inline int nth_bit(std::uint64_t x, int n) {
    for (; n > 0; --n) x &= x - 1;
    return lowest_bit(x);
}

inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    SplitMix first{a};
    SplitMix second{first.next() ^ b};
    return second.next();
}

// ------------------------------------------------------------------------------------------------ tic-tac-toe

struct TicTacToe {
    static constexpr int ROWS = 3, COLUMNS = 3, ACTIONS = 9, LONGEST = 9;
    std::uint32_t side[2] = {0, 0};
    int count = 0;
    bool won = false;

    explicit TicTacToe(int = 0) {}
    int player() const { return count & 1; }
    bool over() const { return won || count == 9; }
    int result() const { return won ? (count & 1 ? 1 : -1) : 0; }
    std::uint32_t empty() const { return 0777u & ~(side[0] | side[1]); }
    int moves(std::uint8_t *out) const {
        int n = 0;
        for (std::uint32_t free = empty(); free != 0; free &= free - 1)
            out[n++] = static_cast<std::uint8_t>(lowest_bit(free));
        return n;
    }
    bool legal(int move) const { return move >= 0 && move < 9 && (empty() >> move & 1u) != 0; }
    void play(int move) {
        std::uint32_t &mine = side[player()];
        mine |= 1u << move;
        ++count;
        won = three(mine);
    }
    int random_move(SplitMix &generator) const { return nth_bit(empty(), below(generator, 9 - count)); }
    std::uint64_t key() const { return side[0] | static_cast<std::uint64_t>(side[1]) << 9; }
    int stone(int cell) const { return side[0] >> cell & 1u ? 0 : (side[1] >> cell & 1u ? 1 : -1); }
    int promise(int move) const { return move == 4 ? 2 : (move % 2 == 0 ? 1 : 0); }
    int estimate() const { return 0; }

private:
    static bool three(std::uint32_t x) {
        constexpr std::uint32_t lines[] = {0007, 0070, 0700, 0111, 0222, 0444, 0421, 0124};
        return std::any_of(std::begin(lines), std::end(lines), [x](std::uint32_t line) { return (x & line) == line; });
    }
};

// ------------------------------------------------------------------------------------------------ Connect Four

// Seven bits for each column, the lowest row first, the seventh always empty, so that shifts never run into a
// neighbour.
struct ConnectFour {
    static constexpr int ROWS = 6, COLUMNS = 7, ACTIONS = 7, LONGEST = 42;
    static constexpr std::uint64_t BOTTOM = 0x0000040810204081ull, BOARD = BOTTOM * 63;
    std::uint64_t mine = 0, mask = 0;  // stones of the player to move, and of both
    int count = 0;
    bool won = false;

    explicit ConnectFour(int = 0) {}
    int player() const { return count & 1; }
    bool over() const { return won || count == LONGEST; }
    int result() const { return won ? (count & 1 ? 1 : -1) : 0; }
    std::uint64_t open() const { return (mask + BOTTOM) & BOARD; }  // where a stone can come to lie
    int moves(std::uint8_t *out) const {
        int n = 0;
        for (std::uint64_t free = open(); free != 0; free &= free - 1)
            out[n++] = static_cast<std::uint8_t>(lowest_bit(free) / 7);
        return n;
    }
    bool legal(int move) const { return move >= 0 && move < COLUMNS && (mask >> (7 * move + 5) & 1u) == 0; }
    void play(int move) {
        mine ^= mask;
        mask |= mask + (1ull << (7 * move));
        ++count;
        won = four(mine ^ mask);
    }
    int random_move(SplitMix &generator) const {
        for (;;) {  // a column that is full is drawn again
            const int move = below(generator, COLUMNS);
            if (legal(move)) return move;
        }
    }
    std::uint64_t key() const { return mine + mask; }
    int stone(int cell) const {
        const int bit = 7 * (cell % COLUMNS) + ROWS - 1 - cell / COLUMNS;
        if ((mask >> bit & 1u) == 0) return -1;
        return (mine >> bit & 1u) != 0 ? player() : 1 - player();
    }
    int promise(int move) const {
        const std::uint64_t stones = mine | (open() & (127ull << (7 * move)));
        return 8 * bits(winning_cells(stones) & ~mask) + (four(stones) ? 512 : 0) + 3 - std::abs(3 - move);
    }
    int estimate() const {
        const std::uint64_t empty = BOARD & ~mask;
        return 16 * (bits(winning_cells(mine) & empty) - bits(winning_cells(mine ^ mask) & empty));
    }

private:
    static bool four(std::uint64_t x) {
        for (const int step : {1, 6, 7, 8}) {
            const std::uint64_t pairs = x & (x >> step);
            if ((pairs & (pairs >> (2 * step))) != 0) return true;
        }
        return false;
    }
    // Cells that complete a row of four, whether they can be reached or not.
    static std::uint64_t winning_cells(std::uint64_t x) {
        std::uint64_t found = (x << 1) & (x << 2) & (x << 3);
        for (const int step : {6, 7, 8}) {
            std::uint64_t pair = (x << step) & (x << (2 * step));
            found |= pair & (x << (3 * step));
            found |= pair & (x >> step);
            pair = (x >> step) & (x >> (2 * step));
            found |= pair & (x << step);
            found |= pair & (x >> (3 * step));
        }
        return found & BOARD;
    }
};

// ------------------------------------------------------------------------------------------------ Othello, 6 x 6

struct Othello {
    static constexpr int ROWS = 6, COLUMNS = 6, PASS = 36, ACTIONS = 37, LONGEST = 64;  // 32 stones, passes between
    static constexpr std::uint64_t BOARD = (1ull << 36) - 1;
    std::uint64_t side[2] = {1ull << 15 | 1ull << 20, 1ull << 14 | 1ull << 21};
    int turn = 0;
    bool ended = false;

    explicit Othello(int = 0) {}
    int player() const { return turn; }
    bool over() const { return ended; }
    int result() const {
        const int lead = bits(side[0]) - bits(side[1]);
        return (lead > 0) - (lead < 0);
    }
    std::uint64_t places() const { return places_of(side[turn], side[1 - turn]); }
    int moves(std::uint8_t *out) const {
        int n = 0;
        for (std::uint64_t free = places(); free != 0; free &= free - 1)
            out[n++] = static_cast<std::uint8_t>(lowest_bit(free));
        if (n == 0) out[n++] = PASS;
        return n;
    }
    bool legal(int move) const {
        if (move == PASS) return !ended && places() == 0;
        return move >= 0 && move < PASS && (places() >> move & 1u) != 0;
    }
    void play(int move) {
        if (move != PASS) {
            const std::uint64_t turned = flipped(move);
            side[turn] |= turned | 1ull << move;
            side[1 - turn] &= ~turned;
        }
        turn = 1 - turn;
        ended = places() == 0 && places_of(side[1 - turn], side[turn]) == 0;
    }
    int random_move(SplitMix &generator) const {
        const std::uint64_t free = places();
        return free == 0 ? PASS : nth_bit(free, below(generator, bits(free)));
    }
    std::uint64_t key() const { return mixed(side[0] | static_cast<std::uint64_t>(turn) << 40, side[1]); }
    int stone(int cell) const { return side[0] >> cell & 1u ? 0 : (side[1] >> cell & 1u ? 1 : -1); }
    int promise(int move) const {
        Othello next = *this;
        next.play(move);
        return ((CORNERS >> move) & 1u ? 64 : 0) - 4 * bits(next.places());
    }
    int estimate() const {
        const std::uint64_t mine = side[turn], theirs = side[1 - turn];
        const int mobility = bits(places()) - bits(places_of(theirs, mine));
        return 8 * mobility + 40 * (bits(mine & CORNERS) - bits(theirs & CORNERS)) + bits(mine) - bits(theirs);
    }

private:
    static constexpr std::uint64_t LEFT = 0x041041041ull, RIGHT = LEFT << 5;  // columns
    static constexpr std::uint64_t CORNERS = 1ull | 1ull << 5 | 1ull << 30 | 1ull << 35;

    static std::uint64_t shifted(std::uint64_t x, int direction) {
        switch (direction) {
            case 0:
                return (x & ~RIGHT) << 1;
            case 1:
                return (x & ~LEFT) >> 1;
            case 2:
                return x << 6 & BOARD;
            case 3:
                return x >> 6;
            case 4:
                return (x & ~RIGHT) << 7 & BOARD;
            case 5:
                return (x & ~LEFT) << 5 & BOARD;
            case 6:
                return (x & ~RIGHT) >> 5;
            default:
                return (x & ~LEFT) >> 7;
        }
    }
    static std::uint64_t places_of(std::uint64_t mine, std::uint64_t theirs) {
        const std::uint64_t empty = BOARD & ~(mine | theirs);
        std::uint64_t found = 0;
        for (int direction = 0; direction < 8; ++direction) {
            std::uint64_t run = shifted(mine, direction) & theirs;
            for (int step = 0; step < 3; ++step) run |= shifted(run, direction) & theirs;  // at most four in a row
            found |= shifted(run, direction) & empty;
        }
        return found;
    }
    std::uint64_t flipped(int move) const {
        std::uint64_t found = 0;
        for (int direction = 0; direction < 8; ++direction) {
            std::uint64_t run = 0, at = shifted(1ull << move, direction);
            for (; (at & side[1 - turn]) != 0; at = shifted(at, direction)) run |= at;
            if ((at & side[turn]) != 0) found |= run;
        }
        return found;
    }
};

}  // namespace epicycle
