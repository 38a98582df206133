"""Shards at scale: rows a second, memory per worker, equal bytes, killed workers, two drivers.

    python -m experiments.shards run --preset laptop --place /somewhere/with/20/GB
    python -m experiments.shards report

The world is two bouncing sprites with their exact mask. A run starts `counterpoint augment` as a user would, watches
its workers from outside, and keeps the checksum of the output's manifest, which has the checksum of every shard.
"""
