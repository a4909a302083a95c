"""The record that a report is made from: plain data, every key optional.

A section of the page is left out where its key is absent, keys that are not named here are ignored, and a value that is
missing or not a number is shown as a dash. NumPy's arrays and numbers, certificates and findings are taken as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

Number: TypeAlias = "float | int | None"
Numbers: TypeAlias = "Sequence[Number]"


class DataSummary(TypedDict, total=False):
    """The data set as a whole."""

    rows: int
    columns: int
    source: str
    target: str
    task: str  # such as "classification" or "regression"
    split: Mapping[str, int]  # rows by part: {"train": 112, "test": 38}


class Sketch(TypedDict, total=False):
    """The distribution of a column: k + 1 edges of k counts, or the most frequent levels with their counts."""

    edges: Numbers
    levels: Sequence[str]
    counts: Numbers
    other: Number  # rows of all other levels
    quantiles: Numbers  # least, quartiles, greatest


class ColumnProfile(TypedDict, total=False):
    """One column of the data; `association` is the share of the target that it explains alone."""

    name: str
    kind: str
    missing: float  # share of the rows, 0 to 1
    distinct: int
    treatment: str
    warnings: Sequence[str]
    sketch: Sketch
    association: Number


class Warned(TypedDict, total=False):
    """An issue found by a data check."""

    kind: str
    severity: str  # "high", "medium" or "low"
    text: str
    columns: Sequence[str]


class LeaderboardRow(TypedDict, total=False):
    """A candidate with its scores."""

    name: str
    params: Mapping[str, Any] | str
    score_mean: Number
    score_se: Number
    seconds: Number
    n_folds: int
    status: str  # "done", "stopped", "failed", ...
    rounds: int


class Baseline(TypedDict, total=False):
    """Score of a constant, which does not use the features."""

    name: str
    score_mean: Number
    score_se: Number


class Metric(TypedDict, total=False):
    """The metric of the scores."""

    name: str
    greater_is_better: bool
    label: str


class HeldOutScore(TypedDict, total=False):
    """The score on the test set, with its interval at `level`."""

    score: Number
    lower: Number
    upper: Number
    level: float
    method: str
    n: int
    baseline_score: Number


class CertificateRecord(TypedDict, total=False):
    """The fields of :class:`epicycle.Certificate`; `holds` follows from them where it is absent."""

    kind: str
    value: Number
    tolerance: Number
    meaning: str
    holds: bool


class FindingRecord(TypedDict, total=False):
    """``to_dict()`` of what a function of :mod:`epicycle.diagnose` returns, with its slot."""

    slot: str  # "bias_variance", "optimizer_or_objective", "ablation", "slices", "threshold"
    kind: str
    verdict: str
    table: Mapping[str, Sequence[Any]]
    next_steps: Sequence[str]
    notes: Sequence[str]
    examples: Mapping[str, Sequence[Any]]  # the worst rows, for slot "slices"


class CalibrationCurve(TypedDict, total=False):
    """Predicted probabilities against observed shares, by bin.

    `of` is "largest" where they are those of the most probable class, of three or more.
    """

    of: str
    predicted: Numbers
    observed: Numbers
    lower: Numbers
    upper: Numbers
    counts: Numbers


class RocCurve(TypedDict, total=False):
    """The receiver operating characteristic."""

    fpr: Numbers
    tpr: Numbers
    auc: Number


class PrecisionRecallCurve(TypedDict, total=False):
    """Precision against recall, and the area as a step function."""

    precision: Numbers
    recall: Numbers
    average_precision: Number
    prevalence: Number


class ConfusionCounts(TypedDict, total=False):
    """Rows by true class (first index) and predicted class."""

    labels: Sequence[str]
    counts: Sequence[Numbers]


class ResidualBands(TypedDict, total=False):
    """Quantiles of target minus prediction, by bins of the prediction: one list for each level."""

    predicted_edges: Numbers
    predicted: Numbers
    levels: Numbers
    quantiles: Sequence[Numbers]
    counts: Numbers


class ClassScore(TypedDict, total=False):
    """Precision, recall and F1 of a class, with the 95% intervals of the first two."""

    name: str
    rows: Number
    precision: Number
    recall: Number
    f1: Number
    precision_interval: Numbers
    recall_interval: Numbers


class GainCurve(TypedDict, total=False):
    """Share of the positives among the rows with the largest scores, and how many times that of all rows."""

    rows: Numbers
    found: Numbers
    lift: Numbers
    prevalence: Number


class Predictions(TypedDict, total=False):
    """Targets and predictions of some test rows."""

    actual: Numbers
    predicted: Numbers
    rows: int
    half_width: Number
    quantile: Number


class Importance(TypedDict, total=False):
    """Loss of score without a feature."""

    name: str
    mean: Number
    se: Number


class LearningCurve(TypedDict, total=False):
    """Scores by number of training rows; those of `metric` where it is not that of the record."""

    metric: Metric
    sizes: Numbers
    train: Numbers
    train_se: Numbers
    test: Numbers
    test_se: Numbers


class ThresholdCurve(TypedDict, total=False):
    """Precision, recall and F1 by threshold; `chosen` and `default` are marked."""

    thresholds: Numbers
    precision: Numbers
    recall: Numbers
    f1: Numbers
    chosen: Number
    default: Number


class SearchPoint(TypedDict, total=False):
    """A score of a candidate with its time; `search` holds them in the order of time."""

    seconds: Number
    name: str
    score: Number
    best: Number


class Curves(TypedDict, total=False):
    """Curves of a report; :mod:`epicycle.report.curves` makes most of them from predictions."""

    calibration: CalibrationCurve
    roc: RocCurve
    precision_recall: PrecisionRecallCurve
    confusion: ConfusionCounts
    residuals: ResidualBands
    class_scores: Sequence[ClassScore]
    gain: GainCurve
    predictions: Predictions
    importances: Sequence[Importance]
    learning_curve: LearningCurve
    threshold: ThresholdCurve
    search: Sequence[SearchPoint]


class ClusterRow(TypedDict, total=False):
    """One cluster; -1 holds the rows that belong to none."""

    cluster: int
    rows: int
    share: float
    silhouette: Number
    summary: str
    details: str


class ClusterCandidate(TypedDict, total=False):
    """A clustering that was tried: the product of stability and silhouette is its evidence."""

    name: str
    method: str
    k: int
    stability: Number
    silhouette: Number
    evidence: Number
    by_chance: Number  # mean evidence in tables without clusters
    by_chance_range: Numbers  # least and largest
    beyond_chance: Number


class ClusteringRecord(TypedDict, total=False):
    """A clustering, with the rows on two axes and the falling silhouettes of each cluster."""

    method: str
    k: int
    chosen: str  # name of a candidate
    rows: int
    verdict: str
    reasons: Sequence[str]
    p_value: Number
    stability: Mapping[str, Number]  # "adjusted_rand", "by_chance"
    silhouette: Mapping[str, Number]  # "score"
    agreement: Mapping[str, Any] | None  # "column", "adjusted_rand"
    clusters: Sequence[ClusterRow]
    candidates: Sequence[ClusterCandidate]
    skipped: Sequence[str]
    embedding: Mapping[str, Sequence[Any]]  # "x", "y", "cluster", "row", "explained"
    outlines: Sequence[Mapping[str, Any]]  # "cluster", "rows", "at", "values"
    certificate: CertificateRecord


class TargetRow(TypedDict, total=False):
    """One of several targets, with its score on the test rows."""

    name: str
    task: str
    model: str
    metric: str
    score: Number
    lower: Number
    upper: Number
    baseline_score: Number
    greater_is_better: bool
    page: str  # a report beside this one, "FOLDER/report.html"
    warnings: int


class TargetsRecord(TypedDict, total=False):
    """Several targets of the same rows."""

    runs: Sequence[TargetRow]
    joint: Mapping[str, Mapping[str, Any]]  # "label", "score", "lower", "upper", "reading"
    labels: str | None  # the column whose labels are the targets
    left_out: Sequence[str]


class EffectRecord(TypedDict, total=False):
    """The effect of a treatment: estimates side by side, and what could be wrong with them."""

    treatment: str
    outcome: str
    levels: Sequence[str]
    scale: str  # the outcome, in words
    effect: Number
    standard_error: Number
    interval: Numbers
    method: str
    verdict: str
    is_clear: bool
    estimates: Sequence[Mapping[str, Any]]  # "name", "words", "effect", "standard_error", "lower", "upper"
    identification: Mapping[str, Any]  # "kind", "covariates", "instrument", "words", "graph"
    overlap: Mapping[str, Any]  # "edges", "control", "treated", "outside", "region"
    balance: Sequence[Mapping[str, Any]]  # "name", "before", "after"
    sensitivity: Mapping[str, Any]
    refutations: Sequence[Mapping[str, Any]]  # "name", "passed", "verdict"
    instrument: Mapping[str, Any]
    contrasts: Sequence[Mapping[str, Any]]  # "level", "rows", "effect", "lower", "upper"
    doubts: Sequence[str]
    failed: Sequence[str]
    rows: int
    treated: int
    seed: int


class PlannedState(TypedDict, total=False):
    """One state of a plan; the bounds are those of its value."""

    state: str
    action: str
    value: Number
    lower: Number
    upper: Number
    terminal: bool


class PlanningRecord(TypedDict, total=False):
    """The plan of a decision process."""

    method: str
    states: int
    actions: int
    pairs: int
    terminal: int
    criterion: str
    discount: Number
    gain: Number  # of the average criterion
    policy: Sequence[PlannedState]
    cells: Sequence[Sequence[int]]  # row and column of each state of a grid
    unreachable: Sequence[str]
    history: Mapping[str, Numbers]  # "residual"
    certificate: CertificateRecord


class AnomalyRecord(TypedDict, total=False):
    """Rows of a table that are unlike the others."""

    method: str
    verdict: str
    rows: int
    flagged: int
    threshold: Number
    label: Mapping[str, Any]  # "column", "value", "rows"
    candidates: Sequence[Mapping[str, Any]]  # "name" and figures on held-out rows, or "agreement"
    failed: Sequence[str]
    histogram: Mapping[str, Numbers]  # "edges", "counts", "odd"
    blame: Sequence[Mapping[str, Any]]  # "column", "share"
    top: Sequence[Mapping[str, Any]]  # "row", "score", "flagged", "label", "reasons"
    seed: int


class RecommendedList(TypedDict, total=False):
    """The best items of a user."""

    user: Any
    items: Sequence[Any]
    names: Sequence[str]
    scores: Numbers


class SimilarItems(TypedDict, total=False):
    """The items next to an item."""

    item: Any
    name: str
    similar: Sequence[str]
    cosines: Numbers


class RecommendationRecord(TypedDict, total=False):
    """A recommender that was chosen for a table of ratings."""

    columns: Mapping[str, str | None]
    n: int
    verdict: str
    method: str
    candidates: Sequence[Mapping[str, Any]]  # "name", "rmse", "lower", "upper"
    rmse: Number
    interval: Numbers
    baseline: Number
    is_better: bool
    criteria: Mapping[str, Mapping[str, Number]]  # of "model" and "popular items": "ndcg", "map", "recall", "coverage"
    new_users: Number
    new_items: Number
    counts: Mapping[str, Any]
    lists: Sequence[RecommendedList]
    similar: Sequence[SimilarItems]
    failed: Sequence[str]
    objective: Numbers
    certificate: CertificateRecord


class TopicRow(TypedDict, total=False):
    """One topic, with its words, the most probable first."""

    words: Sequence[str]
    probabilities: Numbers
    distinctive: Sequence[str]
    share: Number  # of all words
    coherence: Number
    documents: int  # of which it is the largest topic
    examples: Sequence[Mapping[str, Any]]  # "row", "share", "text"


class TopicRecord(TypedDict, total=False):
    """The topics of a column of texts, the largest first."""

    verdict: str
    columns: Mapping[str, str | None]  # "text", "time"
    counts: Mapping[str, int]  # "documents", "left_out", "words", "terms"
    topics: Sequence[TopicRow]
    candidates: Sequence[Mapping[str, Number]]  # "topics", "perplexity", "coherence"
    perplexity: Number
    unigram: Number  # perplexity by the frequencies of words alone
    over: Mapping[str, Any] | None  # "column", "in_time", "labels", "documents", "shares" (by topic), "missing"
    objective: Numbers
    certificate: CertificateRecord


class AgentRun(TypedDict, total=False):
    """An agent that learnt with one seed, and the mean return of its policy."""

    seed: int
    steps: int
    episodes: int
    mean: Number
    low: Number
    high: Number
    truncated: int  # episodes of the evaluation that were cut off
    length: Number


class WatchedEpisode(TypedDict, total=False):
    """One episode of the best actions."""

    length: int
    end: str  # "ended", "cut off" or "stopped"
    rewards: Numbers
    path: Sequence[int] | None  # numbers of the states, where they have some
    states: Sequence[Numbers] | None  # components of the states
    image: str | None  # an animated GIF as data URI
    frames: int
    note: str | None


class AgentRecord(TypedDict, total=False):
    """An agent that learnt in an environment."""

    environment: str
    agent: str
    name: str
    steps: int
    interrupted: bool
    curve: Mapping[str, Numbers] | None  # "steps", "mean", "low", "high" over the seeds
    runs: Sequence[AgentRun]
    random: Mapping[str, Number]  # "mean", "low", "high" of random actions
    evaluated: int  # episodes
    confidence: Number
    episode: WatchedEpisode
    world: Mapping[str, Any] | None  # "policy": rows as of a plan, with "best" and "visits"; "cells"
    certificate: CertificateRecord


class MarginalRow(TypedDict, total=False):
    """A column of real and of drawn rows."""

    name: str
    kind: str  # "number", "date" or "category"
    distance: Number  # Kolmogorov-Smirnov, or total variation of a category
    noise: Number  # the same between held-out rows and those of the fit
    missing: Numbers  # shares of missing entries, real and drawn
    sketch: Mapping[str, Any]  # "edges" and "unit", or "levels"; shares "real" and "drawn"


class SynthesisRecord(TypedDict, total=False):
    """Synthetic rows against real ones."""

    verdict: str
    rows: int
    candidates: Sequence[Mapping[str, Any]]  # "name", "title", "area", the chosen one first
    marginals: Sequence[MarginalRow]
    pairs: Mapping[str, Any]  # "mean", "noise", and of the "worst" "names", "real", "drawn", "difference", "noise"
    points: Sequence[Sequence[Any]]  # real and drawn association and the names of a pair
    utility: Mapping[str, Any] | None  # "target", "metric", "rows", "constant"; scores of "real" and "drawn"
    no_utility: str
    privacy: Mapping[str, Any]  # "copies", "copied", "held_copied", "median", "held_median", "threshold", "nearer"
    quantiles: Mapping[str, Numbers]  # of the distances of "held" and "drawn" rows
    left_out: Mapping[str, str]
    split: Mapping[str, int]  # "train", "held out"


class Record(TypedDict, total=False):
    """The input of a report."""

    title: str
    created: str
    data: DataSummary
    columns: Sequence[ColumnProfile]
    warnings: Sequence[Warned]
    plan: Sequence[str] | Mapping[str, Any] | str
    leaderboard: Sequence[LeaderboardRow]
    best: str  # name of the winner; by default the first row of the leaderboard with the best score
    baseline: Baseline
    metric: Metric
    score_name: str
    test: HeldOutScore
    tests: Mapping[str, Mapping[str, Any]]  # HeldOutScore with "label" and "reading", by metric
    prediction_interval: Mapping[str, Any] | None  # "level", "half_width" or "quantile"; "coverage", "rows"
    restriction: Mapping[str, Any] | None  # "name", "score", "score_chosen", "cost", "cost_se"
    interrupted: bool
    correlations: Mapping[str, Any]  # "names", "values"
    worst_rows: Mapping[str, Sequence[Any]]  # columns of a table, such as "row of the file" and "loss"
    skipped: Mapping[str, str]  # reasons why parts were left out, by slot
    explanations: Mapping[str, Any]  # "partial_dependence", "surrogate", "contributions"
    groups: Mapping[str, Any] | None  # "column", "rates", "groups", "verdict"
    certificate: CertificateRecord
    findings: Sequence[FindingRecord]
    curves: Curves
    clustering: ClusteringRecord
    effect: EffectRecord
    planning: PlanningRecord
    agent: AgentRecord
    recommendations: RecommendationRecord
    anomalies: AnomalyRecord
    comparison: Mapping[str, Any]  # "runs" of "name" and "record", "verdict"
    targets: TargetsRecord
    topics: TopicRecord
    synthesis: SynthesisRecord
    environment: Mapping[str, Any]
    reproduce: str
