"""The order of the gallery: from using a fit to writing one."""

ORDER = [
    "plot_logistic_solvers.py",
    "plot_certificate_bound.py",
    "plot_one_sum_many_sources.py",
    "plot_ridge_coefficients.py",
    "plot_which_columns_matter.py",
    "plot_outliers_and_lines.py",
    "plot_counts_are_not_normal.py",
    "plot_bands_without_assumptions.py",
    "plot_lines_from_few_rows.py",
    "plot_forecast_with_kernels.py",
    "plot_margin_and_kernel.py",
    "plot_probabilities_that_mean_it.py",
    "plot_threshold_by_costs.py",
    "plot_best_of_many.py",
    "plot_clusters_of_any_shape.py",
    "plot_string_kernels.py",
    "plot_search_by_meaning.py",
    "plot_text_from_a_manual.py",
    "plot_topics_by_parts.py",
    "plot_topics_of_documents.py",
    "plot_odd_and_even.py",
    "plot_dates.py",
    "plot_recommendations.py",
    "plot_swiss_roll.py",
    "plot_unmixing_sounds.py",
    "plot_unusual_digits.py",
    "plot_simpsons_paradox.py",
    "plot_staggered_adoption.py",
    "plot_states_behind_a_series.py",
    "plot_tracking_a_body.py",
    "plot_policies_on_a_grid.py",
    "plot_pole_swing_up.py",
    "plot_cliff_walk.py",
    "plot_learning_rate_ladder.py",
    "plot_shapes_in_images.py",
    "plot_double_descent.py",
    "plot_networks_as_processes.py",
    "plot_gradient_check.py",
]


def key(filename: str) -> tuple[int, str]:
    """Listed examples first, in the order of the list; then the others by name."""
    return (ORDER.index(filename) if filename in ORDER else len(ORDER), filename)
