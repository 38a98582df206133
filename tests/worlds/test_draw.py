import subprocess
import sys

import numpy as np
import pytest

from counterpoint.worlds.draw import AGENT, BALL, COLOURS, OPPONENT, draw_pong, draw_sprites
from counterpoint.worlds.draw_arms import draw_two_arms
from counterpoint.worlds.place import TARGETS
from counterpoint.worlds.pong import Pong
from counterpoint.worlds.sprites import Sprites

SIZE = 120
CORNERS = np.array([[0.2, 0.2, 0, 0], [0.2, 0.8, 0, 0], [0.8, 0.2, 0, 0], [0.8, 0.8, 0, 0]])  # sprites at rest


def mask_with(*edges, n=4):
    mask = np.eye(n + 1, n, dtype=bool)
    for source, target in edges:
        mask[source, target] = True
    return mask


def changed(first, second):
    """Where two pictures differ, (k, 2) as x and y on the canvas of the sprites."""
    rows, columns = np.nonzero((first != second).any(axis=2))
    size = len(first)
    return np.column_stack([(columns + 0.5) / size * 1.2 - 0.1, 1.1 - (rows + 0.5) / size * 1.2])


def colour_at(picture, x, y):
    """The colour at a point of the canvas of the sprites."""
    size = len(picture)
    return picture[int((1.1 - y) / 1.2 * size), int((x + 0.1) / 1.2 * size)].astype(int)


def middle(picture, colour, tolerance=20):
    """The mean row and column of the pixels of about one colour."""
    return np.argwhere(np.abs(picture.astype(int) - colour).sum(axis=2) < tolerance).mean(axis=0)


def near(points, x, y, radius):
    return np.hypot(points[:, 0] - x, points[:, 1] - y) < radius


def test_pictures_are_pixels_of_the_size_asked_for():
    for size in (16, 64, 101):
        for picture in (draw_sprites(CORNERS.ravel(), size=size), draw_pong(np.zeros(12), size=size)):
            assert (picture.shape[0], picture.shape[2], picture.dtype) == (size, 3, np.uint8)
    assert draw_sprites(CORNERS.ravel()).shape == (256, 256, 3)


def test_sprites_are_where_they_are_and_up_is_up():
    picture = draw_sprites(CORNERS.ravel(), size=SIZE)
    for (x, y, _, _), colour in zip(CORNERS, COLOURS, strict=False):
        for dx, dy in ((0, 0), (0.05, 0.05), (-0.05, 0.05)):
            assert np.abs(colour_at(picture, x + dx, y + dy) - colour).max() < 40
        for dx, dy in ((0.1, 0), (0, 0.1), (0.1, -0.1)):
            assert np.abs(colour_at(picture, x + dx, y + dy) - 255).max() < 5


def test_any_number_of_sprites_can_be_drawn():
    for n in (1, 3, 11):
        world = Sprites(n)
        state = world.reset(1, np.random.default_rng(0))
        mask = world.mask(state, np.zeros((1, 2)))
        assert draw_sprites(state[0], mask=mask[0], action=np.zeros(2), size=32).shape == (32, 32, 3)


def test_a_velocity_is_an_arrow_in_its_direction():
    still, moving = CORNERS.copy(), CORNERS.copy()
    moving[0, 2:] = 0.08, 0.08
    points = changed(draw_sprites(still.ravel(), size=SIZE), draw_sprites(moving.ravel(), size=SIZE))
    assert len(points)
    assert near(points, 0.28, 0.28, 0.15).all()
    assert points.max() > 0.34


def test_targets_belong_to_the_last_sprites_and_fill_when_reached():
    away, there = CORNERS.copy(), CORNERS.copy()
    away[3, :2] = 0.2, 0.5
    there[3, :2] = 0.75, 0.75
    plain, drawn = (draw_sprites(away.ravel(), targets=targets, size=SIZE) for targets in (None, TARGETS[-1:]))
    points = changed(plain, drawn)
    assert near(points, 0.75, 0.75, 0.27).all()
    assert (
        colour_at(drawn, 0.75, 0.9).min()
        > colour_at(draw_sprites(there.ravel(), targets=TARGETS[-1:], size=SIZE), 0.75, 0.9).min()
    )
    assert len(changed(plain, draw_sprites(away.ravel(), targets=TARGETS[-1:], size=SIZE, tolerance=0.1))) < len(points)


def test_a_click_is_a_cross():
    state = CORNERS.ravel()
    points = changed(draw_sprites(state, size=SIZE), draw_sprites(state, action=np.array([0.0, 0.2]), size=SIZE))
    assert len(points)
    assert near(points, 0.5, 0.6, 0.04).all()


def test_a_graph_without_edges_draws_nothing():
    state, action = CORNERS.ravel(), np.array([0.1, 0.2])
    given = {"targets": TARGETS, "action": action, "size": SIZE}
    np.testing.assert_array_equal(draw_sprites(state, **given), draw_sprites(state, mask=mask_with(), **given))
    alone = np.eye(4, 3, dtype=bool)
    pictures = (draw_pong(np.zeros(12), action=action, mask=mask, size=SIZE) for mask in (None, alone))
    np.testing.assert_array_equal(*pictures)


