from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint import coda, independent
from counterpoint.scm import StructuralCausalModel, counterfactual, do, independent_in_union, restrict
from counterpoint.scm import independent as apart
from counterpoint.worlds import (
    NonstationaryMP,
    Pong,
    Room,
    Sprites,
    StationaryMP,
    TwoArms,
    Zoo,
    as_scm,
    collect,
    uniform_policy,
)
from counterpoint.worlds.causal_model import state_and_action

seeds = st.integers(0, 2**32)


def hashed(name, salt, sources, noisy, values=3):
    """An arbitrary but fixed function of some nodes, and of the noise."""

    def equation(v, u):
        total = np.full(len(u), float(salt))
        for k, source in enumerate(sources):
            total = total * 7.0 + (k + 2) * np.asarray(v[source])
        return np.floor(np.abs(np.sin(total + noisy * u)) * 1e4) % values

    return equation


def random_model(seed, most=3):
    """Three or four nodes of two or three values, sparse equations, noise in some of them."""
    rng = np.random.default_rng(seed)
    state = ["a", "b", "c"][: rng.integers(2, 4)]
    nodes = [*state, "go"]
    ranges = {name: range(int(rng.integers(2, most + 1))) for name in nodes}
    equations, noise = {}, {}
    for name in state:
        sources = [node for node in nodes if rng.random() < 0.45]
        noisy = bool(rng.random() < 0.5)
        equations[name] = hashed(name, rng.integers(1, 99), sources, noisy, int(rng.integers(1, 4)))
        if noisy:
            noise[name] = np.arange(2)
    return StructuralCausalModel.over(ranges, equations, noise), rng


def rows(model):
    return [{name: values[k] for name, values in model.domain.items()} for k in range(len(model))]


def outcome(model, name, point, u):
    return model.equations[name]({k: np.array([v]) for k, v in point.items()}, np.array([float(u)])).tolist()[0]


def brute_force(model, chosen, i, j):
    """Look at every two points that agree in all but one group: does the other group's future differ?"""
    points = [point for point, kept in zip(rows(model), chosen, strict=True) if kept]
    for group, other in ((i, j), (j, i)):
        for one, two in product(points, points):
            if any(one[name] != two[name] for name in model.domain if name not in other):
                continue
            for name in group:
                if name in model.equations:
                    for u in model.noise.get(name, [0]):
                        if outcome(model, name, one, u) != outcome(model, name, two, u):
                            return False
    return True


@given(seeds)
@settings(max_examples=40)
def test_the_graph_is_structurally_minimal(seed):
    model, _ = random_model(seed)
    points = rows(model)
    for a, source in enumerate(model.nodes):
        for b, target in enumerate(model.equations):
            different = any(
                outcome(model, target, one, u) != outcome(model, target, {**one, source: value}, u)
                for one in points
                for value in set(model.domain[source].tolist())
                for u in model.noise.get(target, [0])
            )
            assert model.graph[a, b] == different


@given(seeds)
@settings(max_examples=60)
def test_a_local_graph_is_never_denser(seed):
    """The paper's lemma and corollary, for nested subspaces of any shape."""
    model, rng = random_model(seed)
    larger = rng.random(len(model)) < 0.8
    smaller = (rng.random(len(model)) < 0.7)[larger]
    outer = model.restrict(larger)
    inner = restrict(outer, smaller)
    assert (inner.graph <= outer.graph).all()
    assert (outer.graph <= model.graph).all()


@given(seeds)
@settings(max_examples=150)
def test_proposition_one_in_both_directions(seed):
    model, rng = random_model(seed)
    first, second = (rng.random(len(model)) < rng.choice([0.1, 0.3, 0.6]) for _ in range(2))
    order = rng.permutation(model.nodes)
    cut = rng.integers(1, len(order))
    i, j = tuple(order[:cut]), tuple(order[cut:])
    decided = independent_in_union(model, first, second, i, j)
    assert decided == brute_force(model, first | second, i, j)
    assert decided == apart(model.restrict(first | second), i, j)


