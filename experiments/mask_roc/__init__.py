"""Learned masks: ROC curves of all estimators on all worlds, and what becomes of the counterfactuals they allow.

    python -m experiments.mask_roc run --preset laptop [--worlds sprites] [--estimators SandyMixture] [--processes 2]
    python -m experiments.mask_roc report

A run draws its own data (and in the processes, its own random maps), fits an estimator to 40,000 transitions with
10,000 to stop early by, and scores 10,000 others. No estimator sees a label, and all have the same settings on all
worlds. Development used other seeds than these runs.

Differences from the paper's code: labels are right (their columns of a factor that acts on all were its rows),
processes start from fresh states and are split by sequence (theirs tested where nothing ever happens), early
stopping is real, and the transformer's mask is read the right way round.
"""
