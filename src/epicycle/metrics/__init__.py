"""Criteria of clusterings, embeddings, unmixed signals and ranked lists, agreement of partitions, and distances."""

from epicycle.metrics._amari_index import amari_index
from epicycle.metrics._cluster_stability import ClusterStability, cluster_stability
from epicycle.metrics._contingency_matrix import contingency_matrix
from epicycle.metrics._dispersion import (
    calinski_harabasz_score,
    davies_bouldin_score,
    separation,
    sum_of_squared_errors,
)
from epicycle.metrics._distances import (
    chebyshev_distances,
    cosine_distances,
    euclidean_distances,
    hamming_distances,
    jaccard_distances,
    mahalanobis_distances,
    manhattan_distances,
    minkowski_distances,
    pairwise_distances,
)
from epicycle.metrics._geodesic_distances import geodesic_distances
from epicycle.metrics._gower_distances import gower_distances
from epicycle.metrics._information import (
    adjusted_mutual_info_score,
    completeness_score,
    expected_mutual_information,
    homogeneity_completeness_v_measure,
    homogeneity_score,
    mutual_info_score,
    normalized_mutual_info_score,
    v_measure_score,
)
from epicycle.metrics._neighborhoods import continuity, neighborhood_preservation, trustworthiness
from epicycle.metrics._pair_counts import (
    adjusted_rand_score,
    fowlkes_mallows_score,
    pair_confusion_matrix,
    rand_score,
)
from epicycle.metrics._purity_score import purity_score
from epicycle.metrics._ranking import (
    catalogue_coverage,
    mean_average_precision_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
)
from epicycle.metrics._silhouette import (
    SilhouetteEstimate,
    silhouette_estimate,
    silhouette_samples,
    silhouette_score,
)

__all__ = [
    "ClusterStability",
    "SilhouetteEstimate",
    "adjusted_mutual_info_score",
    "adjusted_rand_score",
    "amari_index",
    "calinski_harabasz_score",
    "catalogue_coverage",
    "chebyshev_distances",
    "cluster_stability",
    "completeness_score",
    "contingency_matrix",
    "continuity",
    "cosine_distances",
    "davies_bouldin_score",
    "euclidean_distances",
    "expected_mutual_information",
    "fowlkes_mallows_score",
    "geodesic_distances",
    "gower_distances",
    "hamming_distances",
    "homogeneity_completeness_v_measure",
    "homogeneity_score",
    "jaccard_distances",
    "mahalanobis_distances",
    "manhattan_distances",
    "mean_average_precision_at_k",
    "minkowski_distances",
    "mutual_info_score",
    "ndcg_at_k",
    "neighborhood_preservation",
    "normalized_mutual_info_score",
    "pair_confusion_matrix",
    "pairwise_distances",
    "precision_at_k",
    "purity_score",
    "rand_score",
    "recall_at_k",
    "separation",
    "silhouette_estimate",
    "silhouette_samples",
    "silhouette_score",
    "sum_of_squared_errors",
    "trustworthiness",
    "v_measure_score",
]
