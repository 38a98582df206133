"""The training loop: early stopping, interruption, determinism, and no traces left behind."""

import random
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from counterpoint import progress
from counterpoint.learn.training.fitting import Training, TrainingTask, flushed_denormals, minimise, seeded, split
from counterpoint.learn.training.scaling import ScaledBatch
from tests.learn.examples import FACTORS, Linear, make_data


def line_task(rng, **settings):
    """Find the slope of a line."""
    x = torch.from_numpy(rng.normal(size=(200, 1)).astype(np.float32))
    batch = ScaledBatch(x, x[:, :0], 3 * x, 2 * x)
    return TrainingTask(batch[:150], batch[150:], Training(**settings), rng, progress=False)


def squared(network):
    return lambda batch, generator: (network(batch.state) - batch.next_state).square().mean()


def line(rng):
    with seeded(rng):
        return nn.Linear(1, 1)


def test_it_learns(rng):
    network = line(rng)
    history = minimise(network, squared(network), line_task(rng, epochs=60, batch_size=20, learning_rate=0.1))
    assert network.weight.item() == pytest.approx(3.0, abs=0.01)
    assert history.stopped in {"epochs", "patience"}
    assert history.validation[history.best] == min(history.validation) < 1e-3
    assert len(history.train) == len(history.validation)
    assert not network.training


def scripted(network, values, on_epoch=None):
    """A validation loss that follows a script; the network's weight counts the epochs."""
    calls = iter(values)

    def validate(batch, generator):
        value = next(calls)
        if isinstance(value, type):
            raise value
        return torch.tensor(value)

    return validate


def counting(network):
    """A training loss under which plain gradient steps move the weight on, a little every epoch."""
    return lambda batch, generator: -network.weight.sum() + 0 * network.bias.sum()


def test_early_stopping_keeps_the_best_weights(rng):
    network = line(rng)
    start = network.weight.item()
    task = line_task(rng, epochs=50, patience=3, batch_size=150, learning_rate=1.0)
    script = scripted(network, [5.0, 4.0, 2.0, 3.0, 2.5, 2.0, 1.0])
    history = minimise(network, counting(network), task, validate=script)
    assert history.validation == (5.0, 4.0, 2.0, 3.0, 2.5, 2.0)
    assert (history.best, history.stopped) == (2, "patience")
    assert network.weight.item() == pytest.approx(start + 3, abs=1e-3)


def test_an_interrupt_keeps_the_best_weights_with_a_warning(rng):
    network = line(rng)
    start = network.weight.item()
    task = line_task(rng, epochs=50, batch_size=150, learning_rate=1.0)
    script = scripted(network, [5.0, 1.0, 3.0, KeyboardInterrupt])
    with pytest.warns(UserWarning, match="interrupted after 3 epochs"):
        history = minimise(network, counting(network), task, validate=script)
    assert history.stopped == "interrupted"
    assert history.validation == (5.0, 1.0, 3.0)
    assert len(history.train) == 3
    assert network.weight.item() == pytest.approx(start + 2, abs=1e-3)


def test_an_interrupt_before_anything_was_learned_is_passed_on(rng):
    network = line(rng)
    with pytest.raises(KeyboardInterrupt):
        minimise(network, counting(network), line_task(rng), validate=scripted(network, [KeyboardInterrupt]))


def test_an_interrupted_fit_returns_an_estimator(rng):
    class Impatient(Linear):
        def validation_loss(self, network, batch, generator):
            network.calls = getattr(network, "calls", 0) + 1
            if network.calls > 2:
                raise KeyboardInterrupt
            return super().validation_loss(network, batch, generator)

    data = make_data(rng)
    with pytest.warns(UserWarning, match="Impatient: interrupted after 2 epochs; the best weights are kept"):
        fitted = Impatient(epochs=10).fit(data, FACTORS, rng=rng, progress=False)
    assert fitted.scores(data.state, data.action).shape == (300, 4, 3)


def test_divergence_is_explained(rng):
    network = line(rng)
    with pytest.raises(ValueError, match="diverged in epoch 1 .*smaller learning_rate than 0.001"):
        minimise(network, counting(network), line_task(rng), validate=scripted(network, [1.0, float("nan")]))


