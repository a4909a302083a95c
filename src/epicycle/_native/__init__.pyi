"""Compiled kernels: pure functions of arrays. X is float32 or float64 in any memory order, indices 32- or 64-bit."""

from epicycle._native import (
    bayes as bayes,
    cart as cart,
    cluster as cluster,
    control as control,
    core as core,
    glm as glm,
    graph as graph,
    hmm as hmm,
    kernel as kernel,
    linear as linear,
    local as local,
    manifold as manifold,
    mixture as mixture,
    neighbors as neighbors,
    online as online,
    svm as svm,
    tree as tree,
)
