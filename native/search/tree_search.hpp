// Monte-Carlo tree search: UCT with random playouts (Kocsis and Szepesvari 2006) and PUCT with given priors and values
// (Silver et al. 2017), with proven results backed up (Winands, Bjornsson and Saito 2008).
//
// A node keeps its sums for the player who moved into it, so that the player above picks the largest. Several leaves
// can wait for their evaluation at once; until it comes their paths carry virtual losses, so that the next descent goes
// elsewhere. All is a function of the seed and of the evaluations, in the order in which they come.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "search/board_games.hpp"

namespace epicycle {

constexpr int PLANES = 3;

// Stones of the player who moves, those of the other, and whether the player who moves is the first.
template <class G>
void encode(const G &game, float *out) {
    constexpr int cells = G::ROWS * G::COLUMNS;
    std::fill(out, out + PLANES * cells, 0.0f);
    const int me = game.player();
    for (int cell = 0; cell < cells; ++cell) {
        const int who = game.stone(cell);
        if (who >= 0) out[(who == me ? 0 : cells) + cell] = 1.0f;
        if (me == 0) out[2 * cells + cell] = 1.0f;
    }
}

struct RootStatistics {
    std::vector<std::int64_t> move, visits;
    std::vector<double> value, prior;  // mean result for the player at the root
    std::vector<std::int64_t> proven;  // result for the player at the root, or UNKNOWN
    std::int64_t root_proven, root_visits, nodes;
    double root_value;
};

struct TreeSearch {
    static constexpr int UNKNOWN = 2;
    virtual ~TreeSearch() = default;
    virtual void simulate(std::int64_t simulations, double c) = 0;
    virtual bool settled() const = 0;  // nothing that is done below the root can change the choice
    virtual int select(int count, double c, float *planes, std::uint8_t *legal) = 0;
    virtual void back_up(const float *priors, const float *values, int count, double playout_share) = 0;
    virtual void advance(int move) = 0;
    virtual void mix_root(const double *noise, int count, double share) = 0;
    virtual RootStatistics statistics() const = 0;
    virtual int actions() const = 0;
    virtual int plane_cells() const = 0;
    virtual int waiting() const = 0;
};

// Trees that grow on several threads keep off each other's cache lines, hence the alignment and the room for the path.
template <class G>
class alignas(128) GameTree final : public TreeSearch {
public:
    GameTree(const G &root, std::uint64_t seed, bool solver, std::size_t most_nodes)
        : root_(root), generator_{seed}, solver_(solver), most_(most_nodes) {
        path_.reserve(static_cast<std::size_t>(G::LONGEST) + 64);
        nodes_.push_back(Node{});
        if (root.over()) nodes_[0].proven = static_cast<std::int8_t>(for_mover_into(root, root.result()));
    }

    bool settled() const override { return nodes_[0].proven != UNKNOWN; }
    int actions() const override { return G::ACTIONS; }
    int plane_cells() const override { return G::ROWS * G::COLUMNS; }
    int waiting() const override { return static_cast<int>(leaves_.size()); }

    void simulate(std::int64_t simulations, double c) override {
        for (std::int64_t i = 0; i < simulations && !settled(); ++i) {
            G game = root_;
            path_.assign(1, 0);
            while (nodes_[path_.back()].count > 0) descend<false>(game, c);
            std::uint32_t leaf = path_.back();
            if (nodes_[leaf].visits > 0 && nodes_[leaf].proven == UNKNOWN && expand(game, leaf)) {
                descend<false>(game, c);
                leaf = path_.back();
            }
            const bool known = nodes_[leaf].proven != UNKNOWN;
            record(path_, known ? nodes_[leaf].proven : playout_for_mover_into(game));
            if (solver_ && known) prove(path_);
        }
    }

