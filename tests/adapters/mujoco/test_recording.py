"""What is recorded, and that the simulator can be put back into it."""

import importlib

import gymnasium
import mujoco
import numpy as np
import pytest

import counterpoint.adapters.mujoco
from counterpoint import files
from counterpoint.adapters.mujoco import Recorder, ReplayFailed, Simulator, collect, factorization, require_version
from counterpoint.adapters.mujoco.anatomy import anatomy
from counterpoint.adapters.mujoco.contacts import from_words, to_words, words
from counterpoint.adapters.mujoco.packing import fingerprint
from counterpoint.checks import CheckFailed, audit, check_counterfactuals
from tests.adapters.mujoco.conftest import TWO_BALLS, Balls


class Remembers(Balls):
    """A controller that adds its last action to the next."""

    last = 0.0

    def step(self, action):
        pushed = action + self.last
        self.last = action
        return super().step(pushed)


def test_recording_changes_nothing_of_what_is_shown(push):
    def played(env):
        env.action_space.seed(0)
        shown = [env.reset(seed=5)[0]["observation"]]
        return np.array(shown + [env.step(env.action_space.sample())[0]["observation"] for _ in range(10)])

    assert np.array_equal(played(push), played(Recorder(push)))


def test_rows_belong_to_episodes(rolled):
    assert np.array_equal(rolled.episode, np.repeat(np.arange(10), 20))
    assert np.array_equal(rolled.step, np.tile(np.arange(20), 10))
    same = rolled.episode[1:] == rolled.episode[:-1]
    assert np.array_equal(rolled.state[1:][same], rolled.next_state[:-1][same])


def test_every_real_step_comes_out_to_the_bit(push, pushed):
    found = audit(pushed, Simulator(push, workers=1))
    assert found.exact == 1.0
    assert found.confirmed == 1.0
    assert found.columns.max() < 1e-15


@pytest.mark.parametrize("name", ["FetchPickAndPlace-v4", "counterpoint/Slide2-v0", "Pusher-v5"])
def test_so_it_does_in_other_environments(name):
    env = gymnasium.make(name)
    data = collect(env, None, 30, rng=np.random.default_rng(0))
    assert Simulator(env, workers=1).replay(data).same == 1.0


@pytest.mark.filterwarnings("ignore:.*share an object:UserWarning")
def test_so_it_does_in_the_kitchen():
    quiet = {"robot_noise_ratio": 0.0, "object_noise_ratio": 0.0}
    env = gymnasium.make("FrankaKitchen-v1", **quiet)
    data = collect(env, None, 20, rng=np.random.default_rng(0))
    assert Simulator(env, workers=1).replay(data).same == 1.0
    names = factorization(env).names
    assert "kettle" in names
    assert "knob 1+Burner 1" in names
    shown = data.replace(noise=None)  # the observation is the full state, but for the warm start
    assert Simulator(env, workers=1).replay(shown).near == 1.0


def test_hidden_state_travels_with_its_factor(push, pushed):
    factors, inside = factorization(push), anatomy(push)
    assert sum(map(len, factors.noise.values())) == pushed.noise.shape[1] == inside.packing.width + inside.tail
    assert len(factors.noise["object0"]) == 7 + 6 + 6  # position, velocity, warm start


def test_files_keep_the_hidden_state(push, pushed, tmp_path):
    files.write(tmp_path / "push.npz", pushed[:20], factors=factorization(push))
    back = files.read(tmp_path / "push.npz")
    assert np.array_equal(back.transitions.noise, pushed.noise[:20])
    assert back.factors.noise == factorization(push).noise
    assert audit(back.transitions, Simulator(push, workers=1)).exact == 1.0


def test_a_wrong_row_is_found(push, pushed):
    lies = pushed[:20].next_state.copy()
    lies[7, 3] += 1e-3
    wrong = pushed[:20].replace(next_state=lies)
    simulator = Simulator(push, real=pushed, workers=1)
    assert audit(wrong, simulator).wrong.tolist() == [7]
    with pytest.raises(CheckFailed, match="row 7, off by 0.001; columns 3 differ most"):
        check_counterfactuals(wrong, simulator)
    assert audit(wrong, simulator, atol=simulator.tolerance({"object0": 1e-2})).confirmed == 1.0
    assert audit(wrong, simulator, atol=simulator.tolerance({"robot0:base_link": 1e-2})).wrong.tolist() == [7]


def test_worker_processes_give_the_same_bits(rolled):
    alone, many = Simulator(Balls, workers=1), Simulator(Balls, workers=2)
    rows = np.tile(np.arange(len(rolled)), 3)[:450]
    part = rolled[rows]
    part = part.replace(action=part.action + 1e-6 * np.arange(450)[:, None])  # as many different steps
    done = []
    many.progress = done.append
    assert np.array_equal(alone(part.state, part.action, part.noise), many(part.state, part.action, part.noise))
    assert done[-1] == 450
    assert len(many.bench._pool) == 2
    many.close()


def test_rows_that_differ_in_their_goal_alone_are_simulated_once(push, pushed):
    goal = list(factorization(push).state["goal"])
    other = pushed.state.copy()
    other[:, goal] += 0.1
    both = np.concatenate([pushed.state, other])
    twice = [np.concatenate([each, each]) for each in (pushed.action, pushed.noise)]
    simulator, done = Simulator(push, workers=1, at_least=0.0), []
    simulator.progress = done.append
    ends = simulator(both, *twice)
    assert np.array_equal(ends[:, goal], both[:, goal])
    rest = np.setdiff1d(np.arange(both.shape[1]), goal)
    assert np.array_equal(*np.split(ends[:, rest], 2))
    assert done[-1] == len(both)


