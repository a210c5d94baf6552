"""Random damage to saved files: to their bytes, the members of archives, and the values of JSON documents.

Archives are written again with valid checksums, so that the damage reaches the later checks.
"""

import io
import json
import math
import random
import struct
import zlib

import numpy as np

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 5e-324, 1e300, 1.7976931348623157e308, 2.0**53, 2.0**63]
FLOATS += [float("inf"), float("-inf"), float("nan")]
INTEGERS = [0, 1, -1, 2, 255, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62 - 1, 2**62, 2**63 - 1, -(2**63), 2**64 - 1]
TYPES = ["f8", "f4", ">f8", "i8", "u8", "i4", "u1", "b1", "c16", "S5", "U3", "M8[s]", "V8", "f2"]
HEADERS = [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 4), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
    "{'descr': '|V0', 'fortran_order': False, 'shape': (9,), }",
    "{'descr': [('a', '<f8'), ('b', '<f8')], 'fortran_order': False, 'shape': (3,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
    "{'descr': '<f8', 'shape': (3,), }",
    "[1, 2]",
    "-" * 5000 + "1",
    "(" * 150 + ")" * 150,
    "{'descr': __import__('os'), 'fortran_order': False, 'shape': (3,), }",
]
TEXTS = [
    "NaN",
    "Infinity",
    "1e999",
    "9" * 5000,
    "-0",
    "1E400",
    "null",
    "true",
    "[]",
    "{}",
    '""',
    '"\\ud800"',
    "1.",
    "0x1",
]


