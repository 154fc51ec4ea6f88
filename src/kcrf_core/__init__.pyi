from ._version import __version__
from .config import Config, parse_config
from .corpora import Corpus, read_corpus, with_vectors
from .encoding import Encoding, fit_encoding
from .errors import ConfigError, DataError, FileFormatError, Interrupted, KcrfError, NumericError
from .estimator import KernelCRF
from .estimator import KernelCRF as CRF
from .model import Model
from .scoring import Evaluation, evaluate
from .scoring import metrics as metrics
from .scoring import scorers as scorers
from .system import Workers
from .training import Report, train

__all__ = [
    "CRF",
    "Config",
    "ConfigError",
    "Corpus",
    "DataError",
    "Encoding",
    "Evaluation",
    "FileFormatError",
    "Interrupted",
    "KcrfError",
    "KernelCRF",
    "Model",
    "NumericError",
    "Report",
    "Workers",
    "__version__",
    "evaluate",
    "fit_encoding",
    "metrics",
    "parse_config",
    "read_corpus",
    "scorers",
    "train",
    "with_vectors",
]
