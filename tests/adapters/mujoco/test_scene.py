"""Pictures of rows, put back into the simulator."""

import gymnasium
import numpy as np
import pytest

from counterpoint.adapters.mujoco import SceneDrawing, collect, factorization
from counterpoint.report.pictures import picture
from counterpoint.worlds.fetch.pictures import from_above
from tests.adapters.mujoco.conftest import Balls


@pytest.fixture(scope="module")
def drawn():
    env = gymnasium.make("counterpoint/FetchPushDisentangled-v0", render_mode="rgb_array", width=120, height=120)
    return SceneDrawing(env), collect(env, None, 60, rng=np.random.default_rng(0))


def views(scene, data, *rows):
    return [scene(data.state[row], data.action[row], None, data.noise[row]) for row in rows]


def test_a_row_is_drawn_as_it_was(drawn):
    scene, data = drawn
    first, other, again = views(scene, data, 0, 55, 0)
    assert first.dtype == np.uint8
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_report_gives_hidden_state_to_those_who_ask(drawn):
    scene, data = drawn
    factors = factorization(scene.env)
    mask = np.eye(factors.n + factors.m, factors.n, dtype=bool)
    assert 'src="data:image/png' in picture(scene, data[0], mask, "a scene")


def test_without_opengl_another_drawing_is_asked(drawn, monkeypatch):
    scene, data = drawn

    def fails():
        raise ImportError("no OpenGL here")

    other = SceneDrawing(scene.env, from_above)
    monkeypatch.setattr(other.env, "render", fails)
    (plain,) = views(other, data, 0)
    assert other.plain
    assert plain.shape[0] == 120
    other.otherwise = None
    with pytest.raises(RuntimeError, match="draws nothing here"):
        views(other, data, 0)


def test_an_environment_that_draws_nothing_says_so():
    class Silent(Balls):
        def render(self):
            return None

    assert not SceneDrawing(Silent()).draws
