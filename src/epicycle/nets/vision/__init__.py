"""Networks that look at images."""

from epicycle.nets.vision._conv_net_classifier import ConvNetClassifier
from epicycle.nets.vision._detections import Detections
from epicycle.nets.vision._object_detector import ObjectDetector
from epicycle.nets.vision._segmenter import Segmenter

__all__ = ["ConvNetClassifier", "Detections", "ObjectDetector", "Segmenter"]
