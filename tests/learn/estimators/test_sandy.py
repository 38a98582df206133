"""Both SANDy estimators: orientation above all, then shapes, settings and use as a mask."""

import numpy as np
import pytest
import torch

from counterpoint import Augmenter, Factorization
from counterpoint.checks import check_mask_fn
from counterpoint.learn import SandyMixture, SandyTransformer
from counterpoint.learn.training.scaling import Scaling
from counterpoint.masks import Threshold
from tests.examples import first_column
from tests.learn.examples import EDGES, ONE_WAY, make_data, one_way

MIXTURE = SandyMixture(experts=1, width=16, epochs=60, batch_size=50, learning_rate=1e-2)

TRANSFORMER = SandyTransformer(width=24, epochs=30, batch_size=50, learning_rate=3e-3, embedding="marked")

TINY = [SandyMixture(width=8, epochs=1), SandyTransformer(width=8, epochs=1)]

SHAPES = pytest.mark.parametrize("estimator", TINY, ids=["mixture", "transformer"])


@pytest.fixture(scope="module", params=[MIXTURE, TRANSFORMER], ids=["mixture", "transformer"])
def learned(request):
    data = one_way(np.random.default_rng(0))
    return data, request.param.fit(data, ONE_WAY, rng=np.random.default_rng(1), progress=False)


def test_a_one_way_edge_is_found_in_its_own_direction(learned):
    """The trap of the original code, whose transformer's mask was transposed."""
    data, fitted = learned
    scores = fitted.scores(data.state, data.action).mean(axis=0)
    names = ONE_WAY.names
    others = [(i, j) for i in range(4) for j in range(3) if i != j and (names[i], names[j]) not in EDGES]
    strongest = max(scores[i, j] for i, j in others)
    if isinstance(fitted, SandyMixture):  # training decides where else a transformer looks
        for source, target in EDGES:
            assert scores[names.index(source), names.index(target)] > 2 * strongest, (source, target, scores)
    assert scores[0, 1] > 1.5 * scores[1, 0], scores


def test_a_transformer_scores_by_where_targets_look(rng):
    """A network that looks only at the token with the largest first feature: that one is everybody's source."""
    factors = Factorization.blocks(state={"a": 2, "b": 2, "c": 2})
    data = make_data(rng, factors=factors)
    estimator = SandyTransformer(width=2, blocks=1, layers=1, identity=False, epochs=1)
    fitted = estimator.fit(data, factors, rng=rng, progress=False)
    query, key = fitted.learned().network.blocks[0].query_key
    with torch.no_grad():
        for layer, weight, bias in (
            (query[0], [[0.0, 0.0]] * 2, [1.0, 0.0]),
            (key[0], [[50.0, 0.0], [0.0, 0.0]], [0.0, 0.0]),
        ):
            layer.weight.copy_(torch.tensor(weight))
            layer.bias.copy_(torch.tensor(bias))
    scaled = fitted.learned().scaling.batch(data.state, data.action).state.numpy()
    largest = scaled[:, ::2].argmax(axis=1)
    clear = np.ptp(np.sort(scaled[:, ::2], axis=1)[:, 1:], axis=1) > 0.2
    scores = fitted.scores(data.state, data.action)
    expected = np.repeat(np.eye(3)[largest][:, :, None], 3, axis=2)
    np.testing.assert_allclose(scores[clear], expected[clear], atol=1e-3)


@SHAPES
def test_ragged_factors_and_scattered_columns(rng, estimator):
    factors = Factorization(state={"a": (4, 1), "b": (0,)}, action={"u": (1,), "v": (0, 2)}, derived=(2, 3))
    data = make_data(rng, factors=factors)
    fitted = estimator.fit(data, factors, rng=rng, progress=False)
    assert fitted.scores(data.state, data.action).shape == (300, 4, 2)


@SHAPES
def test_derived_columns_are_not_looked_at(rng, estimator):
    factors = Factorization(state={"a": (0,), "b": (1,)}, derived=(2,))
    data = make_data(rng, factors=factors)
    fitted = estimator.fit(data, factors, rng=rng, progress=False)
    other = data.state.copy()
    other[:, 2] = rng.normal(size=300)
    np.testing.assert_array_equal(fitted.scores(data.state, data.action), fitted.scores(other, data.action))


