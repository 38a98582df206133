"""Batch RL on Pong: Table 1 of the paper and its extended table, with today's peers and the share of true rows.

    python -m experiments.batch_pong run --preset laptop [--arms real,3C-ours] [--sizes 25] [--processes 2]
    python -m experiments.batch_pong run --preset pilot    # another seed, to choose the settings of laptop by
    python -m experiments.batch_pong run --preset rows     # only what the world says of the rows of all arms
    python -m experiments.batch_pong report

A scripted player at noise 0.5 records a dataset. Each arm adds rows to it, and the same TD3 is trained on the result,
without ever playing. Success is the share of games that it then wins. Arms:

- ``real`` (1R): nothing is added.
- ``dyna``, ``mbpo`` (1R:1M): one-step rollouts of the transformer; 5-step rollouts of a ``DynamicsEnsemble``.
- ``1C-``, ``2C-``, ``3C-``, ``5C-`` (1R:kC): k counterfactuals for each real row. The mask comes from the paper's
  ``transformer``; from ``ours``, which is ``ResidualAttribution`` at the threshold that ``calibrate`` finds without
  labels; or from the world itself, ``exact``. ``3C-identity`` swaps everything. In
  ``3C-classified`` the mask is exact and rewards are a classifier's.
- ``3C1M-`` (1R:3C:1M): first the ensemble, then CoDA on real and imagined rows together.
- ``3D-diffusion``, ``3N-noise``: two peers at the number of rows of 1R:3C; a small diffusion model of whole
  transitions in the manner of SynthER, and copies of real rows with noise on the states in the manner of S4RL.

Models are fitted to the recorded rows alone, once for each size and seed, and kept in ``runs/batch_pong``. In ``paper``
added rows have their rewards from a classifier that was fitted to the same rows, and the two peers bring their own. In
``laptop`` the world labels all rows. docs/results/batch.md says why, and what differs from the paper's experiment.
"""
