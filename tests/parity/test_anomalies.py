"""Published figures on data sets that are not kept in the repository."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from epicycle import GaussianAnomalyDetector, IsolationForest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("name", "published"), [("shuttle.csv.gz", 1.00), ("mammography.csv.gz", 0.86)])
def test_areas_of_liu_ting_and_zhou(name, published, book_data):
    """Isolation forest, ICDM 2008, table 3: areas to two digits."""
    table = book_data(name)
    X, odd = table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy() == 1
    areas = [roc_auc_score(odd, -IsolationForest(random_state=s).fit(X).score_samples(X)) for s in range(5)]
    assert round(float(np.mean(areas)), 2) == published


def test_attacks_on_mail_servers_are_found(book_data):
    table = book_data("kddcup99_10percent.csv.gz", header=None)
    mail = table[table[2] == "smtp"]
    X, attack = np.log(mail[[0, 4, 5]].to_numpy(float) + 0.1), (mail[41].astype(str) != "normal.").to_numpy()
    half = np.random.default_rng(0).permutation(len(attack)) < len(attack) // 2
    for model in (IsolationForest(random_state=0), GaussianAnomalyDetector(transforms="auto")):
        found = model.fit(X[half]).calibrate(X[half], attack[half]).predict(X[~half]) == -1
        assert found[attack[~half]].mean() > 0.95
        assert attack[~half][found].mean() > 0.75
