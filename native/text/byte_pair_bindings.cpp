// Bindings of byte-pair encoding.
#include "core/binding.hpp"
#include "text/byte_pairs.hpp"
#include "text/documents.hpp"

namespace epicycle {
namespace {

std::size_t total_size(const Documents &pieces) {
    std::size_t total = 0;
    for (const Term &piece : pieces.terms) total += piece.size;
    require(total < NOTHING, "text.byte_pairs: expected pieces of less than 4 GiB in total");
    return total;
}

}  // namespace

void bind_byte_pairs(nb::module_ &m) {
    nb::class_<PairEncoder>(m, "PairEncoder")
        .def(
            "__init__",
            [](PairEncoder *encoder, RowMajor<std::int32_t> merges) {
                constexpr const char *expected =
                    "text.PairEncoder: expected merges (n, 2) of symbols that exist before them";
                require(merges.shape(1) == 2, expected);
                for (std::size_t i = 0; i < merges.shape(0); ++i)
                    for (std::size_t side = 0; side < 2; ++side) {
                        const std::int64_t part = merges.data()[2 * i + side];
                        require(part >= 0 && part < static_cast<std::int64_t>(N_BYTES + i), expected);
                    }
                new (encoder) PairEncoder(merges.data(), merges.shape(0));
            },
            "merges"_a.noconvert());
    m.def(
        "learn_pairs",
        [](const nb::list &pieces, Vector<std::int64_t> counts, std::int64_t n_merges, std::int64_t least) {
            const Documents given(pieces);
            require(counts.shape(0) == given.terms.size() && n_merges >= 0 && least >= 1,
                    "text.learn_pairs: expected pieces (n,), counts (n,), n_merges >= 0, least >= 1");
            for (std::size_t i = 0; i < counts.shape(0); ++i)
                require(counts.data()[i] >= 1, "text.learn_pairs: expected counts >= 1");
            std::vector<unsigned char> bytes;
            bytes.reserve(total_size(given));
            std::vector<std::int64_t> start{0}, tokens;
            for (const Term &piece : given.terms) {
                bytes.insert(bytes.end(), piece.data, piece.data + piece.size);
                start.push_back(static_cast<std::int64_t>(bytes.size()));
            }
            std::vector<std::int32_t> merges;
            std::vector<std::int64_t> uses;
            {
                nb::gil_scoped_release nogil;
                const Interrupts interrupts;
                PairLearner learner(bytes.data(), start.data(), counts.data(), given.terms.size());
                tokens.push_back(learner.tokens);
                for (std::int64_t i = 0; i < n_merges; ++i) {
                    const auto [a, b, count] = learner.best();
                    if (count < least) break;
                    learner.merge(a, b, static_cast<std::uint32_t>(N_BYTES + i));
                    merges.push_back(static_cast<std::int32_t>(a));
                    merges.push_back(static_cast<std::int32_t>(b));
                    uses.push_back(count);
                    tokens.push_back(learner.tokens);
                    interrupts();
                }
            }
            const std::size_t found = uses.size();
            return std::make_tuple(array_out(std::move(merges), found, 2), array_out(std::move(uses)),
                                   array_out(std::move(tokens)));
        },
        "pieces"_a, "counts"_a.noconvert(), "n_merges"_a, "least"_a);
    m.def(
        "encode_pairs",
        [](const PairEncoder &encoder, const nb::list &pieces) {
            const Documents given(pieces);
            total_size(given);
            std::vector<std::int32_t> ids;
            std::vector<std::int64_t> start{0};
            {
                nb::gil_scoped_release nogil;
                const Interrupts interrupts;
                std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> known;  // piece -> its ids
                for (const Term &piece : given.terms) {
                    const std::string_view text(piece.data, piece.size);
                    const auto [found, is_new] = known.try_emplace(text, ids.size(), 0);
                    if (is_new) {
                        encoder.encode(text, ids);
                        found->second.second = ids.size();
                        interrupts();
                    } else {
                        const auto [from, to] = found->second;
                        for (std::size_t i = from; i < to; ++i) ids.push_back(ids[i]);
                    }
                    start.push_back(static_cast<std::int64_t>(ids.size()));
                }
            }
            return std::make_tuple(array_out(std::move(ids)), array_out(std::move(start)));
        },
        "encoder"_a, "pieces"_a);
}

}  // namespace epicycle
