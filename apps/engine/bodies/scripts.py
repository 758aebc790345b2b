"""Scripts that put no space between words, where a neighbour is no part of a word.

In `退款418元` the number stands alone, in `id418x` it does not.
"""

from __future__ import annotations

import re
from typing import Final

_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3100-\u318f"
    "\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese; Korean, which joins its particles."""


def is_unspaced(char: str) -> bool:
    """Whether one character is of a script that puts no space around words."""
    return not char.isascii() and _UNSPACED.match(char) is not None