def test_both_answers_of_the_proposition_come_up():
    found = []
    for seed in range(40):
        model, rng = random_model(seed)
        first, second = rng.random((2, len(model))) < 0.3
        found.append(independent_in_union(model, first, second, ["a"], [n for n in model.nodes if n != "a"]))
    assert 5 < sum(found) < 35


def icy():
    """The paper's icy room: what moves keeps its speed on ice and loses it on a dry floor."""
    return StructuralCausalModel.over(
        {"floor": (0, 1), "speed": (0, 1, 2), "ball": (0, 1, 2)},
        {
            "floor": lambda v, u: v["floor"],
            "speed": lambda v, u: np.where(v["floor"] == 1, v["speed"], 0),
            "ball": lambda v, u: v["ball"],
        },
    )


def test_the_icy_room_is_the_counterexample():
    model = icy()
    dry, ice = (lambda v: v["floor"] == 0), (lambda v: v["floor"] == 1)
    i, j = ("speed",), ("floor", "ball")
    assert apart(model.restrict(dry), i, j)
    assert apart(model.restrict(ice), i, j)
    assert not independent_in_union(model, dry, ice, i, j)  # the equations differ
    assert independent_in_union(model, dry, ice, ("ball",), ("floor", "speed"))
    slow = model.restrict(lambda v: v["speed"] == 0)  # what lies still lies still on either floor
    assert independent_in_union(slow, dry, ice, i, j)


def test_the_room_of_the_worlds_is_the_same_case():
    model = as_scm(Room())
    dry, ice = (lambda v: v["room"][:, 0] < 0.5), (lambda v: v["room"][:, 0] > 0.5)
    i, j = ("puck", "push"), ("room", "ball")
    assert apart(model.restrict(dry), i, j)
    assert not independent_in_union(model, dry, ice, i, j)


@given(seeds)
@settings(max_examples=60)
def test_a_local_model_answers_as_the_global_one_with_fewer_equations(seed):
    model, rng = random_model(seed)
    local = model.restrict(rng.random(len(model)) < 0.5)
    if len(local) < 2:
        return
    names = rng.choice(model.nodes, size=rng.integers(1, len(model.nodes) + 1), replace=False)
    now, later = local.sample(20, rng)
    others = local.sample(20, rng)[0]
    changed = {**now, **{name: others[name] for name in names}}
    kept = np.asarray(local.inside(changed))
    if not kept.any():
        return
    now, later, changed = ({k: v[kept] for k, v in each.items()} for each in (now, later, changed))
    changes = {name: changed[name] for name in names}
    here, everywhere = (counterfactual(each, now, later, changes) for each in (local, model))
    assert set(here.equations) <= set(everywhere.equations)
    both = here.sure & everywhere.sure
    assert (everywhere.sure <= here.sure).all()
    for name in model.equations:
        assert np.array_equal(np.asarray(here.after[name])[both], np.asarray(everywhere.after[name])[both])


def test_fewer_equations_are_counted():
    model = icy()
    ask = {"before": {"floor": np.array([1]), "speed": np.array([0]), "ball": np.array([2])}}
    ask["after"], ask["changes"] = ask["before"], {"floor": np.array([0])}
    assert counterfactual(model, **ask).equations == ("floor", "speed")
    local = model.restrict(lambda v: v["speed"] == 0)
    assert counterfactual(local, **ask).equations == ("floor",)
    with pytest.raises(ValueError, match="changes: some values lie outside the subspace of this local model"):
        counterfactual(local, ask["before"], ask["after"], {"speed": np.array([2])})


