"""How the sum over pixels is done: ``reference`` defines it, ``cpu`` does it fast."""
