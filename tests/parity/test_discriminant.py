"""Discriminant analysis of the vowels: the errors of a book."""

import epicycle as ep


def test_vowel_has_the_errors_of_the_book(book_data):
    # Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, Table 4.1.
    train, test = (book_data(f"esl_vowel_{part}.csv.gz") for part in ("train", "test"))
    columns = [c for c in train if c.startswith("x.")]
    for model, of_train, of_test in (
        (ep.LinearDiscriminantAnalysis(), 0.32, 0.56),
        (ep.QuadraticDiscriminantAnalysis(), 0.01, 0.53),
    ):
        model.fit(train[columns], train["y"])
        assert round(1 - model.score(train[columns], train["y"]), 2) == of_train
        assert round(1 - model.score(test[columns], test["y"]), 2) == of_test
