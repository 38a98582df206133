"""DistilledLikelihood: what is lost by not knowing a source, answered fast by a network that was taught the answers."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import silu, smooth_l1_loss

from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_counts, require_share
from counterpoint.learn.estimators.estimator import NetworkEstimator
from counterpoint.learn.estimators.masked_likelihood import MaskedLikelihood, MaskedNetwork
from counterpoint.learn.networks.layers import with_self_edges
from counterpoint.learn.networks.relations import Relations
from counterpoint.learn.networks.typed import TypedMLP
from counterpoint.learn.training.fitting import History, Training, TrainingTask, flushed_denormals
from counterpoint.learn.training.inputs import require_several
from counterpoint.learn.training.scaling import Labelled, ScaledBatch, Scaling
from counterpoint.learn.training.stages import all_or_nothing, in_stages, joined

_ASKED = 1024  # rows that the teacher is asked about at once
_SMALLEST = 0.01  # nats; smaller losses of likelihood are not told apart


@dataclass(frozen=True, kw_only=True)
class DistilledLikelihood(NetworkEstimator):
    """Score an edge i → j by how much likelihood the next state of j is expected to lose when i is not known.

    That is the question of ``MaskedLikelihood`` without the next state, which answers it well and slowly: it
    predicts every factor again and again, without each source and with the source's values redrawn. Here it is
    the teacher. It is fitted first and then asked about some thousand rows; a small network learns its
    answers and gives the scores. There are two kinds of such rows:

    - recorded ones;
    - recombined ones, in which some factors come from another row, as in counterfactuals. There a mask must not
      be at a loss, and influences that are rare in the recordings are less rare.

    The small network looks at each pair of a source and a target, and at what all other sources tell the
    target: an influence may depend on a third factor. Pairs of the same types share weights. Interrupted before
    the small network is trained, ``fit`` raises ``KeyboardInterrupt``.

    A score is the expected loss in nats, given state and action alone, so it says what *would* happen.

    Attributes:
        lessons: rows that the teacher is asked about.
        recombined: share of them that are recombined.
        student_width: hidden units of the small network.
        student_epochs: passes of the small network over the lessons.
        width, components, draws, finest: of the teacher, see ``MaskedLikelihood``.
        epochs, batch_size, ...: of the teacher's training, see ``NetworkEstimator``.

    Time: fitting is linear in the rows, and scoring takes one pass of a small network for each pair. See
    ``benchmarks/learned.py``.
    """

    lessons: int = 20_000
    recombined: float = 0.5
    student_width: int = 32
    student_epochs: int = 30
    width: int = 64
    components: int = 3
    draws: int = 6
    finest: float = 0.01
    epochs: int = 40
    learning_rate: float = 6e-3
    warm_up: int = 100
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "lessons", "student_width", "student_epochs")
        require_share("recombined", self.recombined)
        _ = self.teacher  # checks its own settings

    @property
    def teacher(self) -> MaskedLikelihood:
        """The estimator whose scores are learned."""
        return MaskedLikelihood(
            uses_next_state=False, width=self.width, components=self.components, draws=self.draws, finest=self.finest
        )

    def build(self, factors: Factorization, scaling: Scaling) -> "Distilled":  # noqa: D102
        require_several(factors)
        return Distilled(factors, self.teacher.build(factors, scaling), Student(factors, scaling, self.student_width))

    def train(self, network: "Distilled", task: TrainingTask[ScaledBatch]) -> History:
        """Train the teacher, ask it, and train the small network on its answers."""
        teaching = replace(task, name=f"{task.name}: teacher")
        first = all_or_nothing(lambda: self.teacher.train(network.teacher, teaching), task.name)
        with torch.no_grad():
            network.student.relations.observe(task.train)
        lessons = self._lessons(network, task)
        held = max(1, round(self.validation_share * len(lessons)))
        settings = Training(epochs=self.student_epochs, learning_rate=3e-3, patience=self.student_epochs)
        name = f"{task.name}: student"
        second = TrainingTask(lessons[held:], lessons[:held], settings, task.rng, task.progress, name)
        last = in_stages(network.student, partial(self.loss, network), second)
        return replace(joined([first, last]), stopped=last.stopped)

    def _lessons(self, network: "Distilled", task: TrainingTask[ScaledBatch]) -> Labelled:
        """Return rows and what the teacher says about them, in random order."""
        rng, rows = task.rng, task.train
        count = min(self.lessons, 2 * len(rows))
        base, donor = (torch.from_numpy(rng.integers(len(rows), size=count)) for _ in range(2))
        swapped = torch.from_numpy(rng.random((count, network.teacher.nodes)) < rng.random((count, 1)))
        swapped &= torch.from_numpy(rng.random((count, 1)) < self.recombined)
        batch = recombined(rows[base], rows[donor], swapped, network.owner)
        with torch.no_grad(), flushed_denormals():
            answers = [self.teacher.edges(network.teacher, asked) for asked in batch.batches(_ASKED)]
        return Labelled(batch, torch.log(torch.cat(answers).clamp(min=0.0) + _SMALLEST))

    def loss(self, network: "Distilled", batch: Labelled, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return how far the small network is from the teacher, in logarithms of nats."""
        source, target = network.student.relations.nodes.source, network.student.relations.nodes.target
        return smooth_l1_loss(network.student(batch.batch), batch.label[:, source, target], beta=0.5)

    def edges(self, network: "Distilled", batch: ScaledBatch) -> Tensor:
        """Return the expected loss of likelihood in nats, (B, N, n)."""
        nodes = network.student.relations.nodes
        scores = batch.state.new_zeros(len(batch), nodes.count, nodes.n)
        scores[:, nodes.source, nodes.target] = (torch.exp(network.student(batch)) - _SMALLEST).clamp(min=0.0)
        return with_self_edges(scores)


