from .tagger import ItemSequence, ParsedDump, Tagger
from .trainer import BaseTrainer, CRFSuiteError, Trainer

CRFSUITE_VERSION: str

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "ParsedDump", "Tagger", "Trainer"]
