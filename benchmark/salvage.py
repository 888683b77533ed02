"""Reading rows out of SQLite files that SQLite itself no longer reads.

One wrong byte in the header makes SQLite refuse a whole file, and one in the write-ahead log makes it forget every
commit after that byte, without a word. Here pages are read one by one, whatever the rest of the file looks like
(layout: sqlite.org/fileformat.html). What is found may be torn or outdated: it is for the caller to trust a row only if
it matches its checksum.
"""

from collections.abc import Iterator
from pathlib import Path

PAGE_BYTES = 4096
"""The page size of every database that `store` makes."""

_LEAF_OF_A_TABLE = 13
_HEADER_BYTES = 100
_LOG_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
# A longer varint, or a longer text than this, is no part of a row.
_VARINT_BYTES = 9
_MAX_PAYLOAD_BYTES = 64 * 2**20

Columns = tuple[bytes, ...]


def rows_in_pages(database: Path) -> Iterator[Columns]:
    """The text columns of every row on the pages of a database file."""
    pages = _Pages(database)
    for number in range(1, pages.count + 1):
        yield from _rows_on(pages.stored(number), number, pages)


def rows_in_log(database: Path) -> Iterator[Columns]:
    """The text columns of every row in a database's write-ahead log, whether or not SQLite would still apply it."""
    pages = _Pages(database)
    for number, page in pages.frames:
        yield from _rows_on(page, number, pages)


class _Pages:
    """The pages of a database, those in its log before those in its file."""

    def __init__(self, database: Path) -> None:
        log = Path(f"{database}-wal")
        self._content = database.read_bytes() if database.exists() else b""
        self.count = -(-len(self._content) // PAGE_BYTES)
        self.frames = list(_frames(log.read_bytes())) if log.exists() else []
        self._newest = dict(self.frames)

    def stored(self, number: int) -> bytes:
        return self._content[(number - 1) * PAGE_BYTES : number * PAGE_BYTES]

    def newest(self, number: int) -> bytes:
        return self._newest.get(number) or self.stored(number)


def _frames(log: bytes) -> Iterator[tuple[int, bytes]]:
    for start in range(_LOG_HEADER_BYTES, len(log), _FRAME_HEADER_BYTES + PAGE_BYTES):
        page = start + _FRAME_HEADER_BYTES
        yield int.from_bytes(log[start : start + 4], "big"), log[page : page + PAGE_BYTES]


def _rows_on(page: bytes, number: int, pages: _Pages) -> Iterator[Columns]:
    start = _HEADER_BYTES if number == 1 else 0
    if page[start : start + 1] != bytes([_LEAF_OF_A_TABLE]):
        return
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    for place in range(start + 8, min(start + 8 + 2 * cells, len(page)), 2):
        try:
            payload = _payload(page, int.from_bytes(page[place : place + 2], "big"), pages)
            columns = _texts(payload)
        except IndexError:
            continue  # a number in it points outside the page: this row is damaged, the next one may be sound
        yield columns


def _payload(page: bytes, at: int, pages: _Pages) -> bytes:
    """The content of one cell, the part on overflow pages included."""
    length, at = _varint(page, at)
    _, at = _varint(page, at)  # the row's number
    if length > _MAX_PAYLOAD_BYTES:
        raise IndexError(length)
    most = PAGE_BYTES - 35
    if length <= most:
        return page[at : at + length]
    least = (PAGE_BYTES - 12) * 32 // 255 - 23
    local = least + (length - least) % (PAGE_BYTES - 4)
    local = local if local <= most else least
    parts = [page[at : at + local]]
    following = int.from_bytes(page[at + local : at + local + 4], "big")
    for _ in range(-(-(length - local) // (PAGE_BYTES - 4))):
        overflow = pages.newest(following) if following else b""
        parts.append(overflow[4:])
        following = int.from_bytes(overflow[:4], "big")
    return b"".join(parts)[:length]


def _texts(payload: bytes) -> Columns:
    """The columns of a record that are texts; of a row of `store` these are all but its number."""
    end, at = _varint(payload, 0)
    start, texts = end, []
    while at < end:
        kind, at = _varint(payload, at)
        is_text = kind >= 13 and kind % 2 == 1
        if not is_text and kind != 0:
            return ()
        length = (kind - 13) // 2 if is_text else 0
        if is_text:
            texts.append(payload[start : start + length])
        start += length
    return tuple(texts)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(_VARINT_BYTES - 1):
        byte = data[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    return value << 8 | data[at + _VARINT_BYTES - 1], at + _VARINT_BYTES
