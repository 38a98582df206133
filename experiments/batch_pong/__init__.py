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
  labels; or from the world itself, ``exact``. ``3C-identity`` swaps everything. ``3C-known`` has the world's mask and
  its rewards, where all others have those of the classifier.
- ``3C1M-`` (1R:3C:1M): first the ensemble, then CoDA on real and imagined rows together.
- ``3D-diffusion``, ``3N-noise``: two peers at the number of rows of 1R:3C; a small diffusion model of whole
  transitions in the manner of SynthER, and copies of real rows with noise on the states in the manner of S4RL.

Models are fitted to the recorded rows alone, once for each size and seed, and kept in ``runs/batch_pong``. Added rows
get their rewards from a classifier that was fitted to the same rows; the two peers bring their own.

Differences from the paper's code:

1. The world is our Pong: closed-form rules of the same game, states that are not clipped (the original's observation
   hides the speed of every serve), and a scripted player that wins as often as theirs (59% and 60% at noise 0.5).
2. Episodes have 250 steps, as in the code that made the published table; the paper says 150.
3. TD3 is that of Stable-Baselines3. Actor and targets are updated at every step: a delay of 2 was configured in the
   original code, too, but a counter that never moved switched it off. Target actions come from the target actor, and
   the actor climbs the first critic, as in TD3; there it was the actor itself and the smaller critic.
4. Actions are stored as the world takes them; the original stored them unclipped.
5. Counterfactuals are distinct, and none equals a parent.
6. Networks see standardised columns. The ensemble predicts changes, as MBPO's does, and its best epoch is kept; the
   original predicted next states.
7. Our mask is fitted to three quarters of the episodes and calibrated on the rest, at most 40,000 and 10,000 rows.
8. In ``laptop`` an agent makes 15,000 updates of 256 rows instead of 500,000 of 1,000, with a learning rate of 1e-3
   instead of 3e-4, TD3's delay of 2, and targets that move by 0.04 instead of 0.005. It plays 50 games every 250
   updates, instead of 10 every 1,000.
"""
