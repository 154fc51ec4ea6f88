"""A listener that remembers all events of a training run."""

from __future__ import annotations

from kcrf_core.objective.solvers import Note, Observer


class Recorder(Observer):
    def __init__(self):
        self.events = []

    def tell(self, event):
        self.events.append(event)

    def of(self, kind):
        """The events of one type, in the order in which they came."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def notes(self):
        return [note.text for note in self.of(Note)]
