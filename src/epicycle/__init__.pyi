"""Every public name, once: type checkers read this file, and `__init__.py` finds here where a name is loaded from."""

from . import (
    anomaly as anomaly,
    automl as automl,
    bayes as bayes,
    callbacks as callbacks,
    causal as causal,
    cluster as cluster,
    control as control,
    data as data,
    decomposition as decomposition,
    diagnose as diagnose,
    discriminant as discriminant,
    em as em,
    engine as engine,
    ensemble as ensemble,
    exceptions as exceptions,
    generative as generative,
    gp as gp,
    hmm as hmm,
    io as io,
    kernel as kernel,
    linear as linear,
    manifold as manifold,
    metrics as metrics,
    mixture as mixture,
    naive_bayes as naive_bayes,
    neighbors as neighbors,
    nets as nets,
    online as online,
    optim as optim,
    plot as plot,
    recommend as recommend,
    report as report,
    rl as rl,
    search as search,
    select as select,
    svm as svm,
    text as text,
    theory as theory,
    tree as tree,
)
from .anomaly import (
    GaussianAnomalyDetector as GaussianAnomalyDetector,
    IsolationForest as IsolationForest,
    KernelDensityAnomalyDetector as KernelDensityAnomalyDetector,
    LocalOutlierFactor as LocalOutlierFactor,
    MixtureAnomalyDetector as MixtureAnomalyDetector,
    PCAAnomalyDetector as PCAAnomalyDetector,
)
from .automl import (
    AnomalyRun as AnomalyRun,
    ClusteringRun as ClusteringRun,
    EffectRun as EffectRun,
    RecommendationRun as RecommendationRun,
    TableEncoder as TableEncoder,
    TableModel as TableModel,
    TopicRun as TopicRun,
    TrainingRun as TrainingRun,
    anomaly_table as anomaly_table,
    cluster_table as cluster_table,
    effect_table as effect_table,
    recommend_table as recommend_table,
    topic_table as topic_table,
    train as train,
)
from .bayes import (
    ARDRegression as ARDRegression,
    BayesianLinearRegression as BayesianLinearRegression,
    BayesianLogisticRegression as BayesianLogisticRegression,
    BayesianRidge as BayesianRidge,
    MultivariateNormal as MultivariateNormal,
)
from .causal import (
    TreatmentEffect as TreatmentEffect,
)
from .cluster import (
    DBSCAN as DBSCAN,
    HDBSCAN as HDBSCAN,
    OPTICS as OPTICS,
    AgglomerativeClustering as AgglomerativeClustering,
    BisectingKMeans as BisectingKMeans,
    FeatureAgglomeration as FeatureAgglomeration,
    KMeans as KMeans,
    KMedians as KMedians,
    KMedoids as KMedoids,
    KModes as KModes,
    KPrototypes as KPrototypes,
    MaxMarginClustering as MaxMarginClustering,
    MiniBatchKMeans as MiniBatchKMeans,
    SpectralClustering as SpectralClustering,
    SpectralEmbedding as SpectralEmbedding,
    linkage_tree as linkage_tree,
    ward_tree as ward_tree,
)
from .control import (
    MDP as MDP,
    POMDP as POMDP,
)
from .core._certificate import (
    Certificate as Certificate,
)
from .core._history import (
    History as History,
)
from .core._settings import (
    config as config,
    get_config as get_config,
)
from .core.estimator import (
    Checkpoint as Checkpoint,
    EarlyStopping as EarlyStopping,
    TimeLimit as TimeLimit,
    methods as methods,
)
from .data import (
    scan as scan,
)
from .decomposition import (
    ICA as ICA,
    NMF as NMF,
    PCA as PCA,
    DictionaryLearning as DictionaryLearning,
    FactorAnalysis as FactorAnalysis,
    FastICA as FastICA,
    LatentDirichletAllocation as LatentDirichletAllocation,
    MiniBatchDictionaryLearning as MiniBatchDictionaryLearning,
    MiniBatchNMF as MiniBatchNMF,
    ProbabilisticPCA as ProbabilisticPCA,
    SparseCoder as SparseCoder,
    TruncatedSVD as TruncatedSVD,
    dict_learning as dict_learning,
    dict_learning_online as dict_learning_online,
    fastica as fastica,
    non_negative_factorization as non_negative_factorization,
    sparse_encode as sparse_encode,
)
from .discriminant import (
    GaussianDiscriminantAnalysis as GaussianDiscriminantAnalysis,
    LinearDiscriminantAnalysis as LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis as QuadraticDiscriminantAnalysis,
)
from .ensemble import (
    BaggingClassifier as BaggingClassifier,
    BaggingRegressor as BaggingRegressor,
    StackingClassifier as StackingClassifier,
    StackingRegressor as StackingRegressor,
    VotingClassifier as VotingClassifier,
    VotingRegressor as VotingRegressor,
)
from .generative import (
    VAE as VAE,
    AutoEncoder as AutoEncoder,
    DiffusionModel as DiffusionModel,
    EnergyBasedModel as EnergyBasedModel,
    NormalizingFlow as NormalizingFlow,
    WakeSleep as WakeSleep,
)
from .gp import (
    GaussianProcessClassifier as GaussianProcessClassifier,
    GaussianProcessRegressor as GaussianProcessRegressor,
)
from .hmm import (
    HiddenMarkovModel as HiddenMarkovModel,
)
from .io import (
    load as load,
    save as save,
)
from .kernel import (
    KernelLogisticRegression as KernelLogisticRegression,
    KernelPCA as KernelPCA,
    KernelPerceptron as KernelPerceptron,
    KernelRidge as KernelRidge,
    Nystroem as Nystroem,
    RandomFourierFeatures as RandomFourierFeatures,
)
from .linear import (
    ElasticNet as ElasticNet,
    ElasticNetCV as ElasticNetCV,
    EpicycleRegression as EpicycleRegression,
    EstimatingEquations as EstimatingEquations,
    Family as Family,
    FourierFeatures as FourierFeatures,
    GammaRegressor as GammaRegressor,
    GeneralizedLinearModel as GeneralizedLinearModel,
    HingeFeatures as HingeFeatures,
    HuberRegressor as HuberRegressor,
    JamesStein as JamesStein,
    Lars as Lars,
    LarsCV as LarsCV,
    Lasso as Lasso,
    LassoCV as LassoCV,
    LassoLars as LassoLars,
    LassoLarsCV as LassoLarsCV,
    LassoLarsIC as LassoLarsIC,
    LinearRegression as LinearRegression,
    LinearSpline as LinearSpline,
    LocallyWeightedRegression as LocallyWeightedRegression,
    LogisticRegression as LogisticRegression,
    LogisticRegressionCV as LogisticRegressionCV,
    MatchingPursuit as MatchingPursuit,
    MultiTaskElasticNet as MultiTaskElasticNet,
    MultiTaskElasticNetCV as MultiTaskElasticNetCV,
    MultiTaskLasso as MultiTaskLasso,
    MultiTaskLassoCV as MultiTaskLassoCV,
    OneVsRest as OneVsRest,
    OrthogonalMatchingPursuit as OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV as OrthogonalMatchingPursuitCV,
    PassiveAggressiveClassifier as PassiveAggressiveClassifier,
    PassiveAggressiveRegressor as PassiveAggressiveRegressor,
    Perceptron as Perceptron,
    PoissonRegressor as PoissonRegressor,
    PolynomialRegression as PolynomialRegression,
    QuantileRegressor as QuantileRegressor,
    RANSACRegressor as RANSACRegressor,
    RegularizationPath as RegularizationPath,
    Ridge as Ridge,
    RidgeClassifier as RidgeClassifier,
    RidgeClassifierCV as RidgeClassifierCV,
    RidgeCV as RidgeCV,
    SGDClassifier as SGDClassifier,
    SGDOneClassSVM as SGDOneClassSVM,
    SGDRegressor as SGDRegressor,
    ShrunkenMeans as ShrunkenMeans,
    Stagewise as Stagewise,
    TheilSenRegressor as TheilSenRegressor,
    TweedieRegressor as TweedieRegressor,
    enet_path as enet_path,
    lars_path as lars_path,
    lars_path_gram as lars_path_gram,
    lasso_path as lasso_path,
    orthogonal_mp as orthogonal_mp,
    orthogonal_mp_gram as orthogonal_mp_gram,
    ridge_regression as ridge_regression,
    shrink_means as shrink_means,
)
from .manifold import (
    MDS as MDS,
    SNE as SNE,
    TSNE as TSNE,
    ClassicalMDS as ClassicalMDS,
    Isomap as Isomap,
    LocallyLinearEmbedding as LocallyLinearEmbedding,
    NeighborEmbedding as NeighborEmbedding,
    locally_linear_embedding as locally_linear_embedding,
    smacof as smacof,
)
from .mixture import (
    BayesianGaussianMixture as BayesianGaussianMixture,
    BernoulliMixture as BernoulliMixture,
    GaussianMixture as GaussianMixture,
    MultinomialMixture as MultinomialMixture,
    PoissonMixture as PoissonMixture,
)
from .naive_bayes import (
    BernoulliNB as BernoulliNB,
    CategoricalNB as CategoricalNB,
    ComplementNB as ComplementNB,
    GaussianNB as GaussianNB,
    LogOdds as LogOdds,
    MixedNB as MixedNB,
    MultinomialNB as MultinomialNB,
)
from .neighbors import (
    KernelDensity as KernelDensity,
    KNeighborsClassifier as KNeighborsClassifier,
    KNeighborsRegressor as KNeighborsRegressor,
    KNeighborsTransformer as KNeighborsTransformer,
    NearestCentroid as NearestCentroid,
    NearestNeighbors as NearestNeighbors,
    RadiusNeighborsClassifier as RadiusNeighborsClassifier,
    RadiusNeighborsRegressor as RadiusNeighborsRegressor,
    RadiusNeighborsTransformer as RadiusNeighborsTransformer,
)
from .nets import (
    BERT as BERT,
    GPT as GPT,
    BERTClassifier as BERTClassifier,
    CharacterModel as CharacterModel,
    ConvNetClassifier as ConvNetClassifier,
    ImageCaptioner as ImageCaptioner,
    MemoryQA as MemoryQA,
    MLPClassifier as MLPClassifier,
    MLPRegressor as MLPRegressor,
    ObjectDetector as ObjectDetector,
    Segmenter as Segmenter,
    Seq2Seq as Seq2Seq,
    SequenceClassifier as SequenceClassifier,
    SequenceRegressor as SequenceRegressor,
    SequenceTagger as SequenceTagger,
    Transformer as Transformer,
    VisualQA as VisualQA,
)
from .select import (
    BackwardSelection as BackwardSelection,
    FilterSelection as FilterSelection,
    ForwardSelection as ForwardSelection,
)
from .svm import (
    SVC as SVC,
    SVR as SVR,
    LinearSVC as LinearSVC,
    LinearSVR as LinearSVR,
    NuSVC as NuSVC,
    NuSVR as NuSVR,
    OneClassSVM as OneClassSVM,
)
from .text import (
    BytePairEncoder as BytePairEncoder,
    CountVectorizer as CountVectorizer,
    GloVe as GloVe,
    HashingVectorizer as HashingVectorizer,
    LatentSemanticIndexing as LatentSemanticIndexing,
    TfidfTransformer as TfidfTransformer,
    TfidfVectorizer as TfidfVectorizer,
    Word2Vec as Word2Vec,
)
from .tree import (
    AdaBoostClassifier as AdaBoostClassifier,
    AdaBoostRegressor as AdaBoostRegressor,
    DecisionTreeClassifier as DecisionTreeClassifier,
    DecisionTreeRegressor as DecisionTreeRegressor,
    ExtraTreesClassifier as ExtraTreesClassifier,
    ExtraTreesRegressor as ExtraTreesRegressor,
    GradientBoostingClassifier as GradientBoostingClassifier,
    GradientBoostingRegressor as GradientBoostingRegressor,
    HistGradientBoostingClassifier as HistGradientBoostingClassifier,
    HistGradientBoostingRegressor as HistGradientBoostingRegressor,
    RandomForestClassifier as RandomForestClassifier,
    RandomForestRegressor as RandomForestRegressor,
    RandomTreesEmbedding as RandomTreesEmbedding,
)

__version__: str
__all__: list[str]

_PUBLIC: dict[str, str]
