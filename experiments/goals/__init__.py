"""Goal-conditioned RL with a robot: the right half of Figure 5 of the paper, FetchPush and Slide2.

    python -m experiments.goals run --preset laptop [--arms her,heuristic] [--seeds 0,1] [--processes 2]
    python -m experiments.goals report

Arms, all with the same agent: ``her`` (hindsight alone), ``heuristic`` (counterfactuals with the paper's mask: what is
more than 10 cm apart is independent), ``contacts`` (the exact mask, from the simulator's contacts), ``learned`` (a mask
of ResidualAttribution, fitted without labels to play that is not counted, threshold found without labels). And, ours:
``added`` has all real rows of ``her``, with the counterfactuals of ``heuristic`` on top, and ``larger`` as many rows,
all of them real.

Tasks: ``push`` (FetchPush without the columns that entangle gripper and object), ``slide2`` (two pucks), and
``slide2-one``, an easier variant of ours in which pucks stop soon, and the second lies on its goal at the start. With
``-held``, and in ``slide2-one``, an action is held for three steps of the environment, and these are one decision.

Differences from the paper:

1. The agent is Stable-Baselines3's DDPG, with what the paper's has and it lacks: targets clipped to [-50, 0], a penalty
   on actions, layer norm, targets updated every 10 updates, random actions in a fifth of the steps, running
   normalisation of observations. Its networks also see the achieved goal, which the observation repeats.
2. The environments are those of Gymnasium-Robotics 1.4 with MuJoCo 3, not of 2018. The object's velocity is absolute;
   the paper's was relative to the gripper, so that swaps made velocities that no simulator would show.
3. Counterfactuals are made every 250 environment steps, as the paper says; its code did so every 250 updates, that is
   500 steps. "Up to 2 per pair" are different ones.
4. Counterfactuals of Slide2 are rewarded with the training threshold of 5 cm; the paper's code used 7.5 cm for them.
5. One environment at a time, where the code had six. Evaluation has its own environment, fresh goals and fixed seeds.
6. In the laptop presets networks are 3 x 128 with batches of 512, not 3 x 512 with 2000, which would take half a day
   for each run; one update for each decision; half of a batch is counterfactual, not three quarters; actions are held.
7. The mask of ``contacts`` has to simulate every proposal, so that arm looks at fewer pairs in each round.
8. With ``relative``, networks also see how far objects are from the gripper and from their goals, computed from each
   row after all swaps, and all columns in fixed units instead of running normalisation.
9. With ``aims``, half of the random actions go for the nearest object; the paper's are all uniform.
"""
