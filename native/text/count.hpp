// Counts of terms in documents, by pieces of documents that threads take. Terms are numbered in the order in which they
// are first seen, whatever the number of threads: each piece numbers its own, and pieces are merged in their order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/ngrams.hpp"
#include "text/terms.hpp"

namespace epicycle {

constexpr std::size_t PIECE_BYTES = 1 << 19, PIECE_DOCUMENTS = 512;

// Rows of a sparse matrix: the columns and values of all rows one after the other, and the length of each row.
struct SparseRows {
    std::vector<std::int32_t> columns, values;
    std::vector<std::int64_t> lengths;
};

// Where pieces begin, and the end of the last: it depends on the documents alone.
inline std::vector<std::size_t> pieces_of(const std::vector<Term> &documents) {
    std::vector<std::size_t> starts{0};
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        if (bytes > PIECE_BYTES || i - starts.back() >= PIECE_DOCUMENTS) {
            starts.push_back(i);
            bytes = 0;
        }
        bytes += documents[i].size;
    }
    starts.push_back(documents.size());
    return starts;
}

// Counts the entries of a row by number.
class RowCounter {
public:
    void begin(const SparseRows &rows) {
        ++row_;
        from_ = rows.columns.size();
    }
    void add(SparseRows &rows, std::uint32_t id) {
        if (id >= seen_.size()) {
            seen_.resize(std::max<std::size_t>(id + 1, 2 * seen_.size()), 0);
            place_.resize(seen_.size());
        }
        if (seen_[id] != row_) {
            seen_[id] = row_;
            place_[id] = static_cast<std::uint32_t>(rows.columns.size() - from_);
            rows.columns.push_back(static_cast<std::int32_t>(id));
            rows.values.push_back(1);
        } else {
            ++rows.values[from_ + place_[id]];
        }
    }
    void finish(SparseRows &rows) const {
        rows.lengths.push_back(static_cast<std::int64_t>(rows.columns.size() - from_));
    }

private:
    std::vector<std::uint32_t> seen_, place_;
    std::uint32_t row_ = 0;
    std::size_t from_ = 0;
};

// The entries of one row in the order of their columns.
inline void sort_row(std::int32_t *columns, std::int32_t *values, std::size_t n, std::vector<std::uint64_t> &pairs) {
    pairs.resize(n);
    for (std::size_t i = 0; i < n; ++i)
        pairs[i] = std::uint64_t(std::uint32_t(columns[i])) << 32 | std::uint32_t(values[i]);
    std::sort(pairs.begin(), pairs.end());
    for (std::size_t i = 0; i < n; ++i) {
        columns[i] = static_cast<std::int32_t>(pairs[i] >> 32);
        values[i] = static_cast<std::int32_t>(pairs[i] & 0xFFFFFFFFu);
    }
}

// Joins the rows of pieces, in their order.
inline SparseRows joined(std::vector<SparseRows> &parts) {
    if (parts.size() == 1) return std::move(parts[0]);
    SparseRows all;
    std::size_t entries = 0, rows = 0;
    for (const auto &part : parts) entries += part.columns.size(), rows += part.lengths.size();
    all.columns.reserve(entries);
    all.values.reserve(entries);
    all.lengths.reserve(rows);
    for (auto &part : parts) {
        all.columns.insert(all.columns.end(), part.columns.begin(), part.columns.end());
        all.values.insert(all.values.end(), part.values.begin(), part.values.end());
        all.lengths.insert(all.lengths.end(), part.lengths.begin(), part.lengths.end());
        part = SparseRows();
    }
    return all;
}

// Work on pieces, some for each thread at a time, with a look for Ctrl-C in between; merge(p) follows in order.
template <class Interrupt, class Work, class Merge>
void by_pieces(std::size_t n_pieces, int threads, const Interrupt &interrupt, Work work, Merge merge) {
    const std::size_t wave = 4 * static_cast<std::size_t>(threads);
    for (std::size_t from = 0; from < n_pieces; from += wave) {
        const std::size_t to = std::min(from + wave, n_pieces);
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
        for (std::size_t p = from; p < to; ++p) work(p);
        for (std::size_t p = from; p < to; ++p) merge(p);
        interrupt();
    }
}

// Counts with new terms added to `terms`, their documents and occurrences too. Without `keep` no rows are returned.
template <class Interrupt>
SparseRows count_new(Terms &terms, const std::vector<Term> &documents, const NgramRule &rule, bool keep, int threads,
                     const Interrupt &interrupt) {
    const auto starts = pieces_of(documents);
    std::vector<SparseRows> parts(starts.size() - 1);
    std::vector<Terms> own(parts.size());
    const auto work = [&](std::size_t p) {
        Ngrams ngrams(rule);
        RowCounter counter;
        for (std::size_t i = starts[p]; i < starts[p + 1]; ++i) {
            counter.begin(parts[p]);
            ngrams(documents[i], [&](Term term) { counter.add(parts[p], own[p].insert(term)); });
            counter.finish(parts[p]);
        }
    };
    const auto merge = [&](std::size_t p) {
        const std::size_t m = own[p].size();
        std::vector<std::int32_t> to(m);
        for (std::size_t id = 0; id < m; ++id) to[id] = static_cast<std::int32_t>(terms.insert(own[p][id]));
        terms.documents.resize(terms.size(), 0);
        terms.occurrences.resize(terms.size(), 0);
        for (std::size_t k = 0; k < parts[p].columns.size(); ++k) {
            const std::int32_t column = to[parts[p].columns[k]];
            parts[p].columns[k] = column;
            terms.documents[column] += 1;
            terms.occurrences[column] += parts[p].values[k];
        }
        own[p] = Terms();
        if (!keep) parts[p] = SparseRows();
    };
    by_pieces(parts.size(), threads, interrupt, work, merge);
    return joined(parts);
}

