"""Neural networks on PyTorch (the extra `deep`)."""

from typing import TYPE_CHECKING, Any

from epicycle.nets import examples
from epicycle.nets._tangent_kernel import tangent_kernel
from epicycle.nets.attention import ImageCaptioner, MemoryQA, Seq2Seq, VisualQA
from epicycle.nets.language import BERT, GPT, BERTClassifier, Transformer
from epicycle.nets.mlp import MLPClassifier, MLPRegressor
from epicycle.nets.sequences import CharacterModel, SequenceClassifier, SequenceRegressor, SequenceTagger
from epicycle.nets.vision import ConvNetClassifier, Detections, ObjectDetector, Segmenter

if TYPE_CHECKING:
    from epicycle.nets.vision._deformable_conv import DeformableConv as DeformableConv

__all__ = [
    "BERT",
    "GPT",
    "BERTClassifier",
    "CharacterModel",
    "ConvNetClassifier",
    "Detections",
    "ImageCaptioner",
    "MLPClassifier",
    "MLPRegressor",
    "MemoryQA",
    "ObjectDetector",
    "Segmenter",
    "Seq2Seq",
    "SequenceClassifier",
    "SequenceRegressor",
    "SequenceTagger",
    "Transformer",
    "VisualQA",
    "examples",
    "tangent_kernel",
]


def __getattr__(name: str) -> Any:
    """`DeformableConv`, a torch module: it is loaded, and torch with it, when it is first asked for."""
    if name != "DeformableConv":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from epicycle.nets.vision._deformable_conv import DeformableConv

    return DeformableConv
