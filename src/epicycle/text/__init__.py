"""Documents as tables of terms, from memory, iterators and files; few dimensions of them; vectors of words."""

from epicycle.data._documents import Lines, read_lines
from epicycle.text._byte_pair_encoder import BytePairEncoder
from epicycle.text._count_vectorizer import CountVectorizer
from epicycle.text._hashing_vectorizer import HashingVectorizer
from epicycle.text._latent_semantic_indexing import Found, LatentSemanticIndexing
from epicycle.text._tfidf_transformer import TfidfTransformer
from epicycle.text._tfidf_vectorizer import TfidfVectorizer
from epicycle.text.words import GloVe, Word2Vec, WordVectors

__all__ = [
    "BytePairEncoder",
    "CountVectorizer",
    "Found",
    "GloVe",
    "HashingVectorizer",
    "LatentSemanticIndexing",
    "Lines",
    "TfidfTransformer",
    "TfidfVectorizer",
    "Word2Vec",
    "WordVectors",
    "read_lines",
]
