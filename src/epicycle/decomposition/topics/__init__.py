"""Topics of documents: latent Dirichlet allocation."""

from epicycle.decomposition.topics._latent_dirichlet_allocation import LatentDirichletAllocation

__all__ = ["LatentDirichletAllocation"]
