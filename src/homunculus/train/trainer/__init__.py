"""The training loop and what becomes of its weights: steps, optimizers, log, export, calibration."""
