// The terms of a document: n-grams of words, of characters, or of the characters of each word.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/characters.hpp"
#include "text/terms.hpp"

namespace epicycle {

enum class Analyzer { word, char_, char_wb };

struct NgramRule {
    Analyzer analyzer;
    std::size_t least, most;  // n of the n-grams
    bool lower;               // whether letters become lower-case ones
    std::size_t shortest;     // characters of a word
    const Terms *stop;        // words that are left out, or none
    const Characters *table;  // none where all documents are ASCII
};

// One for each thread: its buffers are used again for the next document.
class Ngrams {
public:
    explicit Ngrams(const NgramRule &rule) : rule_(rule) {}

    // Calls put(term) for every n-gram of the document.
    template <class Put>
    void operator()(Term document, Put put) {
        begin_.clear();
        end_.clear();
        text_.resize(2 * document.size + 2 * PADDING);  // a letter grows to at most three bytes of two
        if (rule_.analyzer == Analyzer::word) {
            split_words(document);
            put_words(put);
            return;
        }
        split_characters(document);
        if (rule_.analyzer == Analyzer::char_)
            put_characters(put);
        else
            put_in_words(put);
    }

private:
    NgramRule rule_;
    std::vector<char> text_;
    std::vector<std::size_t> begin_, end_;  // words; or begin_ alone: characters, and the end of the last
    std::vector<char> space_;               // of each character

    Term slice(std::size_t from, std::size_t to) const { return {text_.data() + from, to - from}; }

    // Words side by side, one space between them, so that an n-gram is a slice.
    void split_words(Term document) {
        char *const first = text_.data(), *out = first, *word = first;
        std::size_t length = 0;
        const auto finish = [&] {
            const Term found{word, static_cast<std::size_t>(out - word)};
            if (length >= rule_.shortest && !(rule_.stop && rule_.stop->find(found) != Terms::NONE)) {
                begin_.push_back(word - first);
                end_.push_back(out - first);
                *out++ = ' ';
                word = out;
            } else {
                out = word;
            }
            length = 0;
        };
        if (!rule_.table) {
            const bool lower = rule_.lower;
            for (std::size_t i = 0; i < document.size; ++i) {
                const auto c = static_cast<unsigned char>(document.data[i]);
                if (ASCII.word[c & 127]) {
                    *out++ = lower ? ASCII.lower[c & 127] : static_cast<char>(c);
                    ++length;
                } else if (length > 0) {
                    finish();
                }
            }
        } else {
            for_characters(document.data, document.data + document.size, rule_.lower, rule_.table,
                           [&](std::uint32_t c, std::uint32_t entry) {
                               if (entry & WORD_CHARACTER) {
                                   out = put_code_point(out, c);
                                   ++length;
                               } else if (length > 0) {
                                   finish();
                               }
                           });
        }
        if (length > 0) finish();
    }

    template <class Put>
    void put_words(Put put) const {
        const std::size_t words = begin_.size();
        for (std::size_t n = rule_.least; n <= std::min(rule_.most, words); ++n)
            for (std::size_t i = 0; i + n <= words; ++i) put(slice(begin_[i], end_[i + n - 1]));
    }

    // Two and more characters of white space become one space; one alone stays as it is.
    void split_characters(Term document) {
        char *out = text_.data();
        space_.clear();
        std::uint32_t spaces = 0;
        for_characters(document.data, document.data + document.size, rule_.lower, rule_.table,
                       [&](std::uint32_t c, std::uint32_t entry) {
                           const bool white = entry & WHITE_SPACE;
                           if (white && ++spaces > 1) {
                               if (spaces == 2) {
                                   out = text_.data() + begin_.back();
                                   *out++ = ' ';
                               }
                               return;
                           }
                           if (!white) spaces = 0;
                           begin_.push_back(out - text_.data());
                           space_.push_back(white);
                           out = put_code_point(out, c);
                       });
        begin_.push_back(out - text_.data());
    }

    template <class Put>
    void put_characters(Put put) const {
        const std::size_t length = begin_.size() - 1;
        for (std::size_t n = rule_.least; n <= std::min(rule_.most, length); ++n)
            for (std::size_t i = 0; i + n <= length; ++i) put(slice(begin_[i], begin_[i + n]));
    }

    // Each word with a space before and behind it; a word shorter than n counts once.
    template <class Put>
    void put_in_words(Put put) {
        const std::size_t length = begin_.size() - 1;
        std::vector<char> padded;
        std::vector<std::size_t> at;
        for (std::size_t i = 0; i < length;) {
            if (space_[i]) {
                ++i;
                continue;
            }
            std::size_t j = i;
            padded.assign(1, ' ');
            at.assign(1, 0);
            for (; j < length && !space_[j]; ++j) at.push_back(1 + begin_[j] - begin_[i]);
            padded.insert(padded.end(), text_.data() + begin_[i], text_.data() + begin_[j]);
            at.push_back(padded.size());
            padded.push_back(' ');
            at.push_back(padded.size());
            padded.insert(padded.end(), PADDING, 0);
            const std::size_t m = at.size() - 1;
            for (std::size_t n = rule_.least; n <= rule_.most; ++n) {
                const std::size_t k = std::min(n, m);
                for (std::size_t a = 0; a + k <= m; ++a) put(Term{padded.data() + at[a], at[a + k] - at[a]});
                if (n >= m) break;
            }
            i = j;
        }
    }
};

}  // namespace epicycle
