"""Training in stages of falling learning rate, which ends nearer to the minimum than one rate does."""

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from torch import nn

from counterpoint.learn.training.fitting import AnyRows, History, LossFn, TrainingTask, minimise

Stages: TypeAlias = tuple[tuple[float, float], ...]  # shares of the learning rate and of the epochs

STAGES: Stages = ((1.0, 0.6), (0.3, 0.25), (0.1, 0.15))
GENTLE: Stages = ((1.0, 0.4), (0.5, 0.2), (0.2, 0.2), (0.05, 0.2))  # for what must be fitted closely


def in_stages(
    network: nn.Module,
    loss: LossFn[AnyRows],
    task: TrainingTask[AnyRows],
    *,
    stages: Stages = STAGES,
    rows: Callable[[], AnyRows] | None = None,
) -> History:
    """Train a network in place, one stage after another; each begins with the best weights of the last.

    A keyboard interrupt ends training with a warning and keeps the best weights so far; before the end
    of the very first epoch it is passed on.

    Args:
        network: what to train.
        loss: ``(batch, generator) -> scalar``, the mean over the batch.
        task: data, settings and randomness; its epochs are divided among the stages.
        stages: shares of the learning rate and of the epochs, stage by stage.
        rows: called before every stage but the first, returns the rows to train on from then on.
    """
    histories: list[History] = []
    for rate, share in stages:
        settings = task.training
        stage = replace(
            settings, learning_rate=rate * settings.learning_rate, epochs=max(1, round(share * settings.epochs))
        )
        again = task.train if rows is None or not histories else rows()
        weights = copy.deepcopy(network.state_dict())
        try:
            histories.append(minimise(network, loss, replace(task, train=again, training=stage)))
        except KeyboardInterrupt:
            if not histories:
                raise
            network.load_state_dict(weights)
            network.eval()
            histories[-1] = replace(histories[-1], stopped="interrupted")
            warnings.warn(f"{task.name}: interrupted after a stage; the best weights are kept.", stacklevel=3)
        if histories[-1].stopped == "interrupted":
            break
    return joined(histories)


def all_or_nothing(train: Callable[[], History], name: str) -> History:
    """Train the first part of what is of no use without the rest: pass a keyboard interrupt on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the best weights are kept")  # without the rest they are not
        history = train()
    if history.stopped == "interrupted":
        raise KeyboardInterrupt(f"{name}: interrupted before the last part of its training; nothing is kept.")
    return history


def joined(histories: list[History]) -> History:
    """Return one history of several trainings in a row; the best epoch is that of the last one."""
    last = histories[-1]
    before = sum(len(history.validation) for history in histories[:-1])
    return History(
        train=tuple(loss for history in histories for loss in history.train),
        validation=tuple(loss for history in histories for loss in history.validation),
        best=before + last.best,
        stopped=last.stopped,
        seconds=sum(history.seconds for history in histories),
    )