@given(seeds)
@settings(max_examples=40)
def test_evaluations_are_counted_as_they_happen(seed):
    """Once the graphs are known, a query evaluates the equations of the changed nodes' children and no other."""
    model, rng = random_model(seed)
    calls = []

    def counting(name, equation):
        return lambda v, u: calls.append(name) or equation(v, u)

    counted = replace(model, equations={name: counting(name, f) for name, f in model.equations.items()})
    local = counted.restrict(rng.random(len(model)) < 0.5)
    if len(local) < 2:
        return
    now, later = local.sample(9, rng)
    name = str(rng.choice(model.nodes))
    changes = {name: local.sample(9, rng)[0][name]}
    kept = np.asarray(local.inside({**now, **changes}))
    if not kept.any():
        return
    now, later, changes = ({k: v[kept] for k, v in each.items()} for each in (now, later, changes))
    taken = []
    for asked in (counted, local):
        counterfactual(asked, now, later, changes)  # finds the children
        calls.clear()
        answer = counterfactual(asked, now, later, changes)
        assert set(calls) == set(answer.equations)
        assert len(calls) == answer.evaluations
        taken.append(answer.evaluations)
    assert taken[1] <= taken[0]  # the local model needs no more than the global one


def test_abduction_keeps_the_noise_that_fits():
    model = StructuralCausalModel.over(
        {"x": (0, 1, 2)}, {"x": lambda v, u: np.where(v["x"] == 2, 0, v["x"] + u)}, {"x": np.array([0, 5])}
    )
    answer = counterfactual(model, {"x": np.array([0, 0, 2])}, {"x": np.array([0, 5, 0])}, {"x": np.array([1, 1, 1])})
    assert answer.after["x"].tolist()[:2] == [1, 6]
    assert answer.sure.tolist() == [True, True, False]  # from 2 one cannot see the noise
    told = counterfactual(model, {"x": np.array([2])}, {"x": np.array([0])}, {"x": np.array([1])}, {"x": np.array([5])})
    assert told.after["x"].tolist() == [6]
    never = counterfactual(model, {"x": np.array([0])}, {"x": np.array([3])}, {"x": np.array([1])})
    assert not never.sure.any()


def test_do_cuts_edges():
    model = icy()
    assert do(model, {"floor": 1}).graph.astype(int).tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 1]]
    held = do(model, {"speed'": 2})
    assert held.graph.astype(int).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert set(held.sample(9, np.random.default_rng(0))[1]["speed"]) == {2}


@given(seeds)
@settings(max_examples=30)
def test_intervening_on_a_node_removes_its_edges_and_no_other(seed):
    model, rng = random_model(seed)
    node = str(rng.choice(model.nodes))
    value = model.domain[node][0]
    changed = model.do({node: value})
    row = model.nodes.index(node)
    assert not changed.graph[row].any()
    assert (changed.graph <= model.graph).all()


@pytest.mark.parametrize("world", [NonstationaryMP(), Room(), Room(hidden=True)], ids=repr)
def test_a_world_is_one(world):
    model = as_scm(world, values=3)
    masks = world.mask(*state_and_action(model.domain, world.factors))
    assert model.nodes == world.factors.names
    assert (model.graph <= masks.any(axis=0)).all()  # no influence that the exact masks never show
    assert set(model.sample(50, np.random.default_rng(0))[1]) == set(world.factors.state)


def test_the_global_graph_of_sprites_is_dense_and_a_local_one_is_not():
    """A click goes to the nearest sprite, so each has a say in whether the others are clicked, but not far away."""
    world = Sprites(2, noise_std=0.0)
    model = as_scm(world, values=6)
    assert model.graph.all()

    def second_alone(v):
        return ~world.mask(*state_and_action(v, world.factors))[:, [0, 1, 2], [1, 0, 1]].any(axis=1)

    local = model.restrict(second_alone)
    assert len(local) > 20
    assert local.graph.astype(int).tolist() == [[1, 0], [0, 1], [1, 0]]


def nodes_of(data, factors):
    found = {name: data.state[:, list(own)] for name, own in factors.state.items()}
    return found | {name: data.action[:, list(own)] for name, own in factors.action.items()}


