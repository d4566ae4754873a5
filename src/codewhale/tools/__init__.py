"""The model's faces: one file per family. Siblings do not import one another."""
