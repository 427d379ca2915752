"""``python -m aiayn``, which ``torchrun -m aiayn`` needs."""

from aiayn.cli import main

main()
