"""Layers, precedence, provenance and paths of configuration; knows no other room's settings."""

from codewhale.config.layers import Config, Entry, Project, load
from codewhale.config.paths import config_file, home_dir, project_file, refuse_unusable

__all__ = ["Config", "Entry", "Project", "config_file", "home_dir", "load", "project_file", "refuse_unusable"]
