// Characters as Python sees them: word characters, white space and lower case of every code point. ASCII is known here;
// the rest comes in pages of 256 code points from the running Python, so that its version of Unicode is ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace epicycle {

enum CharacterFlag : std::uint32_t {
    WORD_CHARACTER = 1u << 24,
    WHITE_SPACE = 1u << 25,
    CASED = 1u << 26,           // for the sigma at the end of a word
    CASE_IGNORABLE = 1u << 27,  // likewise
};
constexpr std::uint32_t CODE_POINT_MASK = (1u << 24) - 1;
constexpr std::size_t PAGE = 256, N_PAGES = 0x110000 / PAGE;
constexpr std::uint32_t CAPITAL_I_WITH_DOT = 0x130, CAPITAL_SIGMA = 0x3A3, SIGMA = 0x3C3, FINAL_SIGMA = 0x3C2;

struct Characters {
    std::vector<std::uint16_t> page;     // of every 256 code points
    std::vector<std::uint32_t> entries;  // distance to the lower case, in 24 bits, and flags

    std::uint32_t of(std::uint32_t c) const { return entries[std::size_t(page[c >> 8]) * PAGE + (c & 0xFF)]; }
};

struct AsciiTable {
    bool word[128], space[128];
    char lower[128];
    AsciiTable() {
        for (int c = 0; c < 128; ++c) {
            const bool upper = c >= 'A' && c <= 'Z';
            word[c] = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
            space[c] = c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31);
            lower[c] = static_cast<char>(upper ? c + 32 : c);
        }
    }
};
inline const AsciiTable ASCII;

// The code point that begins at s, of valid UTF-8 (lone surrogates in three bytes); s moves on.
inline std::uint32_t next_code_point(const char *&s) {
    const auto at = [&s](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(s[i])); };
    const std::uint32_t b = at(0);
    if (b < 0x80) return ++s, b;
    if (b < 0xE0) {
        const std::uint32_t c = (b & 0x1F) << 6 | (at(1) & 0x3F);
        return s += 2, c;
    }
    if (b < 0xF0) {
        const std::uint32_t c = (b & 0x0F) << 12 | (at(1) & 0x3F) << 6 | (at(2) & 0x3F);
        return s += 3, c;
    }
    const std::uint32_t c = (b & 0x07) << 18 | (at(1) & 0x3F) << 12 | (at(2) & 0x3F) << 6 | (at(3) & 0x3F);
    return s += 4, c;
}

// The code point before s, which moves back to it.
inline std::uint32_t previous_code_point(const char *&s) {
    do --s;
    while ((static_cast<unsigned char>(*s) & 0xC0) == 0x80);
    const char *at = s;
    return next_code_point(at);
}

inline char *put_code_point(char *out, std::uint32_t c) {
    if (c < 0x80) {
        *out++ = static_cast<char>(c);
    } else if (c < 0x800) {
        *out++ = static_cast<char>(0xC0 | c >> 6);
        *out++ = static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *out++ = static_cast<char>(0xE0 | c >> 12);
        *out++ = static_cast<char>(0x80 | (c >> 6 & 0x3F));
        *out++ = static_cast<char>(0x80 | (c & 0x3F));
    } else {
        *out++ = static_cast<char>(0xF0 | c >> 18);
        *out++ = static_cast<char>(0x80 | (c >> 12 & 0x3F));
        *out++ = static_cast<char>(0x80 | (c >> 6 & 0x3F));
        *out++ = static_cast<char>(0x80 | (c & 0x3F));
    }
    return out;
}

// Whether the capital sigma in [at, after) ends a word: a cased letter before it and none behind it, case-ignorable
// characters not counted.
inline bool ends_word(const Characters &table, const char *begin, const char *at, const char *after, const char *end) {
    bool cased = false;
    while (at > begin) {
        const std::uint32_t entry = table.of(previous_code_point(at));
        if (entry & CASE_IGNORABLE) continue;
        cased = entry & CASED;
        break;
    }
    if (!cased) return false;
    while (after < end) {
        const std::uint32_t entry = table.of(next_code_point(after));
        if (!(entry & CASE_IGNORABLE)) return !(entry & CASED);
    }
    return true;
}

// Calls put(c, entry) for every character of the document, in lower case if asked for; entry has its flags.
template <class Put>
void for_characters(const char *begin, const char *end, bool lower, const Characters *table, Put put) {
    const char *s = begin;
    while (s < end) {
        const char *at = s;
        std::uint32_t c = next_code_point(s);
        if (c < 0x80) {
            const std::uint32_t flags = (ASCII.word[c] ? WORD_CHARACTER : 0u) | (ASCII.space[c] ? WHITE_SPACE : 0u);
            put(lower ? static_cast<std::uint32_t>(ASCII.lower[c]) : c, flags);
            continue;
        }
        if (lower && c == CAPITAL_I_WITH_DOT) {  // the only letter of which two become
            put('i', WORD_CHARACTER);
            put(0x307, table->of(0x307));
            continue;
        }
        if (lower && c == CAPITAL_SIGMA) {
            c = ends_word(*table, begin, at, s, end) ? FINAL_SIGMA : SIGMA;
        } else if (lower) {
            c = (c + table->of(c)) & CODE_POINT_MASK;
        }
        put(c, table->of(c));
    }
}

}  // namespace epicycle
