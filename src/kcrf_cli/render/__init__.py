"""Figures as text and JSON."""
