"""Plots, SVG and HTML pages."""
