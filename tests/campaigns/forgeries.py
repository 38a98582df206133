"""Files that are well-formed, checksums and all, and say something absurd: what damage alone would never get past."""

import io
import json

import numpy as np

ABSURD = (
    None, True, 0, -1, 1.5, 3, 10**9, 2**62, 2**63, 2**70, float("nan"), float("inf"), "", "x", "-1", "../x", [], [[]],
    {}, {"x": 1}, [0, 2**70], ["x"], [1.5, None],
)  # fmt: skip
DEEP = "[" * 50_000
ABSURD_TOML = (
    "true", "0", "-1", "1.5", "1180591620717411303424", "nan", "inf", '""', '"x"', '"../x"', '"0:999999999"', '"5:2"',
    "[]", "[[]]", "{}", "{ x = 1 }", "[0, 1180591620717411303424]", '["x"]', "[1.5]", "1979-05-27", '"robot:gap"',
)  # fmt: skip


def forged_json(text, rng):
    """Replace, remove or repeat one value of a JSON text, anywhere in it."""
    if rng.random() < 0.01:
        return DEEP
    whole = [json.loads(text)]
    every = list(places(whole))
    holder, key = every[int(rng.integers(len(every)))]
    way = rng.random()
    if way < 0.15 and holder is not whole:
        del holder[key]
    elif way < 0.25 and isinstance(holder, list) and holder is not whole:
        holder.insert(key, holder[key])
    elif way < 0.35 and isinstance(holder[key], str):
        try:
            holder[key] = forged_json(holder[key], rng)  # JSON within JSON, as Minari keeps it
        except ValueError:
            holder[key] += "x"
    else:
        holder[key] = ABSURD[int(rng.integers(len(ABSURD)))]
    return json.dumps(whole[0])


def places(holder):
    """Iterate over all values of a tree, as the container and the key of each."""
    for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
        yield holder, key
        if isinstance(holder[key], dict | list):
            yield from places(holder[key])


def forged_array(array, rng):
    """Change a value, the shape or the type of an array; of a text that is JSON, something in it."""
    if array.dtype.kind == "U" and array.ndim == 0:
        return np.array(forged_json(array.item(), rng) if "{" in array.item() else array.item() + "x")
    way = int(rng.integers(7))
    if way < 2 and array.ndim:
        return np.concatenate([array, array[-1:]]) if way else array[: int(rng.integers(len(array) + 1))]
    if way == 2:
        return array.reshape(1, *array.shape) if rng.random() < 0.5 else array.reshape(-1)
    if way == 3:
        kinds = ("f2", "f4", "f8", "i1", "i8", "u8", "?", "c8", "S3", "U3", "M8[s]")
        with np.errstate(all="ignore"):
            return array.astype(kinds[int(rng.integers(len(kinds)))]) if array.dtype.kind in "fiub" else array[()]
    changed = np.array(array)
    if changed.size:
        spot = np.unravel_index(int(rng.integers(changed.size)), changed.shape)
        values = {
            "f": (np.nan, np.inf, -1.0, 1e30),
            "i": (-1, 0, 1, 2, 2**30, 127, -100),
            "u": (0, 3, 127, 255),
            "b": (0, 1),
        }
        among = values.get(changed.dtype.kind, ("",))
        with np.errstate(all="ignore"):
            changed[spot] = np.array(among[int(rng.integers(len(among)))]).astype(changed.dtype)
    return changed


def forged_npz(raw, rng):
    with np.load(io.BytesIO(raw), allow_pickle=False) as found:
        arrays = dict(found)
    name = list(arrays)[int(rng.integers(len(arrays)))]
    array = arrays.pop(name)
    way = rng.random()
    if way > 0.1:
        arrays[name] = forged_array(array, rng)
    elif way > 0.05:
        arrays[f"{name}x"] = array
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def forged_model(raw, rng):
    """Metadata or a weight that is wrong, under a checksum that is right."""
    import torch
    from safetensors import deserialize
    from safetensors.torch import load, save

    from counterpoint.learn.training import storage

    size = int.from_bytes(raw[:8], "little")
    text = json.loads(raw[8 : 8 + size])["__metadata__"]["counterpoint"]
    weights = load(bytes(raw))
    assert len(deserialize(bytes(raw))) == len(weights)
    if rng.random() < 0.7:
        text = forged_json(text, rng)
    else:
        name = list(weights)[int(rng.integers(len(weights)))]
        array = weights.pop(name).numpy()
        if rng.random() > 0.1:
            found = forged_array(array, rng)
            weights[name] = torch.from_numpy(np.array(found if found.dtype.kind in "fib" else array[:0]))
    return save(weights, {"counterpoint": text, "checksum": storage._checksum(text, weights)})


def forged_parquet(raw, rng):
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(pa.BufferReader(bytes(raw)))
    number = int(rng.integers(table.num_columns))
    kept = dict(table.schema.metadata or {})
    if rng.random() < 0.6 and b"counterpoint" in kept:
        kept[b"counterpoint"] = forged_json(kept[b"counterpoint"].decode(), rng).encode()
        table = table.replace_schema_metadata(kept)
    elif rng.random() < 0.3:
        table = table.remove_column(number)
    elif rng.random() < 0.5:
        values = table.column(number).to_pylist()
        values[int(rng.integers(len(values)))] = None
        table = table.set_column(
            number, table.schema.field(number).name, pa.array(values, table.schema.field(number).type)
        )
    else:
        other = table.column(int(rng.integers(table.num_columns)))
        table = table.set_column(number, table.schema.field(number).name, other)
    stream = io.BytesIO()
    parquet.write_table(table, stream, write_page_checksum=True)
    return stream.getvalue()


def forged_hdf5(raw, rng):
    import h5py

    stream = io.BytesIO(bytes(raw))
    with h5py.File(stream, "r+") as file:
        names = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        name = names[int(rng.integers(len(names)))]
        array, attributes = file[name][()], dict(file[name].attrs)
        del file[name]
        if rng.random() > 0.1:
            text = name.endswith("counterpoint")
            if text:
                array = np.frombuffer(forged_json(array.tobytes().decode(), rng).encode(), array.dtype)
            changed = array if text else forged_array(np.asarray(array), rng)
            file[name] = changed.astype("S") if changed.dtype.kind in "UM" else changed
            file[name].attrs.update(attributes)
    return stream.getvalue()


def forged_text(raw, rng):
    return forged_json(raw.decode(), rng).encode()


def forged_description(raw, rng):
    """Give a key something absurd, or remove or repeat a line."""
    lines = raw.decode().splitlines()
    at = int(rng.integers(len(lines)))
    key, equals, _ = lines[at].partition("=")
    if equals and rng.random() < 0.8:
        lines[at] = f"{key}= {ABSURD_TOML[int(rng.integers(len(ABSURD_TOML)))]}"
    else:
        lines[at : at + 1] = [] if rng.random() < 0.5 else [lines[at]] * 2
    return "\n".join(lines).encode()


FORGERIES = {
    ".npz": forged_npz,
    ".safetensors": forged_model,
    ".parquet": forged_parquet,
    ".hdf5": forged_hdf5,
    ".h5": forged_hdf5,
    ".json": forged_text,
    ".toml": forged_description,
}