class Student(nn.Module):
    """A small network of pairs that also hears what all other sources tell the target."""

    def __init__(self, factors: Factorization, scaling: Scaling, width: int) -> None:
        super().__init__()
        self.relations = Relations(factors, scaling)
        pairs = self.relations.nodes.pair_kind.tolist()
        self.each = TypedMLP(pairs, [self.relations.width, width, width], activation=silu)
        self.both = TypedMLP(pairs, [2 * width, width, 1], activation=silu)

    def forward(self, batch: ScaledBatch) -> Tensor:
        """Return the logarithm of every pair's score, (B, P)."""
        told = self.each.slots(self.relations(batch).transpose(0, 1))  # (P, B, width), in the order of targets
        others = told.reshape(self.relations.nodes.n, -1, *told.shape[1:])
        heard = (others.sum(dim=1, keepdim=True) - others).flatten(0, 1)
        return self.both.slots(silu(torch.cat([told, heard], dim=-1))).squeeze(-1).T


class Distilled(nn.Module):
    """Teacher and student, and the node that owns each column of states and actions, -1 for derived ones."""

    def __init__(self, factors: Factorization, teacher: MaskedNetwork, student: Student) -> None:
        super().__init__()
        self.teacher, self.student = teacher, student
        self.owner = torch.from_numpy(np.concatenate([factors.state_owner, factors.action_owner]))


def recombined(base: ScaledBatch, donor: ScaledBatch, swapped: Tensor, owner: Tensor) -> ScaledBatch:
    """Return states and actions with the nodes of the donor where ``swapped`` (B, N), and of the base elsewhere."""
    mine, theirs = (torch.cat([batch.state, batch.action], dim=1) for batch in (base, donor))
    mixed = torch.where(swapped[:, owner] & (owner >= 0), theirs, mine)
    return ScaledBatch(*torch.split(mixed, [base.state.shape[1], base.action.shape[1]], dim=1))
