"""Are counterfactuals of real robots true? Four MuJoCo environments, several masks, and the simulator as judge.

Each environment is recorded with its hidden state; accepted counterfactuals are put back into the simulator with
theirs, stepped, and compared with what was made. Masks: ``islands``, the simulator's own contacts, strict or not;
``near``, the paper's 10 cm; ``near or fallen``, the same that knows of objects below the table or beyond its rails;
``reach or fallen``, with 19 cm: that is how far an open gripper can touch within one step; ``identity``, which forbids
nothing; ``learned``, at the threshold that `calibrate` finds without labels, with the share of wrong ones that it
expected. Kitchen shows angles of joints and no positions of the hand, so there are no rules of distance for it.

Deviations from the paper: its Fetch environments are those of Gymnasium-Robotics in version 4 here (FetchPush with the
object's absolute velocity), Slide2 is built anew from its numbers, and the policy is scripted, not learned.

    python -m experiments.mujoco_exactness run --preset laptop
    python -m experiments.mujoco_exactness report
"""
