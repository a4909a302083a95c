// Alpha-beta with iterative deepening and a table of positions (Knuth and Moore 1975; Slate and Atkin 1977).
//
// Values are for the player who moves: WIN, 0 or -WIN at the end of a game, the game's estimate where the depth runs
// out. A value is proven when no estimate went into it; then it counts for any depth.
#pragma once

#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "search/board_games.hpp"

namespace epicycle {

struct SearchLimits {
    int depth;
    std::int64_t nodes;
    double seconds;
};

struct DepthRecord {
    int depth, value;
    std::int64_t nodes;
    double seconds;
};

template <class G, class Poll>
class AlphaBeta {
public:
    static constexpr int WIN = ESTIMATE_LIMIT, TO_THE_END = 255;

    AlphaBeta(std::size_t table_bits, const SearchLimits &limits, const Poll &poll)
        : table_(std::size_t{1} << table_bits), mask_((std::size_t{1} << table_bits) - 1), limits_(limits),
          poll_(poll) {}

    int value = 0, depth = 0;  // of the last search that was finished
    bool proven = false;
    std::int64_t nodes = 0;
    std::vector<int> line;
    std::vector<DepthRecord> trace;

    void run(const G &root) {
        const int deepest = std::min(limits_.depth, TO_THE_END - 1);
        for (int d = 1; d <= deepest && !proven; ++d) {
            bool complete = false;
            const int found = search(root, d, -WIN, WIN, complete);
            if (stopped_) break;
            value = found, depth = d, proven = complete;
            trace.push_back({d, value, nodes, elapsed()});
            line = principal_variation(root);
        }
        if (proven) finish_line(root);
    }

private:
    enum Bound : std::uint8_t { NONE, EXACT, AT_LEAST, AT_MOST };
    struct Entry {
        std::uint64_t key = 0;
        std::int16_t value = 0;
        std::uint8_t move = 0, depth = 0;
        Bound bound = NONE;
    };
    using Clock = std::chrono::steady_clock;

    std::vector<Entry> table_;
    std::size_t mask_;
    SearchLimits limits_;
    const Poll &poll_;
    Clock::time_point began_ = Clock::now();
    std::array<std::array<std::int32_t, G::ACTIONS>, 2> cutoffs_{};  // how often a move refuted, by player
    bool stopped_ = false;

    double elapsed() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

    // Two entries share a place: the deeper one, and the last one.
    Entry *find(std::uint64_t key) {
        const std::size_t at = slot(key);
        for (Entry *e : {&table_[at], &table_[at ^ 1]})
            if (e->bound != NONE && e->key == key) return e;
        return nullptr;
    }
    std::size_t slot(std::uint64_t key) const { return static_cast<std::size_t>(mixed(key, 0)) & mask_; }
    void store(std::uint64_t key, int found, int move, int depth, Bound bound) {
        const std::size_t at = slot(key) & ~std::size_t{1};
        Entry &deep = table_[at], &last = table_[at | 1];
        Entry &place = (deep.bound == NONE || deep.key == key || deep.depth <= depth) ? deep : last;
        if (&place == &deep && deep.bound != NONE && deep.key != key) last = deep;
        place = {key, static_cast<std::int16_t>(found), static_cast<std::uint8_t>(move),
                 static_cast<std::uint8_t>(depth), bound};
        if (&place == &deep && last.key == key) last.bound = NONE;
    }

    bool out_of_budget() {
        if (stopped_) return true;
        if (++nodes > limits_.nodes) return stopped_ = true;
        if ((nodes & 4095) == 0) {
            poll_();
            if (elapsed() > limits_.seconds) return stopped_ = true;
        }
        return false;
    }

