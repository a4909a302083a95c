// Bindings of the kernels of text.
#include "core/binding.hpp"
#include "text/count.hpp"
#include "text/documents.hpp"
#include "text/weigh.hpp"

namespace epicycle {
namespace {

using Pages = Vector<std::uint16_t>;
using Entries = Vector<std::uint32_t>;

struct TextRule {
    Analyzer analyzer;
    std::size_t least, most;
    bool lower;
    std::size_t shortest;
};

NgramRule completed(const TextRule &rule, const Terms *stop, const Characters *table, const Documents &documents) {
    if (!table)
        for (const Term &d : documents.terms)
            for (std::size_t i = 0; i < d.size; ++i)
                require(static_cast<unsigned char>(d.data[i]) < 128, "text: expected characters, or ASCII alone");
    return {rule.analyzer, rule.least, rule.most, rule.lower, rule.shortest, stop, table};
}

auto rows_out(SparseRows rows) {
    std::vector<std::int64_t> starts(rows.lengths.size() + 1, 0);
    for (std::size_t i = 0; i < rows.lengths.size(); ++i) starts[i + 1] = starts[i] + rows.lengths[i];
    return std::make_tuple(array_out(std::move(rows.values)), array_out(std::move(rows.columns)),
                           array_out(std::move(starts)));
}

}  // namespace

void bind_text(nb::module_ &m) {
    nb::class_<Characters>(m, "Characters")
        .def(
            "__init__",
            [](Characters *table, Pages page, Entries entries) {
                constexpr const char *expected = "text.Characters: expected page (4352,), and entries of whole pages, "
                                                 "lower case below 0x110000";
                require(page.shape(0) == N_PAGES && entries.shape(0) % PAGE == 0 && entries.shape(0) > 0, expected);
                require(all_below(page, entries.shape(0) / PAGE), expected);
                for (std::size_t i = 0; i < 0x110000; ++i) {
                    const std::size_t at = std::size_t(page.data()[i / PAGE]) * PAGE + i % PAGE;
                    require(((i + entries.data()[at]) & CODE_POINT_MASK) < 0x110000, expected);
                }
                new (table) Characters{{page.data(), page.data() + page.shape(0)},
                                       {entries.data(), entries.data() + entries.shape(0)}};
            },
            "page"_a.noconvert(), "entries"_a.noconvert());
    nb::class_<TextRule>(m, "Rule").def(
        "__init__",
        [](TextRule *rule, int analyzer, std::size_t least, std::size_t most, bool lower, std::size_t shortest) {
            require(analyzer >= 0 && analyzer <= 2 && least >= 1 && least <= most && shortest >= 1,
                    "text.Rule: expected a known analyzer, 1 <= least <= most, shortest >= 1");
            new (rule) TextRule{static_cast<Analyzer>(analyzer), least, most, lower, shortest};
        },
        nb::kw_only(), "analyzer"_a, "least"_a, "most"_a, "lower"_a, "shortest"_a);
    nb::class_<Terms>(m, "Terms")
        .def(
            "__init__",
            [](Terms *terms, const nb::list &names) {
                const Documents given(names);
                new (terms) Terms();
                std::vector<char> padded;
                for (const Term &term : given.terms) {  // bytes of Python end where they end
                    padded.assign(term.data, term.data + term.size);
                    padded.insert(padded.end(), PADDING, 0);
                    terms->insert({padded.data(), term.size});
                }
                terms->documents.resize(terms->size(), 0);
                terms->occurrences.resize(terms->size(), 0);
            },
            "names"_a);
    m.def("n_terms", [](const Terms &terms) { return terms.size(); }, "terms"_a);
    m.def(
        "count_new",
        [](Terms &terms, const nb::list &texts, const TextRule &rule, const Terms *stop, const Characters *table,
           bool keep, int threads) {
            const Documents documents(texts);
            const NgramRule whole = completed(rule, stop, table, documents);
            const int many = team(threads);
            SparseRows rows;
            {
                nb::gil_scoped_release nogil;
                rows = count_new(terms, documents.terms, whole, keep, many, Interrupts());
            }
            return rows_out(std::move(rows));
        },
        "terms"_a, "documents"_a, "rule"_a, "stop"_a.none(), "table"_a.none(), "keep"_a, "threads"_a);
    m.def(
        "count_known",
        [](const Terms &terms, const nb::list &texts, const TextRule &rule, const Terms *stop, const Characters *table,
           int threads) {
            const Documents documents(texts);
            const NgramRule whole = completed(rule, stop, table, documents);
            const int many = team(threads);
            SparseRows rows;
            {
                nb::gil_scoped_release nogil;
                rows = count_known(terms, documents.terms, whole, many, Interrupts());
            }
            return rows_out(std::move(rows));
        },
        "terms"_a, "documents"_a, "rule"_a, "stop"_a.none(), "table"_a.none(), "threads"_a);
    m.def(
        "count_hashed",
        [](const nb::list &texts, const TextRule &rule, const Terms *stop, const Characters *table,
           std::int64_t n_features, bool signs, int threads) {
            require(n_features >= 1 && n_features <= std::numeric_limits<std::int32_t>::max(),
                    "text.count_hashed: expected n_features in 1 .. 2^31 - 1");
            const Documents documents(texts);
            const NgramRule whole = completed(rule, stop, table, documents);
            const int many = team(threads);
            SparseRows rows;
            {
                nb::gil_scoped_release nogil;
                rows = count_hashed(documents.terms, whole, n_features, signs, many, Interrupts());
            }
            return rows_out(std::move(rows));
        },
        "documents"_a, "rule"_a, "stop"_a.none(), "table"_a.none(), "n_features"_a, "signs"_a, "threads"_a);
    m.def("order", [](const Terms &terms) { return array_out(terms.order()); }, "terms"_a);
    m.def(
        "counts",
        [](const Terms &terms) { return std::make_tuple(array_out(terms.documents), array_out(terms.occurrences)); },
        "terms"_a);
    m.def(
        "names",
        [](const Terms &terms, Vector<std::int64_t> ids) {
            require(all_below(ids, terms.size()), "text.names: expected numbers of terms");
            nb::list found;
            for (std::size_t i = 0; i < ids.shape(0); ++i) {
                const Term term = terms[static_cast<std::size_t>(ids.data()[i])];
                PyObject *name = PyUnicode_DecodeUTF8(term.data, static_cast<Py_ssize_t>(term.size), "surrogatepass");
                if (!name) throw nb::python_error();
                found.append(nb::steal(name));
            }
            return found;
        },
        "terms"_a, "ids"_a.noconvert());
    m.def(
        "renumbered",
        [](Vector<std::int32_t> values, Vector<std::int32_t> columns, Vector<std::int64_t> starts,
           Vector<std::int32_t> to, int threads) {
            constexpr const char *expected = "text.renumbered: expected values and columns (m,), starts (n + 1,) from "
                                             "0 to m that never fall, to (p,), columns below p";
            const std::size_t m = columns.shape(0), rows = starts.shape(0) - 1;
            require(starts.shape(0) >= 1 && values.shape(0) == m && all_below(columns, to.shape(0)), expected);
            require(starts.data()[0] == 0 && starts.data()[rows] == static_cast<std::int64_t>(m), expected);
            for (std::size_t i = 0; i < rows; ++i) require(starts.data()[i] <= starts.data()[i + 1], expected);
            const int many = team(threads);
            SparseRows out;
            {
                nb::gil_scoped_release nogil;
                out = renumbered(columns.data(), values.data(), starts.data(), rows, to.data(), many);
            }
            return rows_out(std::move(out));
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "starts"_a.noconvert(), "to"_a.noconvert(), "threads"_a);
    for_compressed<CsrMatrix>([&](auto type) {
        using X = typename decltype(type)::type;
        using T = Scalar<X>;
        m.def(
            "weigh",
            [](X table, InOut1<T> out, std::optional<Vector<T>> idf, bool sublinear, int norm, int threads) {
                constexpr const char *expected =
                    "text.weigh: expected a well-formed CSR matrix (n, p), out of the size "
                    "of its data, idf (p,) or None, norm 0, 1 or 2";
                const auto x = view(table, expected);
                require(out.shape(0) == table.data.shape(0) && norm >= 0 && norm <= 2, expected);
                require(!idf || idf->shape(0) == x.cols, expected);
                const int many = team(threads);
                const T *weight = idf ? idf->data() : nullptr;
                nb::gil_scoped_release nogil;
                if (out.data() != x.data) std::copy(x.data, x.data + out.shape(0), out.data());
                weigh_rows(out.data(), x.indices, x.indptr, x.rows, weight, sublinear, static_cast<RowNorm>(norm),
                           many);
            },
            "X"_a.noconvert(), "out"_a.noconvert(), "idf"_a.noconvert().none(), "sublinear"_a, "norm"_a, "threads"_a);
    });
}

}  // namespace epicycle