    // Descends until `count` leaves wait for an evaluation; results that are known are backed up at once. Fewer leaves
    // come back where a descent ends in one that waits already, or where nothing is left to find out.
    int select(int count, double c, float *planes, std::uint8_t *legal) override {
        constexpr int cells = G::ROWS * G::COLUMNS;
        int known_in_a_row = 0;
        while (waiting() < count && !settled() && known_in_a_row < count) {
            G game = root_;
            path_.assign(1, 0);
            while (nodes_[path_.back()].count > 0) descend<true>(game, c);
            Node &leaf = nodes_[path_.back()];
            if (leaf.proven != UNKNOWN) {
                record(path_, leaf.proven);
                if (solver_) prove(path_);
                ++known_in_a_row;
                continue;
            }
            if (leaf.pending > 0) break;
            known_in_a_row = 0;
            for (const std::uint32_t at : path_) ++nodes_[at].pending;
            const auto row = static_cast<std::size_t>(waiting());
            encode(game, planes + row * PLANES * cells);
            std::uint8_t moves[G::ACTIONS], *mask = legal + row * G::ACTIONS;
            std::fill(mask, mask + G::ACTIONS, std::uint8_t{0});
            const int n = game.moves(moves);
            for (int i = 0; i < n; ++i) mask[moves[i]] = 1;
            leaves_.push_back({path_, game});
        }
        return waiting();
    }

    // Priors of all actions (those of illegal moves are left out) and values for the player who moves at each leaf.
    void back_up(const float *priors, const float *values, int count, double playout_share) override {
        for (int row = 0; row < count; ++row) {
            Leaf &leaf = leaves_[static_cast<std::size_t>(row)];
            for (const std::uint32_t at : leaf.path) --nodes_[at].pending;
            const std::uint32_t at = leaf.path.back();
            const float *p = priors + static_cast<std::size_t>(row) * G::ACTIONS;
            bool ended = false;
            if (expand(leaf.game, at)) {
                double total = 0.0;
                const Node &node = nodes_[at];
                for (std::uint32_t i = 0; i < node.count; ++i) total += p[nodes_[node.first + i].move];
                for (std::uint32_t i = 0; i < node.count; ++i) {
                    Node &child = nodes_[node.first + i];
                    child.prior = total > 0.0 ? p[child.move] / total : 1.0 / node.count;
                    ended = ended || child.proven != UNKNOWN;
                }
            }
            double result = -static_cast<double>(values[row]);
            if (playout_share > 0.0) result += playout_share * (playout_for_mover_into(leaf.game) - result);
            record(leaf.path, result);
            if (solver_ && ended) prove_from_children(leaf.path);
        }
        leaves_.clear();
    }

    void mix_root(const double *noise, int count, double share) override {
        Node &root = nodes_[0];
        if (static_cast<int>(root.count) != count) return;
        for (std::uint32_t i = 0; i < root.count; ++i) {
            double &prior = nodes_[root.first + i].prior;
            prior += share * (noise[i] - prior);
        }
    }

    // The tree below a move becomes the tree; what was found for other moves is given back.
    void advance(int move) override {
        root_.play(move);
        std::uint32_t from = 0;
        for (std::uint32_t i = 0; i < nodes_[0].count; ++i)
            if (nodes_[nodes_[0].first + i].move == move) from = nodes_[0].first + i;
        std::vector<Node> kept;
        if (from == 0) {
            kept.push_back(Node{});
            if (root_.over()) kept[0].proven = static_cast<std::int8_t>(for_mover_into(root_, root_.result()));
        } else {
            kept.push_back(nodes_[from]);
            for (std::size_t i = 0; i < kept.size(); ++i) {
                if (kept[i].count == 0) continue;
                const auto first = static_cast<std::uint32_t>(kept.size());
                const Node parent = kept[i];
                kept.insert(kept.end(), nodes_.begin() + parent.first, nodes_.begin() + parent.first + parent.count);
                kept[i].first = first;
            }
        }
        nodes_.swap(kept);
        leaves_.clear();
    }

    RootStatistics statistics() const override {
        RootStatistics out;
        const Node &root = nodes_[0];
        for (std::uint32_t i = 0; i < root.count; ++i) {
            const Node &child = nodes_[root.first + i];
            out.move.push_back(child.move);
            out.visits.push_back(child.visits);
            out.value.push_back(child.visits > 0 ? child.sum / child.visits : 0.0);
            out.prior.push_back(child.prior);
            out.proven.push_back(child.proven);
        }
        out.root_proven = root.proven == UNKNOWN ? UNKNOWN : -root.proven;
        out.root_visits = root.visits, out.nodes = static_cast<std::int64_t>(nodes_.size());
        out.root_value = root.visits > 0 ? -root.sum / root.visits : 0.0;
        return out;
    }

private:
    struct Node {
        double sum = 0.0, prior = 0.0;
        std::int32_t visits = 0, pending = 0;  // finished, and on the way
        std::uint32_t first = 0, count = 0;    // children
        std::int8_t proven = UNKNOWN;
        std::uint8_t move = 0;
    };
    struct Leaf {
        std::vector<std::uint32_t> path;
        G game;
    };

