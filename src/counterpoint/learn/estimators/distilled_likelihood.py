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
from counterpoint.learn.estimators.masked_likelihood import MaskedNetwork, more_of_the_worst
from counterpoint.learn.networks.densities import mixture_kl, require_finest
from counterpoint.learn.networks.layers import with_self_edges
from counterpoint.learn.networks.relations import Relations
from counterpoint.learn.networks.typed import TypedMLP
from counterpoint.learn.training.fitting import History, Training, TrainingTask, flushed_denormals
from counterpoint.learn.training.inputs import require_several
from counterpoint.learn.training.scaling import Labelled, ScaledBatch, Scaling
from counterpoint.learn.training.stages import GENTLE, all_or_nothing, in_stages, joined

_ASKED = 1024  # rows that the teacher is asked about at once
_SMALLEST = 0.01  # nats; smaller losses of likelihood are not told apart
_RATE = 3e-3  # learning rate of the student


@dataclass(frozen=True, kw_only=True)
class DistilledLikelihood(NetworkEstimator):
    """Score an edge i → j by how much likelihood the next state of j is expected to lose when i is not known.

    A *teacher* knows the answer, slowly. It is a density of each factor's next state given everything, a mixture
    of Gaussians. Not to know a source is to give it the values of other rows and to take the mean of what
    follows. With p the density given all sources and q that mean, the score is KL(p ‖ q), in nats. Densities are
    compared as if all were blurred by a quarter of the usual error: no model should be believed beyond it.

    A *student*, a small network, learns the teacher's answers and gives the scores. The teacher is asked about
    two kinds of rows:

    - recorded ones;
    - recombined ones, in which some factors come from another row, as in counterfactuals. There a mask must not
      be at a loss, and influences that are rare in the recordings are less rare.

    The student looks at each pair of a source and a target, and at what all other sources tell the target: an
    influence may depend on a third factor. Pairs of the same types share weights. Interrupted before the student
    is trained, ``fit`` raises ``KeyboardInterrupt``.

    Scores are given state and action alone, so they say what *would* happen. ``MaskedLikelihood`` asks the
    same question, also of what did happen, and has no student.

    Attributes:
        lessons: rows that the teacher is asked about.
        recombined: share of them that are recombined.
        draws: how many rows lend their values to a source that is not to be known.
        width: hidden units of the teacher.
        components: Gaussians of each mixture.
        finest: smallest standard deviation of a Gaussian, in those of the target.
        oversample: share of the teacher's rows in later stages that are drawn from those it predicts worst.
        student_width: hidden units of the student.
        student_epochs: passes of the student over the lessons.
        epochs, batch_size, ...: of the teacher's training, see ``NetworkEstimator``.

    Time: fitting is linear in rows and lessons; scoring is one pass of a small network for each pair.
    """

    lessons: int = 20_000
    recombined: float = 0.5
    draws: int = 6
    width: int = 64
    components: int = 3
    finest: float = 0.01
    oversample: float = 0.0
    student_width: int = 32
    student_epochs: int = 30
    epochs: int = 30
    batch_size: int = 128
    learning_rate: float = 4e-3
    warm_up: int = 100
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "lessons", "draws", "width", "components", "student_width", "student_epochs")
        require_finest(self.finest)
        require_share("recombined", self.recombined)
        if not 0 <= self.oversample < 1:
            raise ValueError(f"oversample: expected a share from 0 to less than 1, got {self.oversample!r}.")

    def build(self, factors: Factorization, scaling: Scaling) -> "Distilled":  # noqa: D102
        require_several(factors)
        teacher = MaskedNetwork(
            factors,
            scaling,
            components=self.components,
            width=self.width,
            finest=self.finest,
            draws=self.draws,
            deep=True,
        )
        return Distilled(factors, teacher, Student(factors, scaling, self.student_width))

    def train(self, network: "Distilled", task: TrainingTask[ScaledBatch]) -> History:
        """Train the teacher, ask it, and train the student on its answers."""
        teaching = replace(task, name=f"{task.name}: teacher")
        first = all_or_nothing(lambda: network.teach(teaching, self.oversample), task.name)
        lessons = self._lessons(network, task)
        held = max(1, round(self.validation_share * len(lessons)))
        settings = Training(epochs=self.student_epochs, learning_rate=_RATE, patience=self.student_epochs)
        name = f"{task.name}: student"
        learning = TrainingTask(lessons[held:], lessons[:held], settings, task.rng, task.progress, name)
        return joined([first, in_stages(network.student, partial(self.loss, network), learning)])

    def _lessons(self, network: "Distilled", task: TrainingTask[ScaledBatch]) -> Labelled:
        """Return rows in random order, and logarithms of the teacher's answers."""
        rng, rows = task.rng, task.train
        count = min(self.lessons, 4 * len(rows))
        base, donor = (torch.from_numpy(rng.integers(len(rows), size=count)) for _ in range(2))
        swapped = torch.from_numpy(rng.random((count, network.teacher.nodes)) < rng.random((count, 1)))
        swapped &= torch.from_numpy(rng.random((count, 1)) < self.recombined)
        batch = recombined(rows[base], rows[donor], swapped, network.owner)
        with torch.no_grad(), flushed_denormals():
            answers = torch.cat([network.answers(asked) for asked in batch.chunks(_ASKED)])
        return Labelled(batch, torch.log(answers.clamp(min=0.0) + _SMALLEST))

    def loss(self, network: "Distilled", batch: Labelled, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        """Return how far the student is from the teacher, in logarithms of nats."""
        return smooth_l1_loss(network.student(batch.batch), batch.label, beta=0.5)

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

    def teach(self, task: TrainingTask[ScaledBatch], oversample: float) -> History:
        """Train the teacher, in later stages on more of the rows that it predicts badly."""
        teacher = self.teacher
        teacher.observe(task.train, task.rng)
        with torch.no_grad():
            self.student.relations.observe(task.train)

        def loss(batch: ScaledBatch, generator: torch.Generator) -> Tensor:  # noqa: ARG001
            return -teacher.told(batch).log_prob(teacher.target(batch), teacher.real).mean()

        more = partial(more_of_the_worst, teacher, task, oversample) if oversample else None
        history = in_stages(teacher, loss, task, stages=GENTLE, rows=more)
        teacher.settle(task.validation)
        return history

    def answers(self, batch: ScaledBatch) -> Tensor:
        """Return what the teacher says of each pair, in nats, (B, P)."""
        teacher, nodes = self.teacher, self.student.relations.nodes
        full = teacher.told(batch).blurred(teacher.tolerance)
        every = [
            mixture_kl(full, teacher.redrawn(batch, node).blurred(teacher.tolerance), teacher.real)
            for node in range(nodes.count)
        ]
        return torch.stack(every)[nodes.source, nodes.target].T


def recombined(base: ScaledBatch, donor: ScaledBatch, swapped: Tensor, owner: Tensor) -> ScaledBatch:
    """Return states and actions with the nodes of the donor where ``swapped`` (B, N), and of the base elsewhere."""
    mine, theirs = (torch.cat([batch.state, batch.action], dim=1) for batch in (base, donor))
    mixed = torch.where(swapped[:, owner] & (owner >= 0), theirs, mine)
    return ScaledBatch(*torch.split(mixed, [base.state.shape[1], base.action.shape[1]], dim=1))
