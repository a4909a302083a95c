"""`as_data`: whatever users pass as X, y and sample_weight, checked and made a :class:`Data`."""

from __future__ import annotations

from typing import Any

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._array_data import ArrayData
from epicycle.data._checks import Checks
from epicycle.data._dask_data import dask_data, is_dask
from epicycle.data._data import Data
from epicycle.data._scan import Scan
from epicycle.data._scan_data import ScanData
from epicycle.data._target import TargetKind, as_weight, require_target


def as_data(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    target: TargetKind = "none",
    multi_output: bool = False,
    estimator_name: str = "estimator",
    accept_sparse: bool = True,
    check_finite: bool = True,
    missing: bool = False,
) -> Data:
    """Check X, y and sample_weight and make them a data set; arrays that can be used as they are are not copied.

    Parameters
    ----------
    X : array, sparse matrix, data frame, Scan, Dask collection, or nested list
        Features, of shape (n, p).
    y : array-like of shape (n,) or (n, k), optional
        Targets, in memory where X is, or a Dask collection with the partitions of X. A scan brings its own.
    sample_weight : array-like of shape (n,), or a number, optional
    target : {"none", "numeric", "labels"}
        What y has to be; "none" ignores y.
    multi_output : bool
        Whether a numeric y may have several columns.
    estimator_name : str
        Named in messages.
    accept_sparse, check_finite : bool
        Whether X may be sparse, and whether its elements are looked at.
    missing : bool
        Whether features that are missing in files become NaN, or are refused.

    Returns
    -------
    Data
    """
    if isinstance(X, Data):
        return X
    checks = Checks(target, multi_output, estimator_name, accept_sparse, check_finite)
    if isinstance(X, Scan):
        return _scan_data(X, y, sample_weight, checks, missing)
    if is_dask(X):
        if target != "none":
            require_target(y, estimator_name)
        return dask_data(X, y, sample_weight, checks)
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if is_dask(value):
            raise DataTypeError(f"{name}: is a Dask collection, X is {type(X).__name__}; compute() it first")
    if target != "none":
        require_target(y, estimator_name)
    matrix, names = checks.matrix(X)
    n = int(matrix.shape[0])
    return ArrayData(matrix, checks.targets(y, n), as_weight(sample_weight, n), feature_names=names)


def _scan_data(scan: Scan, y: Any, sample_weight: Any, checks: Checks, missing: bool) -> ScanData:
    target, estimator_name = checks.target, checks.estimator_name
    for name, value, argument in (("y", y, "target"), ("sample_weight", sample_weight, "weight")):
        if value is not None:
            raise DataError(f"{name}: a scan brings its own; name the column in ep.scan(..., {argument}=...)")
    if target != "none" and not scan.targets:
        raise DataError(
            f"{estimator_name} requires y to be passed, but the target y is None: name it in ep.scan(..., target=...)"
        )
    if len(scan.targets) > 1 and (target == "labels" or (target == "numeric" and not checks.multi_output)):
        raise DataError(f"y should be a 1d array: the scan has {len(scan.targets)} targets, {estimator_name} takes one")
    return ScanData(scan, target, estimator_name=estimator_name, missing=missing)
