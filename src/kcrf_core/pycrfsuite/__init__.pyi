from .tagger import ItemSequence as ItemSequence, ParsedDump as ParsedDump, Tagger as Tagger
from .trainer import BaseTrainer as BaseTrainer, CRFSuiteError as CRFSuiteError, Trainer as Trainer

CRFSUITE_VERSION: str
