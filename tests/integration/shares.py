"""A share of so many samples, as reports have it."""

Z = 1.96


def wilson(part, whole):
    """(percent, low, high): the 95 % interval of Wilson."""
    p = part / whole
    centre = (p + Z * Z / (2 * whole)) / (1 + Z * Z / whole)
    half = Z / (1 + Z * Z / whole) * (p * (1 - p) / whole + Z * Z / (4 * whole ** 2)) ** 0.5
    return 100 * p, 100 * (centre - half), 100 * (centre + half)
