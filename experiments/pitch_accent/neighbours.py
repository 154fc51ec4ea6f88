"""Configuration of a letter and its neighbours, each with a polynomial kernel of its own: `neighbours.py DEGREE MAP`.

The letter's prior variance is left to the command line; that of the neighbours, who say less about it, is smaller.
"""

from __future__ import annotations

import sys

PIXELS = ", ".join(f"p{number}" for number in range(128))
SIGMA2 = 10
TEXT = """\
columns: [{pixels}, label]
features:
  - {{name: letter, columns: [{pixels}], type: real, scale: none, window: [0]}}
  - {{name: neighbours, columns: [{pixels}], type: real, scale: none, window: [-2, -1, 1, 2]}}
terms:
  - {{name: letter, features: [letter], kernel: {kernel}, map: {map}}}
  - {{name: neighbours, features: [neighbours], kernel: {kernel}, map: {map}, sigma2: {sigma2}}}
  - {{type: edge}}
"""


def main(degree: str, map_: str) -> None:
    kernel = f"{{type: poly, degree: {degree}}}"
    print(TEXT.format(pixels=PIXELS, kernel=kernel, map=map_, sigma2=SIGMA2), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
