"""The contract below the data: errors, settings, parameters, evidence, threads, random streams, figure style."""
