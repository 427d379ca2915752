"""Which version of the package this is, as pip noted it."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("aiayn")
except PackageNotFoundError:  # its folder lies on the path, and pip knows nothing of it
    __version__ = "0+unknown"
