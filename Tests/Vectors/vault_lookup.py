"""Looks up one secret, with the checks of a lookup alone: the right column of the table under Reading in VaultFormat.md."""

import vault_format as f
import vault_reader as r
import vault_records as p
from vault_format import require

SEQUENCE, KIND, VALUE_LENGTH = 16, 24, 41  # offsets in the plaintext of a frame


def opened(file, credential, limits=r.Limits()):
    """What lookups in the file need, whatever the name is. Raises `Refused`."""
    header = f.parse_header(file)
    master = r.unlock(header, credential, limits)
    r.check_header(header, master)
    states = r.read_commit_slots(file, header, master)
    return Lookup(file, header, master, states[r.choose(states)])


class Lookup(r.PartsReader):
    """The root and the tail. Blocks and values are read on request."""

    def __init__(self, file, header, master, state):
        super().__init__(file, header, master, state)
        self.start, self.newest = len(header.raw) + f.PAGES, {}
        data = self.part("root", state.root_offset, state.root_length, state.root_tag)
        self.root = p.Root.parse(data, None, header.vault_id)
        self.check_entries(state.root_offset - self.root.recent_length)
        self.read_tail()

    def find(self, service, account):
        """The entry of the secret's present value, or None. Raises `Refused`."""
        wanted = p.lookup_id(self.root.lookup_key, service, account)
        if wanted in self.newest:
            plain, place = self.newest[wanted]
            record = p.parse_metadata(plain, self.root.lookup_key)
        else:
            record, place = self.in_base(wanted)
        if not record:
            return None
        require((record.service, record.account) == (service, account), "a record of another name", "R3")
        return self.opened(record, self.file[place:][: record.value_length]) if record.is_put else None

    def check_entries(self, end):
        """In place of B7, and of B9 across blocks."""
        position, last = self.start, None
        for entry in self.root.entries:
            require(last is None or last < entry.first, "the blocks do not ascend", "B9")
            require(position <= entry.offset, "the blocks overlap", "B7")
            position, last = entry.end, entry.first
        require(last is None or position == end, "the last block does not end where it must", "B7")

    def read_tail(self):
        """Notes the newest frame of each lookup id. A frame is not decoded any further, and values are not opened."""
        position, sequence, previous, size = self.state.base_end, self.root.sequence, self.state.root_tag, 0
        while position < self.state.end:
            sealed, plain = self.opened_frame(position, previous, size)
            require(len(plain) > KIND, "a frame is cut short", "N2")
            number = f.Cursor(plain[SEQUENCE:], "a frame").sequence()
            require(number == sequence + 1, "the sequence of a frame does not follow", "T1")
            length = 0
            if plain[KIND] != p.REMOVE:
                length = f.Cursor(plain[VALUE_LENGTH:], "a frame").u32()
                padded = length - f.SEAL_OVERHEAD
                is_right = padded > 0 and padded % f.PADDING == 0 and length <= p.LARGEST_VALUE
                require(is_right, "a sealed value has a wrong length", "V2")
            place = position + 4 + len(sealed)
            size += 4 + len(sealed)
            require(place + length <= self.state.end, "a value reaches beyond the end", "T2")
            self.newest[plain[:SEQUENCE]] = plain, place
            position, sequence, previous = place + length, number, f.tag(sealed)
        is_last = (sequence, previous) == (self.state.sequence, self.state.tail_tag)
        require(is_last, "the last frame is not the commit slot's", "T3")

    def opened_frame(self, offset, previous, size):
        """The seal of a frame and its plaintext, without padding. `size` is that of the frames before."""
        data = self.file[offset : self.state.end]
        require(len(data) >= 4 + f.SEAL_OVERHEAD, "a frame is cut short", "T2")
        length = f.masked_length(self.keys[f.FRAME_LENGTHS], data[4:28], data[:4])
        end = 4 + f.SEAL_OVERHEAD + int.from_bytes(length, "little")
        require(size + end <= f.MAXIMUM_TAIL, "the tail is too long", "T4")
        require(end <= len(data), "a frame reaches beyond the end", "T2")
        associated = p.frame_associated(self.header.file_id, offset, length, previous)
        padded = f.open_seal(self.keys[f.FRAMES], associated, data[4:end], "a frame's metadata")
        return data[4:end], f.unpad(padded, "a frame's metadata")

    def in_base(self, wanted):
        """The last record of the only block that can have it, and where its value is. (None, 0) if there is none."""
        entries = [entry for entry in self.root.entries if entry.first_id <= wanted]
        if not entries:
            return None, 0
        entry = entries[-1]
        data = self.part("block", entry.offset, entry.length, entry.tag)
        cursor = f.Cursor(data, "a block")
        directory = [(cursor.take(16), cursor.sequence(), cursor.u32()) for _ in range(entry.items)]
        positions, places = [one[:2] for one in directory], [*(one[2] for one in directory), len(data)]
        require(positions[:1] == [entry.first], "a block's first item is not the one that names it", "B6")
        require(all(a < b for a, b in zip(positions, positions[1:])), "the items do not ascend", "B9")
        require(all(number <= self.root.sequence for _, number in positions), "an item is newer than its base", "B10")
        in_order = places[0] == cursor.position and all(a <= b for a, b in zip(places, places[1:]))
        require(in_order, "the items are not in the order of the directory", "B8")
        found = [at for at, (identifier, _) in enumerate(positions) if identifier == wanted]
        if not found:
            return None, 0
        item = f.Cursor(data[places[found[-1]] : places[found[-1] + 1]], "an item")
        record = p.Record.parse(*positions[found[-1]], item, self.root.lookup_key)
        place = item.u64() if record.is_put else 0
        item.finish()
        is_before = not record.is_put or self.start <= place <= entry.offset - record.value_length
        require(is_before, "a value is not before its block", "B7")
        return record, place
