"""Open paths of three diagrams: an unseen common cause, a closed back door, a collider that is conditioned on."""

import matplotlib.pyplot as plt

from epicycle.causal import CausalGraph

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.2))
CausalGraph("smoking -> tar -> cancer; smoking <-> cancer").plot("smoking", "cancer", ax=left)
CausalGraph("a -> x -> y; a -> b -> y; c -> y").plot("x", "y", given="b", ax=middle)
m_bias = CausalGraph("u1 -> x; u1 -> m; u2 -> m; u2 -> y; x -> y", latent=["u1", "u2"])
m_bias.plot("x", "y", given="m", ax=right)
for ax, title in ((left, "no set closes the back door"), (middle, "given b"), (right, "given m")):
    ax.set_title(title)
fig.tight_layout()