def test_an_edge_is_drawn_between_its_two_bodies_and_nowhere_else():
    sprites = CORNERS.copy()
    sprites[1, :2] = 0.28, 0.25  # touching sprite 0
    plain = draw_sprites(sprites.ravel(), size=SIZE)
    one, back, both = (
        draw_sprites(sprites.ravel(), mask=mask_with(*edges), size=SIZE)
        for edges in ([(0, 1)], [(1, 0)], [(0, 1), (1, 0)])
    )
    for picture in (one, back, both):
        points = changed(plain, picture)
        assert len(points)
        assert near(points, 0.24, 0.225, 0.21).all()
    assert len(changed(one, back))
    assert len(changed(one, both))
    assert len(changed(back, both))


def test_an_arrow_leaves_its_source_and_stops_at_the_rim_of_its_target():
    plain = draw_sprites(CORNERS.ravel(), size=SIZE)
    for source, target in ((0, 3), (3, 0), (1, 0), (2, 3)):
        points = changed(plain, draw_sprites(CORNERS.ravel(), mask=mask_with((source, target)), size=SIZE))
        assert near(points, *CORNERS[source, :2], 0.03).any()
        assert not near(points, *CORNERS[target, :2], 0.06).any()
        assert near(points, *CORNERS[target, :2], 0.11).any()


def test_the_action_points_at_the_sprite_acted_on():
    action = np.array([0.0, 0.0])
    plain = draw_sprites(CORNERS.ravel(), action=action, size=SIZE)
    for sprite, (x, y) in enumerate(CORNERS[:, :2]):
        points = changed(plain, draw_sprites(CORNERS.ravel(), action=action, mask=mask_with((4, sprite)), size=SIZE))
        assert len(points)
        assert near(points, (0.5 + x) / 2, (0.5 + y) / 2, 0.25).all()
    on_top = np.array([-0.6, -0.6])  # a click into the middle of sprite 0 is seen, too
    plain, drawn = (
        draw_sprites(CORNERS.ravel(), action=on_top, mask=mask, size=SIZE) for mask in (None, mask_with((4, 0)))
    )
    assert near(changed(plain, drawn), 0.2, 0.2, 0.2).all()
    assert len(changed(plain, drawn))


def test_an_action_that_is_not_given_has_no_arrow():
    state = CORNERS.ravel()
    np.testing.assert_array_equal(
        draw_sprites(state, size=SIZE), draw_sprites(state, mask=mask_with((4, 2)), size=SIZE)
    )


def test_the_bodies_of_pong_are_where_they_are():
    state = np.zeros(12)
    picture = draw_pong(state, size=SIZE)
    width, height = picture.shape[1], picture.shape[0]
    agent, opponent, ball = (middle(picture, colour) for colour in (AGENT, OPPONENT, BALL))
    assert agent[1] < ball[1] < opponent[1]
    assert ball[1] == pytest.approx(width / 2, abs=1)
    assert agent[1] + opponent[1] == pytest.approx(width, abs=2)
    state[[1, 5, 9]] = 0.9, -0.9, 0.5  # y
    moved = draw_pong(state, size=SIZE)
    for colour, before, up in ((AGENT, agent, 0.99), (OPPONENT, opponent, -0.99), (BALL, ball, 0.55)):
        assert before[0] - middle(moved, colour)[0] == pytest.approx(up / 2.75 * height, abs=1.5)


def test_a_contact_of_pong_is_drawn_where_the_ball_is():
    world = Pong()
    state = np.zeros((1, 12), np.float32)
    state[0, 8], state[0, 10] = -1.25 / 2.1, -1.0  # at the agent's paddle, and moving towards it
    action = np.zeros((1, 2))
    mask = world.mask(state, action, np.zeros((1, 2)))[0]
    assert mask[0, 2]
    assert mask[2, 0]
    bodies_only = mask.copy()
    bodies_only[3] = False
    plain, drawn, whole = (
        draw_pong(state[0], action=action[0], mask=graph, size=SIZE) for graph in (None, bodies_only, mask)
    )
    points = np.argwhere((plain != drawn).any(axis=2))
    ball = middle(plain, BALL, 40)
    assert len(points)
    assert np.hypot(*(points - ball).T).max() < 0.4 / 2.75 * SIZE
    assert (drawn != whole).any()


def test_the_action_of_pong_is_a_joystick():
    left, right = (draw_pong(np.zeros(12), action=np.array([x, 0.0]), size=SIZE) for x in (-1.0, 1.0))
    none = draw_pong(np.zeros(12), size=SIZE)
    dark = [
        np.argwhere((picture != none).any(axis=2) & (picture.sum(axis=2) < 200)).mean(axis=0)
        for picture in (left, right)
    ]
    assert dark[0][1] < dark[1][1]
    assert min(d[0] for d in dark) > 0.8 * SIZE


