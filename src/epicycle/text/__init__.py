"""Documents as tables: terms counted, weighed and hashed, from memory, iterators and files; few dimensions of them."""

from epicycle.text._count_vectorizer import CountVectorizer
from epicycle.text._documents import Lines, read_lines
from epicycle.text._hashing_vectorizer import HashingVectorizer
from epicycle.text._latent_semantic_indexing import Found, LatentSemanticIndexing
from epicycle.text._tfidf_transformer import TfidfTransformer
from epicycle.text._tfidf_vectorizer import TfidfVectorizer

__all__ = [
    "CountVectorizer",
    "Found",
    "HashingVectorizer",
    "LatentSemanticIndexing",
    "Lines",
    "TfidfTransformer",
    "TfidfVectorizer",
    "read_lines",
]
