"""Multi30k: captions of pictures in English, German and French.

29,000 pairs to train on, 1,014 for validation, and the 1,000 of Flickr 2016 to test.
"""

from aiayn.data.download import RemoteFile, fetch, mirrors_of
from aiayn.data.parallel import ParallelText, read_parallel

DIRECTIONS = ("en-de", "de-en", "en-fr", "fr-en", "de-fr", "fr-de")
LICENCE = (
    "Provided by its makers for non-commercial research and education; derived from "
    "Flickr30K, whose pictures are under the Flickr terms of use."
)
CITATION = (
    "Elliott, Frank, Sima'an, Specia (2016): Multi30K: Multilingual English-German "
    "Image Descriptions. French: Elliott et al. (2017)."
)
_COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
_STEMS = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
# The files in the repository, without their ending .gz, and the sha256 of each.
_SHA256 = """\
train.en d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f
train.de 726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6
train.fr 622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c
val.en 14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28
val.de f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a
val.fr ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9
test_2016_flickr.en 611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9
test_2016_flickr.de 9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8
test_2016_flickr.fr 6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90
"""


def load(source: str, target: str) -> dict[str, ParallelText]:
    """The splits of Multi30k between any two of English, German and French."""
    files = remote_files()
    return {
        split: read_parallel(*(fetch(files[f"{stem}.{x}"]) for x in (source, target)))
        for split, stem in _STEMS.items()
    }


def remote_files() -> dict[str, RemoteFile]:
    """Multi30k's files by name."""
    files = {}
    for name, sha256 in map(str.split, _SHA256.splitlines()):
        path = f"data/task1/raw/{name}.gz"
        mirrors = mirrors_of("multi30k/dataset", _COMMIT, path, sha256)
        files[name] = RemoteFile(f"multi30k/{name}.gz", sha256, mirrors)
    return files