def test_stale_kinematics_are_noticed_with_their_remedy(rng):
    env = Balls(show="stale")
    recorder = Recorder(env, fresh=False)
    old = collect(recorder, None, 60, rng=rng)
    with pytest.raises(ReplayFailed, match=r"one substep old \(record with Recorder\(env, fresh=True\)"):
        audit(old, Simulator(env, real=old, workers=1))
    fresh = collect(Balls(show="stale"), None, 60, rng=rng)
    assert audit(fresh, Simulator(env, real=fresh, workers=1)).exact == 1.0


def test_state_outside_of_the_simulator_is_noticed(rng):
    env = Remembers()
    with pytest.raises(ReplayFailed, match="keeps state of its own outside of MuJoCo"):
        Simulator(env, workers=1)(*(np.zeros((1, k)) for k in (4, 1)), collect(env, None, 1, rng=rng).noise)


def test_it_is_noticed_too_where_the_real_rows_follow_each_other(rng):
    """In their own order, all but the first come out: the environment goes through its own states once more."""
    env = Remembers()
    data = collect(env, None, 200, rng=rng)
    simulator = Simulator(env, real=data, sample=200, workers=1)
    assert (simulator._step(data.state, data.action, data.noise) == data.next_state).all(axis=1).mean() > 0.99
    with pytest.raises(ReplayFailed, match="does not repeat real steps"):
        audit(data, simulator)


def test_a_recording_of_another_model_is_refused(balls, rolled):
    heavy = Balls(xml=TWO_BALLS.replace('mass="1"', 'mass="2"'))
    assert fingerprint(heavy.model) != fingerprint(balls.model)
    with pytest.raises(ValueError, match="was recorded with another model"):
        audit(rolled, Simulator(heavy, workers=1))


def test_a_recording_of_another_environment_is_refused(push, rolled):
    with pytest.raises(ValueError, match="state: expected the 31 columns"):
        audit(rolled, Simulator(push, workers=1))


def test_missing_hidden_state_is_refused(push, pushed):
    with pytest.raises(ValueError, match="the observation shows only 5 of 43 positions and velocities"):
        audit(pushed.replace(noise=None), Simulator(push, workers=1))
    with pytest.raises(ValueError, match="expected the 76 columns"):
        audit(pushed.replace(noise=pushed.noise[:, :10].copy()), Simulator(push, workers=1))
    with pytest.raises(ValueError, match="needs float64"):
        audit(pushed.replace(noise=pushed.noise.astype(np.float32)), Simulator(push, workers=1))


def test_forces_that_were_not_expected_are_refused_or_recorded(rng):
    class Wind(Balls):
        def step(self, action):
            self.data.xfrc_applied[1, 0] = 0.1 * (self.data.time > 0.2)
            return super().step(action)

    env = Wind()
    data = collect(env, None, 30, rng=rng)  # tried out long enough to see the wind
    assert Simulator(env, workers=1).replay(data).same == 1.0

    class Late(Balls):
        windy = False

        def step(self, action):
            self.data.qfrc_applied[0] = 0.1 * self.windy
            return super().step(action)

    env = Late()
    recorder = Recorder(env)
    env.windy = True
    recorder.reset(seed=0)
    recorder.step(np.zeros(1))
    with pytest.raises(ValueError, match=r"qfrc_applied: the environment changes it.*everything=True"):
        recorder.step(np.zeros(1))
    whole = collect(Recorder(env, everything=True), None, 10, rng=rng)
    assert Simulator(env, workers=1).replay(whole).same == 1.0


def test_bad_arguments(push, rng):
    with pytest.raises(ValueError, match="size: expected"):
        collect(push, None, 0, rng=rng)
    with pytest.raises(gymnasium.error.ResetNeeded):
        Recorder(Balls()).step(np.zeros(1))
    with pytest.raises(ValueError, match="no step was taken"):
        Recorder(Balls()).transitions()
    with pytest.raises(ValueError, match="at_least: expected a share"):
        Simulator(push, at_least=2)
    with pytest.raises(ValueError, match="workers: expected at least 1"):
        Simulator(push, workers=0)


@pytest.mark.parametrize("version", ["3.3.5", "2.3.7", "3.12.0", "4.0.0"])
def test_other_versions_of_mujoco_are_refused(version):
    with pytest.raises(ImportError, match=f"got {version}"):
        require_version(version)
    require_version("3.3.6")
    require_version(mujoco.__version__)


def test_the_version_is_looked_at_on_import(monkeypatch):
    monkeypatch.setattr(mujoco, "__version__", "3.2.7")
    with pytest.raises(ImportError, match="got 3.2.7"):
        importlib.reload(counterpoint.adapters.mujoco)


def test_ties_fit_into_numbers(rng):
    for groups in (1, 2, 3, 9, 12):
        ties = np.eye(groups, dtype=bool)[None].repeat(20, axis=0) | (rng.random((20, groups, groups)) < 0.2)
        ties |= ties.transpose(0, 2, 1)
        numbers = np.array([to_words(each) for each in ties])
        assert numbers.shape == (20, words(groups))
        assert np.array_equal(from_words(numbers, groups), ties)
