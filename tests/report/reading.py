"""What the tests of the report share: a page taken apart, small data, and reports on it."""

import re
from collections import Counter, defaultdict
from html.parser import HTMLParser

import numpy as np
from hypothesis import strategies as st

from counterpoint import Augmenter, Uniform
from counterpoint.masks import Constant
from counterpoint.report import Extras, write_report
from counterpoint.report.facts import measure
from counterpoint.worlds import Place, Sprites, collect, uniform_policy
from counterpoint.worlds.draw import draw_sprites
from tests.examples import first_column, make_data, make_factors

VOID = {"meta", "img", "br"}
seeds = st.integers(0, 2**32 - 1)
values = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30).map(np.array)


def no_reward(state, action, next_state):
    return np.zeros(len(state))


class Page(HTMLParser):
    """A page taken apart: elements with their ancestors, texts, ids and addresses. Tags must balance."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.open, self.elements, self.words = [], [], defaultdict(str)
        self.feed(self.text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, name, attributes):
        element = (name, dict(attributes), tuple(self.open))
        self.elements.append(element)
        if name not in VOID:
            self.open.append(len(self.elements) - 1)

    def handle_endtag(self, name):
        assert self.elements[self.open.pop()][0] == name, f"</{name}> closes something else"

    def handle_data(self, data):
        for index in self.open:
            self.words[index] += data

    def all(self, name, within=None):
        return [
            index
            for index, (found, _, ancestors) in enumerate(self.elements)
            if found == name and (within is None or within in ancestors)
        ]

    def get(self, index, key):
        return self.elements[index][1].get(key)

    def section(self, slug):
        return next(self.words[index] for index in self.all("section") if self.get(index, "id") == slug)

    def check(self):
        """What holds for every report."""
        ids = [attributes["id"] for _, attributes, _ in self.elements if "id" in attributes]
        assert [name for name, count in Counter(ids).items() if count > 1] == []
        for _, attributes, _ in self.elements:
            for key in ("href", "src", "xlink:href"):
                if key in attributes:
                    address = attributes[key]
                    assert address.startswith("data:image/png;base64,") or address[1:] in ids, address[:80]
            for name in (attributes.get("aria-labelledby") or "").split():
                assert name in ids
        assert not re.search(r"https?:", self.text.replace('xmlns="http://www.w3.org/2000/svg"', ""))
        assert set(re.findall(r"url\(#([^)]*)\)", self.text)) <= set(ids)
        for index in self.all("figure"):
            captions, drawings = self.all("figcaption", index), self.all("svg", index) + self.all("img", index)
            assert len(captions) == len(drawings) == 1
            assert self.words[captions[0]].strip()
            if self.elements[drawings[0]][0] == "img":
                assert self.get(drawings[0], "alt")
            else:
                assert self.get(drawings[0], "role") == "img"
                assert self.words[self.all("title", drawings[0])[0]].strip()
                assert len(self.all("path", drawings[0])) > 3
                assert len(self.all("text", drawings[0])) > 3
        for index in self.all("table"):
            assert self.words[self.all("caption", index)[0]].strip()
            widths = {len(self.all("th", row)) + len(self.all("td", row)) for row in self.all("tr", index)}
            assert len(widths) == 1
        for name in ("script", "link", "iframe", "object"):
            assert not self.all(name)
        assert len(self.all("style")) == 1
        return self


def world_data(rows=300, seed=0):
    world, task = Sprites(noise_std=0.0), Place(4)
    rng = np.random.default_rng(seed)
    data = collect(world, uniform_policy(world), rows, rng, reward_fn=task, episode_length=50, reset_probability=0.0)
    return world, data, Augmenter(world.factors, world.mask, task).fill(data, 4 * rows, rng=rng)


def draw(state, action, mask):
    return draw_sprites(state, action=action, mask=mask, size=96)


def report(path, data, made, factors, mask, *, rng, policy=None, audit=None, **extras):
    """Write a report with the augmenter that has this mask."""
    augmenter = Augmenter(factors, mask, no_reward, policy=policy or Uniform())
    return write_report(path, data, made, augmenter, rng=rng, audit=audit, extras=Extras(**extras))


def write(path, sprites, **extras):
    world, data, made = sprites
    return report(path, data, made, world.factors, world.mask, rng=np.random.default_rng(1), **extras)


def small(n, m, rows, size, rng, *, mask=None, reward=first_column, **others):
    factors = make_factors(n, m, **others)
    data, mask = make_data(factors, rows, rng), mask or Constant.identity(factors)
    return factors, data, mask, Augmenter(factors, mask, reward).fill(data, size, rng=rng)


def facts_of(factors, data, mask, made, *, derive=None, audit=None, **extras):
    augmenter = Augmenter(factors, mask, no_reward, derive=derive)
    return measure(data, made, augmenter, rng=np.random.default_rng(0), audit=audit, extras=Extras(**extras))


def check_origin(example, data, factors):
    base, donor = (data[row] for row in example.rows)
    assert np.array_equal(base.state, example.base.state)
    assert np.array_equal(donor.state, example.donor.state)
    from_donor = example.swapped[factors.state_owner]
    assert np.array_equal(example.result.state, np.where(from_donor, donor.state, base.state))
