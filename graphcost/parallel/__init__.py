"""Products of parallelism: tensor, pipeline, data and expert."""
