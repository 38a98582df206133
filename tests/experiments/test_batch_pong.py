"""Batch RL on Pong runs at its smallest; rows are judged by the world, and the report puts ours beside theirs."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("rich")

import torch
from stable_baselines3.common.utils import LinearSchedule

from counterpoint import Augmenter, Transitions, files
from counterpoint.core.transitions import ORIGINS
from counterpoint.report import write_report
from counterpoint.worlds import Pong, pong_policy
from experiments import pages, rows
from experiments.batch_pong import agent, data, peers, report, run, truth
from experiments.batch_pong.__main__ import main

TINY = run.PRESETS["smoke"][3]
SOURCE = replace(TINY.source, rows=3000)  # the same as of the smoke preset
WORLD = SOURCE.world


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    before, data.CACHE = data.CACHE, tmp_path_factory.mktemp("cache")
    yield
    data.CACHE = before


def usual(real):
    return (real.next_state - real.state).std(axis=0, dtype=np.float64)


def test_presets_give_complete_comparisons_first():
    configs = list(run.runs("laptop"))
    assert [c.name for c in configs[:3]] == ["25k_real_0", "25k_3C-exact_0", "25k_3C-identity_0"]
    assert len(configs) == len({c.name for c in configs}) == 3 * 3 * len(run.FIRST)
    sources = [(c.source.seed, c.source.rows) for c in configs]
    assert sources == sorted(sources)
    paper = next(run.runs("paper"))
    assert (paper.updates, paper.batch_size, paper.width, paper.games) == (500_000, 1000, 128, 10)
    assert len(list(run.runs("paper", ("real",), (25_000,)))) == 10


def test_other_agents_learn_from_the_same_rows():
    first, other = ({c.name: c for c in run.runs(preset)} for preset in ("laptop", "again"))
    assert set(other) < set(first)
    assert all(other[name].source == first[name].source for name in other)
    assert not {c.agent_seed for c in other.values()} & {c.agent_seed for c in first.values()}


def test_the_smoke_preset_runs_and_finished_runs_are_skipped(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(rows, "ProcessPoolExecutor", InThisProcess)
    main(["run", "--preset", "smoke", "--folder", str(tmp_path), "--processes", "1"])
    found = {r.arm: r for r in report.finished(tmp_path / "smoke")}
    assert set(found) == set(run.PRESETS["smoke"][0])
    head, lines = rows.read(tmp_path / "smoke" / "3k_3C1M-ours_0.jsonl")
    assert head["commit"]
    assert head["config"]["source"]["rows"] == 3000
    assert [line["step"] for line in lines if "success" in line] == [20, 40, 60]
    assert {line["origin"]: line["made"] for line in lines if "origin" in line} == {
        "model": 3000,
        "counterfactual": 9000,
    }
    main(["run", "--preset", "smoke", "--folder", str(tmp_path), "--processes", "1"])
    assert "5 runs, 5 finished already" in capsys.readouterr().out


class InThisProcess:
    """Stands in for a pool of processes, so that coverage and the cache of this test are seen."""

    def __init__(self, *settings, **more):
        del settings, more

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def submit(self, function, *arguments):
        from concurrent.futures import Future

        done = Future()
        done.set_result(function(*arguments))
        return done


@pytest.mark.parametrize(
    "arm",
    ["real", "dyna", "mbpo", "1C-transformer", "5C-exact", "3C-identity", "3C1M-ours", "3D-diffusion", "3N-noise"],
)
def test_every_arm_adds_the_rows_that_it_promises(arm):
    made = data.added(SOURCE, arm)
    sizes = {origin: len(part) / SOURCE.rows for origin, part in made.items()}
    kind = arm.partition("-")[0]
    expected = {} if arm == "real" else {"model": 3} if kind in ("3D", "3N") else {"model": 1}
    if "C" in kind:
        expected = {"counterfactual": int(kind[0])} | ({"model": 1} if kind.endswith("1M") else {})
    assert sizes == expected
    assert all(np.isfinite(part.next_state).all() for part in made.values())


def test_an_enlarged_dataset_says_of_each_row_where_it_comes_from(tmp_path):
    """In Parquet, in the report on its counterfactuals, and in what is made from it."""
    pytest.importorskip("pyarrow")
    made = data.added(SOURCE, "3C1M-exact")
    whole = data.enlarged(SOURCE, made)
    assert whole.origins() == {"real": 3000, "counterfactual": 9000, "model": 3000}
    files.write(tmp_path / "pong.parquet", whole, factors=WORLD.factors)
    again = files.read(tmp_path / "pong.parquet").transitions
    assert np.array_equal(again.origin, whole.origin)
    assert set(np.abs(again.state[again.origin == ORIGINS.index("real")] - data.real(SOURCE).state).ravel()) == {0.0}
    pool = data.enlarged(SOURCE, {"model": made["model"]})
    augmenter = Augmenter(WORLD.factors, data.mask(SOURCE, "exact"), WORLD.reward)
    rng = np.random.default_rng(0)
    found = augmenter.fill(pool, 500, rng=rng)
    assert found.transitions.origins() == {"counterfactual": 500}
    page = write_report(tmp_path / "report.html", pool, found, augmenter, rng=rng)
    assert "3,000 real, 3,000 model" in page.read_text()


def test_the_world_confirms_what_the_exact_mask_makes_and_not_what_the_others_do():
    real = data.real(SOURCE)
    told = {
        arm: truth.judged(data.added(SOURCE, arm)[origin], WORLD, usual(real))
        for arm, origin in (("3C-exact", "counterfactual"), ("3C-identity", "counterfactual"), ("mbpo", "model"))
    }
    assert told["3C-exact"]["confirmed"] == told["3C-exact"]["near"] == 1
    labelled = data.added(replace(SOURCE, rewards="world"), "3C-exact")
    known = truth.judged(labelled["counterfactual"], WORLD, usual(real))
    assert known["confirmed"] == known["reward_right"] == 1 > told["3C-exact"]["reward_right"]
    assert told["3C-identity"]["confirmed"] < 0.7
    assert told["mbpo"]["confirmed"] < 0.01
    assert told["3C-exact"]["touched_right"] in (None, 1)


def test_touches_of_the_paddle_are_counted_and_judged_by_themselves():
    real = data.real(SOURCE)
    told = truth.judged(real, WORLD, usual(real))
    assert 0 < told["touched"] < 0.1
    assert told["touched_right"] == 1
    agent, ball = (list(WORLD.factors.state).index(name) for name in ("agent", "ball"))
    touched = WORLD.mask(real.state, real.action)[:, agent, ball]
    after = np.where(touched[:, None], real.next_state + 0.01, real.next_state)
    assert truth.judged(real.replace(next_state=after), WORLD, usual(real))["touched_right"] == 0
    assert truth.judged(real[~touched], WORLD, usual(real))["touched_right"] is None


def test_recorded_rows_are_made_once():
    before = data.real(SOURCE)
    stamp = (SOURCE.folder / "real.npz").stat().st_mtime_ns
    after = data.real(SOURCE)
    assert (SOURCE.folder / "real.npz").stat().st_mtime_ns == stamp
    assert all(np.array_equal(column, getattr(after, name)) for name, column in before.columns())
    assert replace(SOURCE, seed=1).folder != SOURCE.folder != replace(SOURCE, tau=0.1).folder


def test_the_best_aim_explains_real_rows_that_lost_theirs():
    """The servo is bounded, so an aim that does the same is found, though it may not be the same one."""
    real = data.real(SOURCE)
    told = truth.judged(truth.with_best_aim(real.replace(noise=None), WORLD), WORLD, usual(real))
    assert told["near"] > 0.95
    assert told["reward_right"] == 1
    broken = real.replace(noise=None, next_state=real.next_state + np.float32(0.5))
    assert truth.judged(truth.with_best_aim(broken, WORLD), WORLD, usual(real))["near"] == 0


def test_states_beyond_the_limits_of_joints_are_judged_too():
    real = data.real(SOURCE)
    state = real.state.copy()
    state[:, 4] = 1.7
    assert 0 <= truth.judged(real.replace(state=state), WORLD, usual(real))["near"] <= 1


def test_noise_on_states_is_small_and_on_copies_of_real_rows():
    real = data.real(SOURCE)
    made = peers.with_noise(real, 500, np.random.default_rng(0))
    nearest = np.abs(made.state[:, None] - real.state).max(axis=2).min(axis=1)
    assert (nearest < 0.01).all()
    assert (nearest > 0).any()
    assert made.noise is None


def test_a_diffusion_model_draws_what_it_was_shown():
    """Two clusters of rows: the model finds both, and what goes with each."""
    rng = np.random.default_rng(0)
    side = rng.integers(2, size=1000).astype(np.float32)
    state = (side[:, None] * 2 - 1 + 0.05 * rng.standard_normal((1000, 2))).astype(np.float32)
    real = Transitions(state, state[:, :1], side, -state, np.zeros(1000, bool))
    settings = peers.Diffusion(layers=2, width=64, steps=800, learning_rate=3e-3, sampling_steps=12, averaging=0.98)
    made = settings.enlarge(real, 400, np.random.default_rng(1))
    assert set(np.unique(made.reward)) == {0.0, 1.0}
    assert 0.25 < made.reward.mean() < 0.75
    assert ((made.state[:, 0] > 0) == (made.reward > 0.5)).mean() > 0.95
    assert np.abs(made.next_state + made.state).mean() < 0.2
    short = replace(settings, steps=20)
    one, same, other = (short.enlarge(real, 50, np.random.default_rng(seed)).state for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def learners(*tables, units=None, seeds=None, **settings):
    made = [agent.untrained(seed=seed, **settings) for seed in seeds or [0] * len(tables)]
    return agent.Agents(made, tables, [units or agent.Units()] * len(tables))


def shared_batches(player, count, size):
    """Give the batches that ``player`` will draw, in the shape in which Stable-Baselines3 samples them."""
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    drawn = [[column[0] for column in batch] for batch, _ in player.batches(count, size)]
    return [
        ReplayBufferSamples(state, action, after, 1.0 - discount / player.rule.gamma, reward)
        for state, action, reward, discount, after in drawn
    ]


@pytest.mark.parametrize("policy_delay", [1, 2])
def test_an_update_is_that_of_stable_baselines3(policy_delay):
    """From the same weights and batches, without the noise that both draw for themselves."""
    from stable_baselines3.common.logger import Logger

    ended = np.random.default_rng(0).random(SOURCE.rows) < 0.1
    rows = data.real(SOURCE).replace(terminated=ended)
    plain = {"policy_delay": policy_delay, "tau": 0.1, "learning_rate": 1e-2, "width": 16}
    theirs = agent.untrained(seed=0, **plain)
    theirs.target_policy_noise = 0.0
    ours, same = (agent.Agents([theirs], [rows], [agent.Units.of(rows)]) for _ in range(2))
    theirs.set_logger(Logger(None, []))
    batches = iter(shared_batches(same, 7, 64))
    theirs.replay_buffer.sample = lambda *_, **__: next(batches)
    theirs.train(7, 64)
    ours.train(7, 64)
    trained = agent.Agents([theirs], [rows], [agent.Units.of(rows)])
    for name in ("actor", "critic", "actor_target", "critic_target"):
        assert torch.allclose(getattr(ours, name).vector, getattr(trained, name).vector, rtol=1e-4, atol=1e-5)
        assert not torch.equal(getattr(ours, name).vector, getattr(same, name).vector)


def test_an_agent_learns_the_same_in_any_company():
    """From its own table, with its own batches; only the last bits may differ."""
    real = data.real(SOURCE)
    other = real[:1000].replace(reward=np.ones(1000, np.float32))
    alone = learners(real, seeds=[3], width=8, learning_rate=1e-2)
    among = learners(other, real, other, seeds=[0, 3, 1], width=8, learning_rate=1e-2)
    for players in (alone, among):
        players.train(20, 32)
    for single, several in zip(alone.actor.parts, among.actor.parts, strict=True):
        assert torch.allclose(single[0], several[1], rtol=1e-3, atol=1e-4)
        assert not torch.allclose(single[0], several[0], rtol=1e-3, atol=1e-4)
    states = np.stack([real.state[:50]] * 3)
    assert np.allclose(alone.greedy(states[:1])[0], among.greedy(states)[1], rtol=1e-3, atol=1e-3)


def test_the_agent_learns_from_its_dataset_alone_and_wants_no_more_than_a_game_gives():
    real = data.real(SOURCE)
    rich = real.replace(reward=np.full_like(real.reward, 1000.0))
    player = learners(rich, width=8, learning_rate=0.1)
    state, action, *_ = player.rows.split(player.widths, dim=1)
    assert np.array_equal(state, real.state)
    before = player.actor.vector.clone()
    player.train(300, 32)
    assert {optimiser.param_groups[0]["lr"] for optimiser in player.optimisers.values()} == {0.1}
    assert not torch.equal(before, player.actor.vector)
    with torch.no_grad():
        promised = agent.forward(player.first_critic, torch.cat([state, action], dim=1)[None])
    assert abs(float(promised.mean()) - agent.BOUND) < 5


def test_an_agent_sees_states_in_units_while_it_learns_and_while_it_plays():
    real = data.real(SOURCE)
    player = learners(real, units=agent.Units.of(real), width=8)
    seen = player.rows[:, : real.state.shape[1]]
    assert np.allclose(seen.mean(dim=0), 0.0, atol=1e-4)
    assert np.allclose(seen.std(dim=0), 1.0, atol=1e-3)
    with torch.no_grad():
        wanted = player.actor(seen[None, :50]).tanh().numpy()
        raw = player.actor(torch.from_numpy(real.state[None, :50])).tanh().numpy()
    assert np.array_equal(player.greedy(real.state[None, :50]), wanted)
    assert not np.array_equal(raw, wanted)


def test_a_falling_rate_ends_at_zero():
    player = learners(data.real(SOURCE), width=8, learning_rate=LinearSchedule(0.1, 0.0, 1.0))
    player.train(1, 32, remaining=0.25)
    assert np.allclose([optimiser.param_groups[0]["lr"] for optimiser in player.optimisers.values()], 0.025)


class Scripted:
    """Stands in for agents: the recorded player, and one that stands still."""

    def greedy(self, state):
        active = pong_policy(state[0], np.random.default_rng(1))
        return np.stack([active, np.zeros_like(active)])


def test_success_is_the_share_of_games_whose_last_reward_is_one():
    """The scripted player wins most games, one that stands still few; the same games for the same generator."""
    world = Pong(length=250)
    skilful, still = agent.success(Scripted(), world, 100, [np.random.default_rng(0), np.random.default_rng(0)])
    assert skilful > 0.8
    assert still < 0.3
    again = agent.success(Scripted(), world, 100, [np.random.default_rng(5), np.random.default_rng(0)])
    assert again[1] == still


def written(folder, arm, size, seed, success):
    config = replace(TINY, arm=arm, source=replace(TINY.source, rows=1000 * size, seed=seed))
    with rows.recording(folder / f"{config.name}.jsonl", config) as write:
        if arm != "real":
            told = {
                "confirmed": 0.9,
                "near": 0.95,
                "distance": 0.01,
                "reward_right": 0.99,
                "wins": 0.05,
                "losses": 0.03,
            }
            write(step=0, origin="counterfactual", made=3000 * size, **told)
        for step in range(1000, 31_000, 1000) if success is not None else ():
            write(step=step, success=0.0 if step <= 10_000 else success)


def test_the_report_puts_ours_beside_theirs(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    for seed in range(2):
        written(tmp_path / "runs", "real", 25, seed, 0.2)
        written(tmp_path / "runs", "real", 50, seed, 0.3)
        written(tmp_path / "runs", "3C-exact", 25, seed, 0.4 + 0.1 * seed)
    (tmp_path / "batch.md").write_text(f"# Words\n{pages.BEGIN}\nold\n{pages.END}\nmore words\n")
    written(tmp_path / "rows", "3C-ours", 50, 0, None)
    written(tmp_path / "again", "real", 25, 0, 0.1)
    report.write(tmp_path / "runs", docs=tmp_path)
    page = (tmp_path / "batch.md").read_text()
    assert "| 25k | real | 2 | 13.2 | 20.0 ± 0.0 | 20.0, 20.0 |" in page
    error = f"{report.standard_error([40.0, 50.0]):.1f}"
    assert 3 < float(error) < 4  # of the mean of two values 10 apart: 10 / 2 / sqrt(2)
    assert f"| 25k | 3C-exact | 2 | 40.9 | 45.0 ± {error} | 40.0, 50.0 |" in page
    assert f"| 3C-exact − real | 25k | +27.7 | +25.0 ± {error} | 2 of 2 |" in page
    assert f"| 3C-exact − real(2N) | 25k | +18.1 | +15.0 ± {error} | 2 of 2 |" in page
    assert "| 25k | 3C-exact | counterfactual | 2 | 75,000 | 90.00% | 95.00% | 0.010 | 99.00% | 5.0%, 3.0% |" in page
    assert "| 50k | 3C-ours | counterfactual | 1 | 150,000 | 90.00%" in page
    assert "| 50k | 3C-ours | 1 |" not in page
    assert "| 25k | real | 20.0, 20.0 | 10.0 | 16.7 ± " in page
    assert (tmp_path / "batch.png").stat().st_size > 1000
    assert "old" not in page
    capsys.readouterr()
    report.write(tmp_path / "not yet", docs=tmp_path)
    assert "| 50k | 3C-ours | counterfactual | 1 | 150,000 |" in (tmp_path / "batch.md").read_text()
    with pytest.raises(SystemExit, match="no finished runs"):
        report.write(tmp_path / "nothing" / "here", docs=tmp_path)
