"""Transformers: networks that learn from texts and other sequences of tokens."""

from epicycle.nets.language._bert import BERT
from epicycle.nets.language._bert_classifier import BERTClassifier
from epicycle.nets.language._gpt import GPT
from epicycle.nets.language._transformer import Transformer

__all__ = ["BERT", "GPT", "BERTClassifier", "Transformer"]