// Counts of the terms that are known; rows are sorted.
template <class Interrupt>
SparseRows count_known(const Terms &terms, const std::vector<Term> &documents, const NgramRule &rule, int threads,
                       const Interrupt &interrupt) {
    const auto starts = pieces_of(documents);
    std::vector<SparseRows> parts(starts.size() - 1);
    const auto work = [&](std::size_t p) {
        Ngrams ngrams(rule);
        RowCounter counter;
        std::vector<std::uint64_t> pairs;
        SparseRows &rows = parts[p];
        for (std::size_t i = starts[p]; i < starts[p + 1]; ++i) {
            const std::size_t from = rows.columns.size();
            counter.begin(rows);
            ngrams(documents[i], [&](Term term) {
                const std::uint32_t id = terms.find(term);
                if (id != Terms::NONE) counter.add(rows, id);
            });
            counter.finish(rows);
            sort_row(rows.columns.data() + from, rows.values.data() + from, rows.columns.size() - from, pairs);
        }
    };
    by_pieces(parts.size(), threads, interrupt, work, [](std::size_t) {});
    return joined(parts);
}

// MurmurHash3 of 32 bits, with seed 0.
inline std::int32_t murmur(Term term) {
    const auto turned = [](std::uint32_t x, int r) { return x << r | x >> (32 - r); };
    constexpr std::uint32_t c1 = 0xCC9E2D51u, c2 = 0x1B873593u;
    std::uint32_t h = 0;
    const std::size_t blocks = term.size / 4;
    for (std::size_t i = 0; i < blocks; ++i) {
        std::uint32_t k = 0;
        for (int b = 3; b >= 0; --b) k = k << 8 | static_cast<unsigned char>(term.data[4 * i + b]);
        h = turned(h ^ turned(k * c1, 15) * c2, 13) * 5 + 0xE6546B64u;
    }
    std::uint32_t rest = 0;
    for (std::size_t i = term.size; i-- > 4 * blocks;) rest = rest << 8 | static_cast<unsigned char>(term.data[i]);
    if (term.size % 4) h ^= turned(rest * c1, 15) * c2;
    h ^= static_cast<std::uint32_t>(term.size);
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    return static_cast<std::int32_t>(h ^ h >> 16);
}

// Sums of signs in the columns that hashes give; rows are sorted.
template <class Interrupt>
SparseRows count_hashed(const std::vector<Term> &documents, const NgramRule &rule, std::int64_t n_columns, bool signs,
                        int threads, const Interrupt &interrupt) {
    const auto starts = pieces_of(documents);
    std::vector<SparseRows> parts(starts.size() - 1);
    const auto work = [&](std::size_t p) {
        Ngrams ngrams(rule);
        Terms own;  // each term is hashed once in a piece
        RowCounter counter;
        std::vector<std::int32_t> hashes;
        std::vector<std::pair<std::int32_t, std::int32_t>> entries;
        for (std::size_t i = starts[p]; i < starts[p + 1]; ++i) {
            SparseRows row;
            counter.begin(row);
            ngrams(documents[i], [&](Term term) {
                const std::uint32_t id = own.insert(term);
                if (id == hashes.size()) hashes.push_back(murmur(term));
                counter.add(row, id);
            });
            entries.clear();
            for (std::size_t k = 0; k < row.columns.size(); ++k) {
                const std::int64_t h = hashes[row.columns[k]];
                const std::int32_t sign = signs && h < 0 ? -1 : 1;
                entries.emplace_back(static_cast<std::int32_t>((h < 0 ? -h : h) % n_columns), sign * row.values[k]);
            }
            std::sort(entries.begin(), entries.end());
            SparseRows &rows = parts[p];
            const std::size_t from = rows.columns.size();
            for (const auto &[column, value] : entries) {
                if (rows.columns.size() > from && rows.columns.back() == column) {
                    rows.values.back() += value;
                } else {
                    rows.columns.push_back(column);
                    rows.values.push_back(value);
                }
            }
            rows.lengths.push_back(static_cast<std::int64_t>(rows.columns.size() - from));
        }
    };
    by_pieces(parts.size(), threads, interrupt, work, [](std::size_t) {});
    return joined(parts);
}

// Columns get new numbers; those with a negative one are left out. Rows are sorted.
inline SparseRows renumbered(const std::int32_t *columns, const std::int32_t *values, const std::int64_t *starts,
                             std::size_t rows, const std::int32_t *to, int threads) {
    SparseRows out;
    out.lengths.resize(rows);
    const auto n = static_cast<std::int64_t>(rows);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t kept = 0;
        for (std::int64_t k = starts[i]; k < starts[i + 1]; ++k) kept += to[columns[k]] >= 0;
        out.lengths[i] = kept;
    }
    std::vector<std::int64_t> at(rows + 1, 0);
    for (std::size_t i = 0; i < rows; ++i) at[i + 1] = at[i] + out.lengths[i];
    out.columns.resize(at[rows]);
    out.values.resize(at[rows]);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        std::vector<std::uint64_t> pairs;
#pragma omp for schedule(dynamic, 64)
        for (std::int64_t i = 0; i < n; ++i) {
            std::int64_t place = at[i];
            for (std::int64_t k = starts[i]; k < starts[i + 1]; ++k) {
                if (to[columns[k]] < 0) continue;
                out.columns[place] = to[columns[k]];
                out.values[place++] = values[k];
            }
            sort_row(out.columns.data() + at[i], out.values.data() + at[i], place - at[i], pairs);
        }
    }
    return out;
}

}  // namespace epicycle