@SHAPES
def test_no_actions(rng, estimator):
    factors = Factorization.blocks(state={"a": 1, "b": 2})
    data = make_data(rng, factors=factors)
    fitted = estimator.fit(data, factors, rng=rng, progress=False)
    assert fitted.scores(data.state, data.action).shape == (300, 2, 2)


@SHAPES
def test_the_identity_is_added_once(rng, estimator):
    data = one_way(rng, rows=200)
    fitted = estimator.fit(data, ONE_WAY, rng=rng, progress=False)
    plain = type(fitted)(width=8, epochs=1, identity=False, fitted=fitted.fitted)
    added = fitted.scores(data.state, data.action) - plain.scores(data.state, data.action)
    np.testing.assert_allclose(added, np.broadcast_to(np.eye(4, 3), added.shape), atol=1e-5)


@SHAPES
def test_the_same_seed_gives_the_same_scores(rng, estimator):
    data = one_way(rng, rows=200)
    fits = [estimator.fit(data, ONE_WAY, rng=np.random.default_rng(3), progress=False) for _ in range(2)]
    first, second = (fitted.scores(data.state, data.action) for fitted in fits)
    np.testing.assert_array_equal(first, second)


@SHAPES
def test_it_is_a_mask_inside_an_augmenter(rng, estimator):
    data = one_way(rng, rows=200)
    fitted = estimator.fit(data, ONE_WAY, rng=rng, progress=False)
    middle = float(np.median(fitted.scores(data.state, data.action)))
    for tau in (middle, 0.99):
        check_mask_fn(Threshold(fitted, tau), data, ONE_WAY)
    made = Augmenter(ONE_WAY, Threshold(fitted, 1e9), first_column, pairs=10)(data, rng=rng)
    assert len(made)
    self_edges_only = Threshold(fitted, 0.99)(data.state, data.action)
    assert self_edges_only.diagonal(axis1=1, axis2=2).all()


class Told(SandyMixture):
    """Is told the law of ``stretched`` instead of learning it."""

    def prediction(self, network, batch):
        scaling = self.learned().scaling
        now = scaling.original(batch)
        then = scaling.batch(now.state.numpy(), now.action.numpy(), stretched(now.state.numpy()))
        return then.target(self.target)[:, network.outputs]


def stretched(state):
    return 100.0 + state * np.array([1e-2, 1.0, 50.0], state.dtype)


@pytest.mark.parametrize("target", ["next", "change"])
def test_predictions_are_in_the_units_of_the_data(rng, target):
    factors = Factorization(state={"a": (2, 0), "b": (1,)}, action={"u": (0,)})
    data = make_data(rng, factors=factors)
    data = data.replace(next_state=stretched(data.state))
    fitted = Told(width=8, epochs=1, target=target).fit(data, factors, rng=rng, progress=False)
    np.testing.assert_allclose(fitted.predict(data.state, data.action), data.next_state, rtol=1e-4)


def test_predictions_are_good(learned):
    data, fitted = learned
    error = (fitted.predict(data.state, data.action) - data.next_state).std(axis=0)
    assert (error < 0.4 * data.next_state.std(axis=0)).all(), error


@SHAPES
def test_predictions_do_not_depend_on_their_company(rng, estimator):
    """More rows than are predicted at once, and none at all."""
    data = one_way(rng, rows=5000)
    fitted = estimator.fit(data[:200], ONE_WAY, rng=rng, progress=False)
    state, action = data.state.astype(np.float32), data.action.astype(np.float32)
    together = fitted.predict(state, action)
    apart = np.concatenate([fitted.predict(state[:4500], action[:4500]), fitted.predict(state[4500:], action[4500:])])
    np.testing.assert_allclose(together, apart, rtol=1e-4, atol=1e-5)
    assert together.dtype == np.float32
    assert fitted.predict(state[:0], action[:0]).shape == (0, 4)


