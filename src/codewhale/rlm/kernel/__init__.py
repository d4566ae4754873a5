"""The kernel of a recursive session: a program of its own that runs a model's code over one mapped source.

It stands alone: it is run by the path of this folder, and imports nothing but the standard library.
"""
