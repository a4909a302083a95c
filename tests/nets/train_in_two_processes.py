"""One of two processes that fit the same perceptron: ``python train_in_two_processes.py RANK FILE OUT``."""

import sys

import numpy as np
import torch.distributed as dist

import epicycle as ep


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(203, 5))
    return X, np.sin(X[:, 0]) + X[:, 1]


def model():
    return ep.MLPRegressor(hidden_layer_sizes=7, batch_size=20, max_iter=4, tol=None, random_state=0)


if __name__ == "__main__":
    rank, meeting_place, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    dist.init_process_group("gloo", init_method=f"file://{meeting_place}", rank=rank, world_size=2)
    model().fit(*problem()).save(f"{out}{rank}.epi")
    dist.destroy_process_group()