def damaged(rng, content, others):
    """The bytes of a file with one to three kinds of damage; parts of `others` may be inserted."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        how = (_changed_bytes,)
        if content[:2] == b"PK" and rng.random() < 0.7:
            how = (_changed_arrays, _changed_arrays, _forged_sums, _forged_sums, _forged_archive)
        elif content[:1] == b"{" and rng.random() < 0.75:
            how = (_changed_document, _changed_document, _changed_text)
        try:
            content = rng.choice(how)(rng, content, others)
        except Exception:
            continue
    return content


def _changed_bytes(rng, content, others):
    place = rng.randrange(len(content) + 1)
    end = min(place + rng.choice((1, 2, 8, 100)), len(content))
    how = rng.randrange(6)
    if how == 0:
        flipped = bytearray(content)
        for _ in range(rng.choice((1, 1, 4, 16))):
            if flipped:
                flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    if how == 1:
        return content[:place]
    if how == 2:
        return content[:place] + content[end:]
    if how == 3:
        return content[:end] + content[place:]
    if how == 4:
        return content[:place] + rng.choice((b"\0", b"\xff", rng.randbytes(4))) * (end - place) + content[end:]
    other = rng.choice(others)
    return content[:place] + other[rng.randrange(len(other)) :]


# Archives


def _arrays_of(content):
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        return {name: array for name in found.files if isinstance(array := found[name], np.ndarray)}


def _changed_arrays(rng, content, _):
    arrays = _arrays_of(content)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(sorted(arrays))
        if name == "header" and rng.random() < 0.9:
            text = _changed_document(rng, arrays["header"].tobytes(), ())
            arrays["header"] = np.frombuffer(text, dtype=np.uint8)
            continue
        changed = _changed_array(rng, arrays[name], arrays[rng.choice(sorted(arrays))])
        if changed is None:
            del arrays[name]
        else:
            arrays[name] = changed
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _forged_sums(rng, content, _):
    """An accumulator with changed entries, and with totals and extents that match them."""
    arrays = _arrays_of(content)
    header = json.loads(arrays.pop("header").tobytes())
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(sorted(arrays))
        arrays[name] = _changed_entries(rng, arrays[name])
    arrays["x"] = np.sort(arrays["x"])
    if "tally" in arrays:
        header["n_rows"] = sum((arrays["tally"] % 2**32).tolist())
    elif "rows" in arrays:
        header["n_rows"] = int(np.count_nonzero(arrays["w"])) + sum(arrays["rows"].tolist())
    for row, name in ((0, "y"), (1, "w")):
        numbers = arrays.get(name, np.empty(0))
        sizes = np.abs(numbers[numbers != 0])
        if len(sizes) and rng.random() < 0.7:
            whole = float(np.all(numbers == np.floor(numbers)))
            old = arrays["extents"][row]
            new = min(old[0], numbers.min()), max(old[1], numbers.max()), min(old[2], sizes.min()), min(old[3], whole)
            arrays["extents"][row] = new
    file = io.BytesIO()
    np.savez(file, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays)
    return file.getvalue()


def _changed_entries(rng, array):
    """Change some entries of an array that is not empty."""
    changed = array.copy()
    flat = changed.reshape(-1)
    for _ in range(rng.choice((1, 1, 3))):
        place = rng.randrange(flat.size)
        if rng.random() < 0.5:
            flat.view(np.uint8)[rng.randrange(flat.nbytes)] ^= 1 << rng.randrange(8)
        elif flat.dtype.kind == "f":
            flat[place] = rng.choice((*FLOATS, *_near(float(flat[place])), float(flat[rng.randrange(flat.size)])))
        elif flat.dtype.kind in "iu":
            bits = 8 * flat.dtype.itemsize
            number = rng.choice((rng.choice(INTEGERS), int(flat[place]) + rng.randrange(-2, 3))) % 2**bits
            flat[place] = number - 2**bits if flat.dtype.kind == "i" and number >= 2 ** (bits - 1) else number
    return changed


def _changed_array(rng, array, other):
    how = rng.randrange(12)
    if how < 6:
        return _changed_entries(rng, array)
    if how == 6:
        return array[: rng.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
    if how == 7:
        return np.concatenate((array, array)) if array.ndim else None
    if how == 8:
        return array.reshape(rng.choice([(-1, 1), (1, -1)])) if array.size else array.reshape(0, 3)
    if how == 9:
        try:
            with np.errstate(all="ignore"):
                return array.astype(rng.choice(TYPES))
        except (TypeError, ValueError):
            return array.view(np.uint8)
    if how == 10:
        return other
    return None if rng.random() < 0.5 else array[::-1].copy()


def _near(value):
    """Numbers that a check might mistake for the right one."""
    around = [math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]
    return 2 * [*around, value * 2, value / 2, round(value, 1), -value]


def _member(name, body, *, offset, size=None, method=0, flags=0):
    """A member of a zip file: its local header with its content, and its entry in the directory."""
    size, name = len(body) if size is None else size, name.encode()
    fields = struct.pack("<HHHHHIIIHH", 20, flags, method, 0, 0, zlib.crc32(body), size, size, len(name), 0)
    entry = b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, offset) + name
    return b"PK\3\4" + fields + name + body, entry


def _forged_archive(rng, content, _):
    """An archive with a wrong directory, or with members that `savez` never writes."""
    bodies = {}
    for name, array in _arrays_of(content).items():
        file = io.BytesIO()
        np.save(file, array)
        bodies[name + ".npy"] = file.getvalue()
    names = list(bodies)
    victim, options = rng.choice(names), {}
    how = rng.randrange(8)
    if how == 0:
        bodies[victim] = _with_header(rng.choice(HEADERS), bodies[victim])
    elif how == 1:
        bodies[victim] = rng.choice((b"", b"text", b"\x93NUMPY", b"\x93NUMPY\1\0\xff\xff", bodies[victim][:-1]))
    elif how == 2:
        names.append(victim)
    elif how == 3:
        options = {"size": rng.choice((0, 1, 2**31, 2**32 - 1, len(bodies[victim]) + 1))}
    elif how == 4:
        options = {"method": rng.choice((8, 12, 14, 99)), "flags": rng.choice((0, 1, 8, 0x800))}
    elif how == 5:
        names.append("more.npy")
        bodies["more.npy"] = bodies[victim]
    file, directory, starts = b"", b"", {}
    for name in names:
        own = options if name == victim else {}
        local, entry = _member(name, bodies[name], offset=len(file), **own)
        starts[name] = len(file)
        file, directory = file + local, directory + entry
    if how == 6:  # overlapping: all members are the one
        directory = b"".join(_member(name, bodies[victim], offset=starts[victim])[1] for name in names)
    if how == 7:
        directory *= rng.choice((2, 100, 2000))
    n = min(len(names), 65535)
    return file + directory + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, n, n, len(directory), len(file), 0)


def _with_header(text, body):
    length = int.from_bytes(body[8:10], "little")
    return body[:8] + len(text).to_bytes(2, "little") + text.encode() + body[10 + length :]


# Documents


def _changed_document(rng, content, _):
    document = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change_part(rng, document)
    return json.dumps(document).encode()


def _change_part(rng, document):
    """Change a random part of a document, with equal chances for large and small arrays."""
    node = document
    while True:
        keys = list(range(len(node))) if isinstance(node, list) else sorted(node)
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(node[key], (list, dict)) and node[key] and rng.random() < 0.8:
            node = node[key]
            continue
        break
    how = rng.randrange(8)
    if how < 4:
        node[key] = _other_value(rng, node[key])
    elif how == 4:
        del node[key]
    elif how == 5 and isinstance(node, list):
        node.insert(key, node[rng.choice(keys)])
    elif how == 6 and isinstance(node, list):
        del node[rng.randrange(len(node)) :]
    elif how == 7:
        node[key] = node[rng.choice(keys)]
    else:
        node[rng.choice(["more", "loss", "left", "name", ""])] = 1 if isinstance(node, dict) else None


def _other_value(rng, value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)) and rng.random() < 0.6:
        number = rng.choice((value + 1, -value, value * 2, rng.choice(FLOATS[:-3]), rng.choice(INTEGERS), 10**400))
        return number if abs(number) < float("inf") else "inf"
    deep = []
    for _ in range(rng.choice((1, 50, 500)) if rng.random() < 0.2 else 1):
        deep = [deep]
    return rng.choice((None, True, "inf", "-inf", "nan", "x" * 1000, [], {}, [1], {"name": 1}, deep, "huber", [[]] * 9))


def _changed_text(rng, content, _):
    text = content.decode("latin-1")
    if rng.random() < 0.05:
        return rng.choice((b"[" * 100000, b'{"a":' * 50000, b"[[],[]," * 10000, b'"ab",' * 10000, b"[" + b"1," * 99999))
    numbers = [place for place, one in enumerate(text) if one in "0123456789" and text[place - 1] in " ["]
    place = rng.choice(numbers)
    end = place
    while end < len(text) and text[end] not in ",]} ":
        end += 1
    return (text[:place] + rng.choice(TEXTS) + text[end:]).encode("latin-1")


def case_rng(seed, number):
    """The random generator of a case."""
    return random.Random(f"{seed} {number}")
