"""Online RL with sprites: Figure 3 of the paper and its sparse variant.

    python -m experiments.online_sprites run --preset laptop [--arms td3,coda] [--tasks place-2] [--processes 2]
    python -m experiments.online_sprites report
    python -m experiments.online_sprites model                 # how much the model of learned and dyna knows

Arms, all with the same TD3 of Stable-Baselines3: ``td3`` (plain buffer), ``coda`` (exact mask), ``learned``
(mask of a transformer pretrained on random transitions), ``dyna`` (rollouts of that same model), and one that the
paper has not: ``attribution`` (mask of our best estimator, same transitions, threshold found without labels).

Differences from the paper's code:

1. Actions are what they are everywhere. The original passed actions in [-1, 1] to its masks as if they were in
   [0, 1], drew warm-up actions from [0, 1], and stored Dyna's actions in [0, 1]: its exact mask was not exact,
   and its Dyna had mislabelled data.
2. The exact mask allows for unknown noise of two standard deviations instead of drawing noise of its own.
3. "Up to 5 unique per pair" is meant: no repeats and no copies of a parent, where the original had both.
4. Learned masks have self-edges added, and the right orientation.
5. The buffer says a time limit is no end, where the original stored "done" as 0: the same to the agent.
6. Evaluation draws from its own generator, the same for all arms, and does not disturb training.
7. In the laptop preset the learned model is 128 wide, not 512, which would take an hour to pretrain.
"""
