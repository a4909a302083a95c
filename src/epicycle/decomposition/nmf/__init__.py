"""Non-negative matrix factorisation, in full rounds and in mini-batches."""

from epicycle.decomposition.nmf._mini_batch_nmf import MiniBatchNMF
from epicycle.decomposition.nmf._nmf import NMF
from epicycle.decomposition.nmf._non_negative_factorization import non_negative_factorization

__all__ = ["NMF", "MiniBatchNMF", "non_negative_factorization"]
