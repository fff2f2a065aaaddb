"""The bits that stand for keys in a bloom filter, all of them at once."""

import numpy as np
import pyarrow as pa

from hoodie.formats.java.strings import chunks_of
from hoodie.formats.parquet.murmur import Hashes, RawKeys, blocks, reduce_to


def positions(keys: pa.Array | pa.ChunkedArray, m: int, k: int) -> Hashes:
    """The bits that stand for each key in a filter of m bits and k hashes.

    keys     string[n], no nulls, none empty
    returns  uint32[k, n]
    Raises   InvalidInput on a null or empty key
    Source   Hudi's InternalBloomFilter and MurmurHash; pinned by tests/vectors/bloom_hash.json
    """
    bits = np.empty((k, len(keys)), np.uint32)
    done = 0
    for chunk in chunks_of(keys):
        for place, chain in blocks(RawKeys.of(chunk)):
            count = place.stop - place.start
            columns = slice(done + place.start, done + place.stop)
            hashes, scratch, held = np.zeros(count, np.uint32), np.empty(count, np.uint32), np.empty(count, np.uint32)
            for i in range(k):
                chain.step(hashes)
                if chain.order is None:
                    reduce_to(hashes, m, bits[i, columns], scratch)
                else:
                    bits[i, columns][chain.order] = reduce_to(hashes, m, held, scratch)
        done += len(chunk)
    return bits
