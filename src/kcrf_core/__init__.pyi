from ._version import __version__ as __version__
from .config import Config as Config, parse_config as parse_config
from .corpora import Corpus as Corpus, read_corpus as read_corpus, with_vectors as with_vectors
from .encoding import Encoding as Encoding, fit_encoding as fit_encoding
from .errors import (
    ConfigError as ConfigError,
    DataError as DataError,
    FileFormatError as FileFormatError,
    Interrupted as Interrupted,
    KcrfError as KcrfError,
    NumericError as NumericError,
)
from .estimator import CRF as CRF, KernelCRF as KernelCRF
from .model import Model as Model
from .scoring import Evaluation as Evaluation, evaluate as evaluate, metrics as metrics
from .system import Workers as Workers, load_plugin as load_plugin
from .training import Report as Report, train as train