    G root_;
    SplitMix generator_;
    bool solver_;
    std::size_t most_;
    std::vector<Node> nodes_;
    std::vector<Leaf> leaves_;
    std::vector<std::uint32_t> path_;

    // A result for player 0 as that of the player who moved last.
    static int for_mover_into(const G &game, int result) { return game.player() == 0 ? -result : result; }

    int playout_for_mover_into(G game) {
        const bool second = game.player() == 0;
        while (!game.over()) game.play(game.random_move(generator_));
        return second ? -game.result() : game.result();
    }

    template <bool PRIORS>
    void descend(G &game, double c) {
        const Node &node = nodes_[path_.back()];
        const Node *children = nodes_.data() + node.first;
        std::uint32_t best = 0;
        double highest = -std::numeric_limits<double>::infinity();
        const double above = PRIORS ? c * std::sqrt(static_cast<double>(std::max(node.visits + node.pending, 1)))
                                    : c * c * std::log(static_cast<double>(std::max(node.visits, 1)));
        const std::uint32_t offset =
            PRIORS ? 0 : static_cast<std::uint32_t>(below(generator_, static_cast<int>(node.count)));
        for (std::uint32_t k = 0; k < node.count; ++k) {
            std::uint32_t i = k + offset;  // ties are broken by where the loop begins
            if (i >= node.count) i -= node.count;
            const Node &child = children[i];
            double score;
            if (solver_ && child.proven == -1) {
                score = -1e9;  // a lost move, only where there is no other
            } else if (PRIORS) {
                const int n = child.visits + child.pending;
                const double q = n > 0 ? (child.sum - child.pending) / n : 0.0;
                score = q + child.prior * above / (1 + n);
            } else if (child.visits == 0) {
                best = i;
                break;
            } else {
                const double n = child.visits;
                score = child.sum / n + std::sqrt(above / n);
            }
            if (score > highest) highest = score, best = i;
        }
        game.play(children[best].move);
        path_.push_back(node.first + best);
    }

    // Children of a leaf, with their results where the game ends there; false where there is no room for them.
    bool expand(const G &game, std::uint32_t at) {
        if (nodes_[at].count > 0) return false;
        std::uint8_t moves[G::ACTIONS];
        const int n = game.moves(moves);
        if (nodes_.size() + static_cast<std::size_t>(n) > most_) return false;
        const auto first = static_cast<std::uint32_t>(nodes_.size());
        for (int i = 0; i < n; ++i) {
            Node child;
            child.move = moves[i];
            G next = game;
            next.play(moves[i]);
            if (next.over()) child.proven = static_cast<std::int8_t>(for_mover_into(next, next.result()));
            nodes_.push_back(child);
        }
        nodes_[at].first = first, nodes_[at].count = static_cast<std::uint32_t>(n);
        return true;
    }

    void record(const std::vector<std::uint32_t> &path, double result) {
        for (std::size_t i = path.size(); i-- > 0; result = -result) {
            Node &node = nodes_[path[i]];
            ++node.visits;
            node.sum += result;
        }
    }

    void prove(const std::vector<std::uint32_t> &path) {
        for (std::size_t i = path.size() - 1; i-- > 0;)
            if (!proves(path[i])) return;
    }
    void prove_from_children(const std::vector<std::uint32_t> &path) {
        if (proves(path.back())) prove(path);
    }
    // A node is won for the player who moves there by one won move, and known when all moves are.
    bool proves(std::uint32_t at) {
        Node &node = nodes_[at];
        if (node.proven != UNKNOWN) return true;
        int best = -1;
        bool all = true;
        for (std::uint32_t i = 0; i < node.count; ++i) {
            const int child = nodes_[node.first + i].proven;
            if (child == UNKNOWN)
                all = false;
            else
                best = std::max(best, child);
        }
        if (best < 1 && !all) return false;
        node.proven = static_cast<std::int8_t>(-best);
        return true;
    }
};

}  // namespace epicycle
