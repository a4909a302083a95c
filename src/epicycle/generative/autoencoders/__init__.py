"""Models with a code behind every row, and networks that find it or draw from it."""

from epicycle.generative.autoencoders._auto_encoder import AutoEncoder
from epicycle.generative.autoencoders._decoder import Decoder
from epicycle.generative.autoencoders._vae import VAE
from epicycle.generative.autoencoders._wake_sleep import WakeSleep

__all__ = ["VAE", "AutoEncoder", "Decoder", "WakeSleep"]
