"""Speed and accuracy, one command each: ``python -m benchmarks.NAME``."""