def asked(model, base, proposal, swapped, factors):
    """What would have happened to the base, had the swapped nodes (and the noise) been the proposal's."""
    new = nodes_of(proposal, factors)
    return counterfactual(
        model,
        nodes_of(base, factors),
        {name: base.next_state[:, list(own)] for name, own in factors.state.items()},
        {name: new[name] for name, inside in zip(factors.names, swapped, strict=True) if inside},
        {name: proposal.noise[:, list(own)] for name, own in factors.noise.items()},
    )


def test_what_algorithm_one_accepts_is_exactly_what_the_local_model_answers():
    """For every proposal: it is accepted if and only if the submodel answers, and then the answer is its next state."""
    world = Sprites(3)
    factors, rng = world.factors, np.random.default_rng(0)
    data = collect(world, uniform_policy(world), 400, rng)
    base, donor = (data[rng.integers(len(data), size=400)] for _ in range(2))
    proposal, nodes, valid = coda(base, donor, world.mask, factors, rng=rng)
    everywhere = as_scm(world, values=4)
    found = {"accepted": 0, "rejected": 0, "fewer": 0, "wrong": 0}
    for swapped in np.unique(nodes[nodes.any(axis=1)], axis=0):

        def uncrossed(v, swapped=swapped):
            mask = world.mask(*state_and_action(v, factors))
            return independent(mask, np.tile(swapped, (len(mask), 1)))

        local = everywhere.restrict(uncrossed)
        crossing = swapped[:, None] != swapped[: factors.n]
        assert not (local.graph & crossing).any()
        rows = (nodes == swapped).all(axis=1)
        good, bad = np.flatnonzero(rows & valid), np.flatnonzero(rows & ~valid)
        for row in bad:
            with pytest.raises(ValueError, match="changes: some values lie outside the subspace"):
                asked(local, base[row], proposal[row], swapped, factors)
            told = asked(everywhere, base[row], proposal[row], swapped, factors)
            after = {name: proposal.next_state[[row]][:, list(own)] for name, own in factors.state.items()}
            found["wrong"] += any(not np.array_equal(told.after[name], after[name]) for name in after)
        found["rejected"] += len(bad)
        if not len(good):
            continue
        answer = asked(local, base[good], proposal[good], swapped, factors)
        for name, own in factors.state.items():
            assert np.array_equal(answer.after[name], proposal.next_state[good][:, list(own)])
        assert set(answer.equations) <= set(np.array(factors.names)[swapped])
        found["accepted"] += len(good)
        found["fewer"] += len(answer.equations) < factors.n
    assert min(found.values()) > 5  # each case comes up, and what is rejected is wrong more often than not
    assert found["wrong"] > 0.5 * found["rejected"]


@pytest.mark.parametrize("world", [StationaryMP(), Pong(), Sprites(4), TwoArms(), Zoo(3), Zoo(11)], ids=repr)
def test_any_world_is_one(world):
    """Equations give what the world's step gives, node by node, with the noise that each owns."""
    model, rng = as_scm(world, values=2), np.random.default_rng(1)
    now, later = model.sample(40, rng)
    state, action = state_and_action(now, world.factors)
    noise = world.noise(40, rng)
    after = world.step(state, action, noise)
    for name, own in world.factors.state.items():
        mine = noise[:, list(world.factors.noise[name])] if name in world.factors.noise else None
        assert np.array_equal(model.evaluate(name, now, mine), after[:, list(own)])
    assert set(later) == set(world.factors.state)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: StructuralCausalModel({"a": [0]}, {"b": None}), "it has no b"),
        (lambda m: StructuralCausalModel({"a": [0], "b": [0, 1]}, {"a": None}), "one value per point"),
        (lambda m: m.restrict(np.ones(3, bool)), r"subspace: expected booleans of shape \(18,\)"),
        (lambda m: m.do({"wall": 1}), "no node is called wall; the nodes are floor, speed, ball"),
        (lambda m: m.do({"wall'": 1}), "wall has no equation"),
        (lambda m: independent_in_union(m, np.ones(18, bool), np.ones(18, bool), "ball", "ball"), "common node"),
    ],
)
def test_mistakes_are_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call(icy())
