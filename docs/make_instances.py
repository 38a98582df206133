"""Make the picture of the four instances of CoDA: ``python docs/make_instances.py``.

The page itself makes the pictures; here they are put side by side.
"""

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

PAGE = Path(__file__).parent / "four-instances.md"
IMAGE = Path(__file__).parent / "images" / "four-instances.png"


def main() -> None:
    """Run the page and draw what it leaves behind."""
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        exec(block, names)  # noqa: S102
    figure, panels = plt.subplots(1, len(names["pictures"]), figsize=(13.5, 2.7), layout="constrained")
    for panel, (title, pixels) in zip(panels, names["pictures"].items(), strict=True):
        panel.imshow(pixels)
        panel.set(title=title, xticks=[], yticks=[])
    figure.savefig(IMAGE, dpi=80)
    print(f"{IMAGE}: {IMAGE.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
