"""The tools array: lifecycle, head bytes, validation, repair."""
