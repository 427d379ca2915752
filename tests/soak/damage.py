"""Whole files, damaged: by bytes, and where they hold JSON, by values."""

import json
import struct

from hypothesis import strategies as st

# Values that have broken readers of JSON: of another kind, too large, not numbers.
STRANGE = st.sampled_from(
    [
        *(None, True, -1, 0, 1, 2**31, 2**64, 10**400),
        *(0.5, 1e308, float("inf"), float("nan")),
        *("", "x", "\0", "9" * 50, "../../x"),
        *([], [1], [[]], {}, {"kind": []}),
    ]
)
edits = st.lists(
    st.tuples(
        st.sampled_from(["change", "insert", "remove", "repeat", "cut"]),
        st.floats(0, 1, exclude_max=True),
        st.binary(min_size=1, max_size=8),
        st.integers(1, 64),
    ),
    max_size=4,
)


def damaged(content: bytes, changes) -> bytes:
    """The content after some edits."""
    data = bytearray(content)
    for kind, share, new, count in changes:
        at = int(share * len(data))
        if kind == "change":
            data[at : at + len(new)] = new
        elif kind == "insert":
            data[at:at] = new
        elif kind == "remove":
            del data[at : at + count]
        elif kind == "repeat":
            data[at:at] = data[at : at + count] * 3
        else:
            del data[at:]
    return bytes(data)


@st.composite
def damaged_files(draw, examples):
    """One of these files, damaged."""
    content = draw(st.sampled_from(examples))
    if draw(st.booleans()):
        content = _with_strange_value(draw, content)
    return damaged(content, draw(edits))


def _with_strange_value(draw, content):
    """A value of its JSON replaced, removed or added, if it is JSON or holds some."""
    if content[:1] == b"{":
        return _changed(draw, content)
    if content[8:9] == b"{":  # safetensors: a length, a header in JSON, numbers
        length = struct.unpack("<Q", content[:8])[0]
        header = _changed(draw, content[8 : 8 + length])
        return struct.pack("<Q", len(header)) + header + content[8 + length :]
    return content


def _changed(draw, text):
    try:
        value = json.loads(text)
    except ValueError:  # JSON lines
        return text
    place, steps = value, draw(st.integers(1, 3))
    for _ in range(steps):
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = draw(st.sampled_from([*keys, "new"] if isinstance(place, dict) else [0]))
        inside = place.get(key) if isinstance(place, dict) else None
        if key == "info" and isinstance(inside, str):  # JSON in a string
            place[key] = _changed(draw, inside.encode()).decode()
            return json.dumps(value).encode()
        if not isinstance(inside, dict) or not inside:
            break
        place = inside
    if isinstance(place, dict) and draw(st.integers(0, 4)) == 0:
        place.pop(key, None)
    elif isinstance(place, dict):
        place[key] = draw(STRANGE)
    return json.dumps(value).encode()
