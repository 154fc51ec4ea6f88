"""A corpus and a configuration become a `Dataset`: vocabularies, scaling, windows, and names of features."""

from .._lazy import lazy
from ..system import Registry

# Formats of other programs that encoded data is written in: functions from `Exported` to lines.
EXPORTS = Registry(
    "format to export to", __name__, {"crfsuite": "exporting:crfsuite_lines", "svmlight": "exporting:svmlight_lines"}
)

__getattr__, __dir__, __all__ = lazy(__name__)
