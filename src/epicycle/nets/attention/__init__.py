"""Networks with attention: from text to text, descriptions of images, questions about images and stories."""

from epicycle.nets.attention._image_captioner import ImageCaptioner
from epicycle.nets.attention._memory_qa import MemoryQA
from epicycle.nets.attention._seq2seq import Seq2Seq
from epicycle.nets.attention._visual_qa import VisualQA

__all__ = ["ImageCaptioner", "MemoryQA", "Seq2Seq", "VisualQA"]
