"""Tables for the multi-layer perceptrons: fits that end after the epochs that were asked for."""

from net_samples import Sample

_FEW = {"max_iter": 10, "tol": None}
_LIGHT = {"hidden_layer_sizes": 8, "learning_rate_init": 0.05, "max_iter": 30, "tol": None}
#: "lbfgs" ends by a tolerance, and resumed in another minimum unless the problem is convex: tests/nets/mlp has that.
_SOLVERS = ("adam", "adamw", "sgd", "momentum", "adagrad", "adadelta", "rmsprop", "backprop")
SAMPLES = {name: Sample(few=_FEW, light=_LIGHT, solvers=_SOLVERS) for name in ("MLPClassifier", "MLPRegressor")}
