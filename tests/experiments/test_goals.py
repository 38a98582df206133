"""Goal-conditioned RL runs at its smallest, its agent does what the paper's does, and its report is made."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("gymnasium_robotics")
pytest.importorskip("rich")

import torch

from counterpoint import Augmenter, Transitions
from counterpoint.goals import no_reward
from experiments import pages, rows
from experiments.goals import masks, report, run
from experiments.goals.agent import Normed
from experiments.goals.simulated import HIDDEN, Judge, Telling, observation_factors
from experiments.goals.tasks import TASKS

TINY = run.PRESETS["smoke"][3]


def test_presets_compare_seed_by_seed():
    configs = list(run.runs("laptop"))
    assert len({config.name for config in configs}) == len(configs) == len(run.ARMS) * 4
    assert [config.arm for config in configs[: len(run.ARMS)]] == list(run.ARMS)
    assert all(config.seed < run.PILOT for config in configs)
    paper = {config.task: config.steps for config in run.runs("paper")}
    assert paper == {"push": 1_000_000, "slide2": 10_000_000}
    assert [c.seed for c in run.runs("laptop", ["her"], ["slide2"], [900, 901])] == [900, 901]


@pytest.mark.parametrize("arm", ["her", "heuristic", "contacts", "larger", "added"])
def test_the_smoke_preset_runs(arm, tmp_path):
    config = replace(TINY, arm=arm)
    with rows.recording(tmp_path / f"{config.name}.jsonl", config) as write:
        run.work(config, write)
    measured = rows.read(tmp_path / f"{config.name}.jsonl")[1]
    assert [row["step"] for row in measured] == [200 * TASKS[config.task].held, 400 * TASKS[config.task].held]
    assert all(0 <= row["success"] <= 1 and -50 <= row["return"] <= 0 for row in measured)
    assert (measured[-1]["share"] > 0) == (arm not in ("her", "larger"))
    assert measured[-1]["share"] <= 0.75
    if arm == "contacts":
        assert measured[-1]["confirmed"] == 1


@pytest.mark.slow
def test_the_learned_mask_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(masks, "MODELS", tmp_path)
    mask = masks.learned("push", 600, 1)
    masks.learned.cache_clear()
    data = masks.play(TASKS["push"], 60, np.random.default_rng(0))
    assert mask(data.state, data.action).shape == (60, 3, 2)
    assert [path.suffix for path in tmp_path.glob("*.safetensors")] == [".safetensors"]


def recorded(task, rng, episodes=4):
    """Rows of half random, half aimed play, without goals, with what the simulator hides."""
    env, found = Telling(task.make(), islands=True), []
    for _ in range(episodes):
        seen, over = env.reset(seed=int(rng.integers(2**31)))[0]["observation"], False
        while not over:
            action = rng.uniform(-1, 1, 4)
            action[:3] = np.clip(5 * (seen[10:13] - seen[:3]) + action[:3], -1, 1)
            shown, reward, _, over, info = env.step(action.astype(np.float32))
            after = shown["observation"]
            found.append((seen, action.astype(np.float32), reward, after, info[HIDDEN]))
            seen = after
    state, action, reward, after, noise = (np.array(column) for column in zip(*found, strict=True))
    return Transitions(state, action, reward, after, np.zeros(len(state), bool), noise=noise)


@pytest.mark.parametrize("name", ["push-held", "slide2-one"])
def test_held_actions_are_one_step_of_recorder_simulator_and_masks(name, rng):
    task = TASKS[name]
    data = recorded(task, rng, episodes=12)
    assert len(data) == 12 * task.length
    assert np.abs(data.next_state[:, :3] - data.state[:, :3]).max() > 0.08  # no single step moves so far
    assert Judge(task).confirmed(data, atol=1e-9) == 1.0
    factors = observation_factors(task)
    resting = np.abs(data.state[:, 16:19]).max(axis=1) < 1e-3  # else it slides on by itself
    touched = resting & (np.abs(data.next_state[:, 10:13] - data.state[:, 10:13]).max(axis=1) > 0.01)
    found = masks.heuristic(task)(data.state, data.action)
    assert touched.any()
    assert found[touched, 0, 1].mean() > 0.8  # the rest is lifted by the first contact
    assert (found >= task.fetch.near(goal=False)(data.state, data.action)).all()
    made = Augmenter(factors, masks.heuristic(task), no_reward, pairs=400)(data, rng=rng).transitions
    assert len(made) > 20
    assert Judge(task).confirmed(made) > 0.9


def test_a_held_action_gives_what_its_last_step_gives():
    held, plain = TASKS["push-held"].make(), TASKS["push"].make()
    action = np.array([1, -1, -0.5, 0], np.float32)
    for env in (held, plain):
        env.reset(seed=5)
    for _ in range(3):
        expected = plain.step(action)
    shown, reward, terminated, truncated, _ = held.step(action)
    np.testing.assert_array_equal(shown["observation"], expected[0]["observation"])
    assert (reward, terminated, truncated) == expected[1:4]
    assert all(not held.step(action)[3] for _ in range(15))
    assert held.step(action)[3]


def test_play_touches_the_object():
    data = masks.play(TASKS["push"], 300, np.random.default_rng(0))
    moved = np.abs(data.next_state[:, 10:12] - data.state[:, 10:12]).max(axis=1)
    assert (moved > 1e-3).sum() > 10


def test_networks_may_see_distances_that_are_true_of_what_they_are_shown():
    task, recipe = TASKS["slide2"], replace(TINY.recipe, relative=True)
    env = task.make()
    buffer = run.buffer(replace(TINY, task="slide2", arm="her"))
    learner = run.agent(task, lambda: run.Telling(task.make(), islands=False), recipe, 0, **buffer)
    assert learner.get_vec_normalize_env() is None
    sight = learner.actor.features_extractor
    shown = {key: torch.tensor(value[None], dtype=torch.float32) for key, value in env.reset(seed=0)[0].items()}
    seen = sight(shown)
    assert seen.shape == (1, sight.features_dim)
    assert seen.abs().max() <= recipe.clip_observations
    reach, way = seen[0, -12:-6], seen[0, -6:]
    places = shown["achieved_goal"].reshape(2, 3)
    assert torch.allclose(0.1 * reach.reshape(2, 3), places - shown["observation"][:, :3], atol=1e-5)
    assert torch.allclose(0.1 * way, shown["desired_goal"][0] - shown["achieved_goal"][0], atol=1e-5)
    moved = {**shown, "observation": shown["observation"] + 0.02 * (torch.arange(34) < 3)}  # the gripper alone
    assert torch.allclose(sight(moved)[0, -12:-6] - reach, torch.full((6,), -0.2), atol=1e-4)
    assert torch.equal(sight(moved)[0, -6:], way)
    learner.learn(recipe.warm_up + 10)
    assert learner._n_updates > 0


def test_the_agent_is_the_papers():
    recipe = replace(TINY.recipe, epsilon=1.0, target_every=3, tau=1.0)
    config = replace(TINY, recipe=recipe, arm="her")
    task = TASKS["push"]
    learner = run.agent(task, lambda: run.Telling(task.make(), islands=False), recipe, 0, **run.buffer(config)).learn(
        250
    )
    assert sum(isinstance(module, Normed) for module in learner.actor.modules()) == 3
    batch = learner.replay_buffer.sample(64, env=learner._vec_normalize_env)
    assert batch.observations["observation"].abs().max() <= recipe.clip_observations
    with torch.no_grad():
        for parameter in learner.critic_target.parameters():
            parameter.fill_(100.0)  # values far above what is possible
        (value,) = learner.critic(batch.observations, batch.actions)
        assert learner._critic_loss(batch).item() == pytest.approx(value.square().mean().item(), rel=1e-4)  # target 0
    _, stored = learner._sample_action(0, learner.action_noise, 1)
    assert np.abs(stored).max() <= 1
    first = learner.critic.state_dict()
    learner._n_updates = 0
    for update in range(1, 4):
        learner.train(1, 32)
        same = all(
            torch.equal(learner.critic_target.state_dict()[k], v) for k, v in learner.critic.state_dict().items()
        )
        assert same == (update == 3)
    assert first.keys() == learner.critic_target.state_dict().keys()


def test_random_actions_may_go_for_the_nearest_object():
    task, shares = TASKS["slide2-held"], []
    for aims in (0.0, 1.0):
        recipe = replace(TINY.recipe, aims=aims, random_until=300, warm_up=300, relative=True)
        buffer = run.buffer(replace(TINY, task="slide2-held", arm="her"))
        learner = run.agent(task, lambda: run.Telling(task.make(), islands=False), recipe, 0, **buffer).learn(300)
        seen, after = (
            getattr(learner.replay_buffer, name)["observation"][:300, 0]
            for name in ("observations", "next_observations")
        )
        moved = np.abs(after - seen)[:, [*task.objects[0], *task.objects[1]]].max(axis=1) > 1e-3
        shares.append(moved.mean())
        actions = learner.replay_buffer.actions[:300, 0]
        assert np.abs(actions).max() <= 1
        assert actions.std(axis=0).min() > 0.2
    assert shares[1] > 2 * shares[0]


def written(folder, arm, seed, speed):
    config = replace(TINY, arm=arm, seed=seed)
    with rows.recording(folder / "laptop" / f"{config.name}.jsonl", config) as write:
        for step in range(5_000, 150_001, 5_000):
            made = {"share": 0.75, "counterfactuals": 10 * step, "acceptance": 0.9, "making": 1.0}
            success = min(1.0, speed * step / 100_000)
            write(step=step, success=success, **{"return": -10.0}, **made, seconds=100.0, evaluating=50.0)


def test_the_report_says_how_many_steps_each_arm_takes(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    docs, folder = tmp_path / "docs", tmp_path / "runs"
    docs.mkdir()
    (docs / "goals.md").write_text(f"# Words\n{pages.BEGIN}\nold\n{pages.END}\nmore words\n")
    with pytest.raises(SystemExit, match="no finished runs"):
        report.write(folder, docs)
    for seed in (0, 1):
        written(folder, "her", seed, 0.8)
        written(folder, "heuristic", seed, 1.6)
    written(folder, "her", 900, 0.0)  # a pilot
    report.write(folder, docs)
    page = (docs / "goals.md").read_text()
    assert "| push | her | 2 | 150k | 1.00 ± 0.00 | – | – | 65 ± 0 | 95 ± 0 | 115 ± 0 |" in page
    assert "| push | heuristic | half: about twice as sample efficient | 0.5" in page
    assert page.startswith("# Words")
    assert page.endswith("more words\n")
    assert (docs / "goals.png").stat().st_size > 10_000
    assert "heuristic" in capsys.readouterr().out
