"""Layers, precedence, provenance and paths of configuration; knows no other room's settings."""
