"""Pages of latent structure: topics, and the certificate of iterations."""