    int search(const G &game, int left, int alpha, int beta, bool &complete) {
        if (out_of_budget()) return 0;
        if (game.over()) {
            complete = true;
            return WIN * (game.player() == 0 ? game.result() : -game.result());
        }
        if (left == 0) {
            complete = false;
            return game.estimate();
        }
        const std::uint64_t key = game.key();
        int first = -1;
        if (const Entry *known = find(key)) {
            first = known->move;
            if (known->depth >= left && (known->bound == EXACT || (known->bound == AT_LEAST && known->value >= beta) ||
                                         (known->bound == AT_MOST && known->value <= alpha))) {
                complete = known->depth == TO_THE_END;
                return known->value;
            }
        }
        std::uint8_t moves[G::ACTIONS];
        const int n = game.moves(moves);
        sort_moves(game, moves, n, first, left);
        int best = std::numeric_limits<int>::min(), best_move = moves[0], floor = alpha;
        bool all_complete = true, best_complete = false;
        for (int i = 0; i < n; ++i) {
            G next = game;
            next.play(moves[i]);
            bool child_complete = false;
            const int found = -search(next, left - 1, -beta, -floor, child_complete);
            if (stopped_) return 0;
            all_complete = all_complete && child_complete;
            if (found > best) best = found, best_move = moves[i], best_complete = child_complete;
            floor = std::max(floor, best);
            if (floor >= beta || best >= WIN) {
                cutoffs_[static_cast<std::size_t>(game.player())][moves[i]] += left;
                break;
            }
        }
        // A refutation is proven by the one move that refutes, a value by all moves; estimates never reach WIN.
        complete = best >= beta || best >= WIN ? best_complete : all_complete;
        const Bound bound = best >= WIN ? EXACT : (best >= beta ? AT_LEAST : (best <= alpha ? AT_MOST : EXACT));
        store(key, best, best_move, complete ? TO_THE_END : left, best <= -WIN ? EXACT : bound);
        return best;
    }

    // The move of the table, then by promise and by how often a move refuted before.
    void sort_moves(const G &game, std::uint8_t *moves, int n, int first, int left) const {
        std::int32_t score[G::ACTIONS];
        for (int i = 0; i < n; ++i) {
            const int move = moves[i];
            const std::int32_t history =
                cutoffs_[static_cast<std::size_t>(game.player())][static_cast<std::size_t>(move)];
            score[i] = move == first ? std::numeric_limits<std::int32_t>::max()
                                     : (left > 1 ? 4096 * game.promise(move) : 0) + std::min(history, 4095);
        }
        for (int i = 1; i < n; ++i)
            for (int j = i; j > 0 && score[j] > score[j - 1]; --j) {
                std::swap(score[j], score[j - 1]);
                std::swap(moves[j], moves[j - 1]);
            }
    }

    std::vector<int> principal_variation(G game) {
        std::vector<int> found;
        while (!game.over() && static_cast<int>(found.size()) < G::LONGEST) {
            const Entry *known = find(game.key());
            if (known == nullptr || known->bound != EXACT || !game.legal(known->move)) break;
            found.push_back(known->move);
            game.play(known->move);
        }
        return found;
    }

    // Searches on from where the table has forgotten the line, so that a proof comes with a whole game.
    void finish_line(G game) {
        line.clear();
        int expected = value;
        while (!game.over()) {
            bool complete = false;
            int reached = 0;
            for (int d = 1; d < TO_THE_END && !complete && !stopped_; ++d)
                reached = search(game, d, -WIN, WIN, complete);
            const Entry *known = find(game.key());
            if (stopped_ || known == nullptr || reached != expected) break;
            line.push_back(known->move);
            game.play(known->move);
            expected = -expected;
        }
    }
};

// Number of games of `depth` moves from here; games that end sooner count where they end.
template <class G, class Poll>
std::int64_t count_games(const G &game, int depth, bool ended_too, const Poll &poll) {
    if (depth == 0) return 1;
    if (game.over()) return ended_too ? 1 : 0;
    if (depth > 4) poll();
    std::uint8_t moves[G::ACTIONS];
    const int n = game.moves(moves);
    if (depth == 1) return n;
    std::int64_t total = 0;
    for (int i = 0; i < n; ++i) {
        G next = game;
        next.play(moves[i]);
        total += count_games(next, depth - 1, ended_too, poll);
    }
    return total;
}

}  // namespace epicycle
