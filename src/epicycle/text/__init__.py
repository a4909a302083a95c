"""Documents as tables: terms counted, weighed and hashed, from memory, iterators and files of any size."""

from epicycle.text._count_vectorizer import CountVectorizer
from epicycle.text._documents import Lines, read_lines
from epicycle.text._hashing_vectorizer import HashingVectorizer
from epicycle.text._tfidf_transformer import TfidfTransformer
from epicycle.text._tfidf_vectorizer import TfidfVectorizer

__all__ = ["CountVectorizer", "HashingVectorizer", "Lines", "TfidfTransformer", "TfidfVectorizer", "read_lines"]