def test_the_same_seed_gives_the_same_weights(rng):
    data = make_data(rng)
    one, two, other = (
        Linear().fit(data, FACTORS, rng=np.random.default_rng(seed), progress=False) for seed in (1, 1, 2)
    )
    assert one.learned().history == two.learned().history
    assert torch.equal(one.learned().network.weight, two.learned().network.weight)
    assert not torch.equal(one.learned().network.weight, other.learned().network.weight)


class Shared(nn.Module):
    """Many rows share one weight through an index, as factors of one type do."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 64))


def test_several_threads_give_the_same_weights_every_time(rng):
    x = torch.from_numpy(rng.normal(size=(64, 1)).astype(np.float32))

    def loss(network):
        index = torch.arange(20_000) % 2
        noise = torch.linspace(-1, 1, 20_000 * 64).reshape(20_000, 64).sin()
        return lambda batch, generator: (network.weight[index] * noise - batch.state.mean()).square().mean()

    def fitted():
        network = Shared()
        task = TrainingTask(
            ScaledBatch(x, x[:, :0], x, x), ScaledBatch(x, x[:, :0], x, x), Training(epochs=3), np.random.default_rng(0)
        )
        minimise(network, loss(network), replace(task, progress=False))
        return network.weight.detach()

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first, *others = (fitted() for _ in range(6))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(first, other) for other in others)
    assert not torch.are_deterministic_algorithms_enabled()


def test_no_global_randomness_is_touched_or_used(rng):
    data = make_data(rng)

    def states():
        return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002

    before = states()
    one = Linear().fit(data, FACTORS, rng=np.random.default_rng(1), progress=False)
    assert states() == before
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        two = Linear().fit(data, FACTORS, rng=np.random.default_rng(1), progress=False)
    assert torch.equal(one.learned().network.weight, two.learned().network.weight)


def test_random_losses_draw_from_the_generator_and_validation_repeats(rng):
    network = line(rng)
    drawn = []

    def validate(batch, generator):
        drawn.append(torch.rand(1, generator=generator).item())
        return squared(network)(batch, generator)

    minimise(network, squared(network), line_task(rng, epochs=3), validate=validate)
    assert len(set(drawn)) == 1


def test_denormals_are_flushed_inside_and_not_afterwards():
    def product():
        return (torch.tensor(1e-30) * torch.tensor(1e-10)).item()

    assert product() > 0
    with flushed_denormals():
        assert product() == 0
        with flushed_denormals():
            pass
        assert product() == 0
    assert product() > 0


def test_warm_up_and_clipping(rng):
    network = line(rng)
    start = network.weight.item()
    task = line_task(rng, epochs=1, batch_size=150, learning_rate=1.0, warm_up=9)
    minimise(network, counting(network), task)
    assert network.weight.item() == pytest.approx(start + 0.1, abs=1e-4)
    minimise(network, counting(network), replace(task, training=Training(epochs=1, clip=1e-3)))


def test_progress_goes_to_the_error_stream_as_a_bar_or_as_one_line_of_a_log(rng, capsys, monkeypatch):
    data = make_data(rng)
    Linear().fit(data, FACTORS, rng=rng, progress=False)
    assert capsys.readouterr() == ("", "")
    Linear().fit(data, FACTORS, rng=rng)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "Linear: 3 epochs at most\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "EVERY", 0)
    Linear().fit(data, FACTORS, rng=rng)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Linear [" in err
    assert "validation" in err


def test_whole_episodes_are_held_out(rng):
    data = make_data(rng, rows=300, episode=np.repeat(np.arange(30), 10))
    train, validation = split(data, 0.2, rng)
    assert len(validation) == 60
    assert not set(data.episode[train]) & set(data.episode[validation])
    assert sorted([*train, *validation]) == list(range(300))


@pytest.mark.parametrize("episode", [None, np.repeat([3, 7], 150)])
def test_rows_are_held_out_where_there_are_few_episodes(rng, episode):
    train, validation = split(make_data(rng, rows=300, episode=episode), 0.2, rng)
    assert (len(train), len(validation)) == (240, 60)
    assert len(np.intersect1d(train, validation)) == 0


def test_given_validation_data_is_used_and_everything_else_trains(rng):
    data = make_data(rng)
    fitted = Linear().fit(data, FACTORS, rng=rng, validation=make_data(rng, rows=120), progress=False)
    np.testing.assert_allclose(fitted.learned().scaling.state.mean, data.state.mean(axis=0), rtol=1e-5)
