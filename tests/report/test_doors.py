"""What does not belong together is refused."""

import subprocess
import sys

import numpy as np
import pytest

from counterpoint import Factorization
from counterpoint.checks import Audit
from counterpoint.report import Reliability, write_report
from tests.report.reading import report

RNG = np.random.default_rng(0)  # for tests that end before it is used


def test_what_does_not_belong_together_is_refused(sprites, tmp_path):
    world, data, made = sprites
    path = tmp_path / "r.html"

    def attempt(data=data, made=made, factors=world.factors, rng=RNG, **extras):
        return report(path, data, made, factors, world.mask, rng=rng, **extras)

    with pytest.raises(ValueError, match="made: it has a parent in row .* but the data holds 10 rows"):
        attempt(data=data[:10])
    with pytest.raises(TypeError, match="made: expected Counterfactuals"):
        attempt(made=made.transitions)
    with pytest.raises(TypeError, match="rng: expected a NumPy generator"):
        attempt(rng=0)
    with pytest.raises(ValueError, match="audit: it judged 5,000 rows of 16 columns, but there are 1,200"):
        attempt(audit=Audit(np.zeros(5000), 1e-6, np.zeros(16)))
    with pytest.raises(ValueError, match="audit: it judged 5 rows of 3 columns, .* counterfactuals of 16"):
        attempt(audit=Audit(np.zeros(5), 1e-6, np.zeros(3)))
    with pytest.raises(ValueError, match="made: it swapped 5 factors, but factors has 2: everything, action"):
        attempt(factors=Factorization.blocks(state={"everything": 16}, action={"action": 2}))
    with pytest.raises(TypeError, match="augmenter: expected the Augmenter that made them, got Sprites"):
        write_report(path, data, made, world, rng=RNG)
    with pytest.raises(TypeError, match="reliability: expected counterpoint.report.Reliability, got 0.5"):
        attempt(reliability=0.5)
    with pytest.raises(TypeError, match="audit: expected what .*audit returns, got True"):
        attempt(audit=True)
    with pytest.raises(TypeError, match="draw: expected a function"):
        attempt(draw="sprites")
    with pytest.raises(ValueError, match="labels: no factor is called 'ball'"):
        attempt(labels={"ball": ("x",)})
    with pytest.raises(ValueError, match="labels: 'sprite0' has 4 columns"):
        attempt(labels={"sprite0": ("x", "y")})
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        attempt(colour="red")
    with pytest.raises(ValueError, match="reliability: expected three arrays of one length"):
        Reliability([0.1], [0.2, 0.3], [1])
    with pytest.raises(ValueError, match="reliability: expected scores and shares between 0 and 1"):
        Reliability([1.1], [0.2], [1])
    assert not path.exists()


def test_a_missing_matplotlib_is_reported_with_its_install_line():
    code = "import sys; sys.modules['matplotlib'] = None; import counterpoint.report"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: Reports need matplotlib and Pillow: pip install counterpoint-rl[report]" in result.stderr
