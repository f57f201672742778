"""A project's models under its budgets: configuration, baseline, other revisions, and the check of them all."""
