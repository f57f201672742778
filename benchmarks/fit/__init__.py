"""Fitting the constants of the device and network models to measured tables, and what they give on data held out."""