def test_derived_columns_are_not_predicted(rng):
    factors = Factorization(state={"a": (0,), "b": (1,)}, derived=(2,))
    data = make_data(rng, factors=factors)
    fitted = TINY[0].fit(data, factors, rng=rng, progress=False)
    with pytest.raises(ValueError, match=r"state columns \(2,\) are derived, and only factors are predicted"):
        fitted.predict(data.state, data.action)


def test_attention_scores_are_shares(rng):
    """Each target looks somewhere: over its sources the scores sum to one."""
    data = one_way(rng, rows=200)
    fitted = SandyTransformer(width=8, epochs=1, identity=False).fit(data, ONE_WAY, rng=rng, progress=False)
    np.testing.assert_allclose(fitted.scores(data.state, data.action).sum(axis=1), 1.0, atol=1e-5)


def test_the_product_of_maps_is_the_jacobian_of_a_linear_stack(rng):
    """With values that pass their input on, a token's influence on another is its share of attention."""
    network = SandyTransformer(width=4).build(Factorization.blocks(state={"a": 4, "b": 4, "c": 4}), None)
    for block in network.blocks:
        block.value = torch.nn.Identity()
    network.output = torch.nn.Identity()
    scaling = Scaling.of(make_data(rng, factors=Factorization.blocks(state={"a": 12})))
    batch = scaling.batch(rng.normal(size=(1, 12)), np.zeros((1, 0)))
    prediction, looked = network(batch)
    tokens = network.tokens.pack(batch.state, batch.action)
    torch.testing.assert_close(prediction, looked @ tokens)


def test_the_bounds_are_bounds(rng):
    """No expert's Jacobian exceeds the product of its absolute weights."""
    network = SandyMixture(experts=2, width=8).build(ONE_WAY, None)
    point = torch.from_numpy(rng.normal(size=(5,)).astype(np.float32))

    def expert(x, k):
        for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
            x = (torch.relu(x) if layer else x) @ weight[k] + bias[k, 0]
        return x

    for k in range(2):
        jacobian = torch.autograd.functional.jacobian(lambda x, k=k: expert(x, k), point)
        assert (jacobian.T.abs() <= network.bounds()[k] + 1e-6).all()


@pytest.mark.parametrize("pooling", ["max", "sum"])
def test_columns_are_pooled_by_factor(pooling):
    network = SandyMixture(width=4).build(ONE_WAY, None)
    columns = torch.arange(20.0).reshape(1, 5, 4)
    pooled = network.pool(columns, pooling)
    assert pooled.shape == (1, 4, 3)
    assert pooled[0, 0, 0] == (5.0 if pooling == "max" else 0 + 1 + 4 + 5)
    assert pooled[0, 3, 1] == 18.0
    assert pooled[0, 0, 2] == (7.0 if pooling == "max" else 3 + 7)


@pytest.mark.parametrize(
    "settings",
    [{"embedding": e, "target": t, "query_key": q, "layers": layers, "blocks": blocks} for e, t, q, layers, blocks in
     [("padded", "change", "shared", 3, 1), ("typed", "next", "separate", 1, 3), ("blocks", "next", "shared", 2, 2)]],
)  # fmt: skip
def test_transformer_settings_run(rng, settings):
    data = one_way(rng, rows=200)
    fitted = SandyTransformer(width=8, epochs=1, sparsity=0.1, **settings).fit(data, ONE_WAY, rng=rng, progress=False)
    assert np.isfinite(fitted.scores(data.state, data.action)).all()


def test_mixture_settings_run(rng):
    data = one_way(rng, rows=200)
    settings = {"sparsity_form": "log", "sparsity_on": "experts", "pooling": "sum", "target": "change"}
    fitted = SandyMixture(width=8, epochs=1, **settings).fit(data, ONE_WAY, rng=rng, progress=False)
    assert np.isfinite(fitted.scores(data.state, data.action)).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SandyMixture(experts=0), "experts: expected a whole number, 1 or more, got 0"),
        (lambda: SandyMixture(pooling="mean"), "pooling: expected 'max' or 'sum', got 'mean'"),
        (lambda: SandyTransformer(blocks=1.5), "blocks: expected a whole number"),
        (lambda: SandyTransformer(target="delta"), "target: expected 'next' or 'change', got 'delta'"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