def test_drawing_changes_nothing_and_repeats_itself():
    rng = np.random.default_rng(0)
    world = Sprites()
    state, action = world.reset(1, rng), np.zeros((1, 2))
    mask = world.mask(state, action)
    given = [array.copy() for array in (state, action, mask)]
    pictures = [draw_sprites(state[0], mask=mask[0], action=action[0], targets=TARGETS) for _ in range(2)]
    np.testing.assert_array_equal(*pictures)
    assert all(map(np.array_equal, given, (state, action, mask)))


@pytest.mark.parametrize("state", [np.zeros(15), np.zeros(0), np.zeros((1, 16))])
def test_states_of_another_shape_are_refused(state):
    with pytest.raises(ValueError, match=r"state: expected one state, shape \(4n,\), got .* use state\[0\]"):
        draw_sprites(state)
    with pytest.raises(ValueError, match=r"state: expected one state, shape \(12,\), got"):
        draw_pong(state)


def test_other_bad_input_is_refused():
    with pytest.raises(ValueError, match="state: expected finite numbers, got nan"):
        draw_sprites(np.full(16, np.nan))
    with pytest.raises(ValueError, match=r"mask: expected bool of shape \(5, 4\), .* got bool of shape \(4, 4\)"):
        draw_sprites(CORNERS.ravel(), mask=np.eye(4, dtype=bool))
    with pytest.raises(ValueError, match=r"mask: expected bool of shape \(4, 3\), .* got float64"):
        draw_pong(np.zeros(12), mask=np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"action: expected a pair of numbers, shape \(2,\), got"):
        draw_pong(np.zeros(12), action=np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"action: expected a pair of numbers, shape \(2,\), got"):
        draw_sprites(CORNERS.ravel(), action=np.array([np.nan, 0.0]))
    with pytest.raises(ValueError, match=r"targets: expected shape \(k, 2\) with k at most 4, got \(5, 2\)"):
        draw_sprites(CORNERS.ravel(), targets=np.zeros((5, 2)))
    for size in (0, 15, 64.0, True):
        with pytest.raises((TypeError, ValueError), match="size: expected a number of pixels, 16 or more, got"):
            draw_sprites(CORNERS.ravel(), size=size)


def test_without_pillow_the_error_says_what_to_install():
    code = """
import sys
sys.modules["PIL"] = None
import numpy as np
from counterpoint.worlds.draw import draw_pong
try:
    draw_pong(np.zeros(12))
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install counterpoint-rl[gymnasium]" in done.stdout


class TestTwoArms:
    apart = np.array([0.3, 0.7, 0, 0, 0.8, 0.2, 0, 0])

    def test_the_robot_has_the_colour_of_its_state(self):
        for colour in ((0.9, 0.1, 0.1), (0.1, 0.2, 0.8)):
            picture = draw_two_arms(self.apart, colour=np.array(colour), size=SIZE)
            for x, y in ((0.3, 0.7), (0.8, 0.2)):
                assert np.abs(colour_at(picture, x, y) - 255 * np.array(colour)).max() < 40

    def test_colours_change_the_robot_alone(self):
        red, blue = (draw_two_arms(self.apart, colour=np.array(c), size=SIZE) for c in ((1, 0, 0), (0, 0, 1)))
        points = changed(red, blue)
        for (sx, sy), (x, y) in (((0.0, 0.5), (0.3, 0.7)), ((1.0, 0.5), (0.8, 0.2))):
            way = np.linspace([sx, sy], [x, y], 50)
            points = points[np.linalg.norm(points[:, None] - way, axis=2).min(axis=1) > 0.08]
        assert not len(points)

    def test_goal_motors_and_graph_are_drawn_where_they_are(self):
        plain = draw_two_arms(self.apart, size=SIZE)
        assert near(
            changed(plain, draw_two_arms(self.apart, goal=np.array([0.5, 0.9]), size=SIZE)), 0.5, 0.9, 0.08
        ).all()
        pushed = changed(plain, draw_two_arms(self.apart, action=np.array([1.0, 0, 0, 0]), size=SIZE))
        assert near(pushed, 0.06, 0.5, 0.12).all()
        touching = np.array([0.5, 0.5, 0, 0, 0.55, 0.5, 0, 0])
        graph = draw_two_arms(touching, mask=np.ones((4, 2), bool), size=SIZE)
        assert len(changed(draw_two_arms(touching, size=SIZE), graph)) > 50

    def test_mistakes_are_explained(self):
        with pytest.raises(ValueError, match="colour: expected red, green and blue between 0 and 1"):
            draw_two_arms(self.apart, colour=np.array([2.0, 0, 0]))
        with pytest.raises(ValueError, match=r"mask: expected bool of shape \(4, 2\)"):
            draw_two_arms(self.apart, mask=np.ones((3, 2), bool))
