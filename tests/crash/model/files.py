"""A file system in memory that tells what every process sees from what a power cut would leave.

Theory. POSIX promises less than people remember, and this model promises no more than POSIX:

- Each folder has two tables of entries: `tree`, which all processes see at once, and `disk`, which
  survives a power cut. Only a sync of that folder copies the first to the second; until then each
  changed entry (created, replaced or removed) reaches the disk or does not, one by one, in any order.
  A sync of a file does not write the entry that names it, a sync of a folder does not write the
  entry that names the folder, nor the contents of its files.
- Each file has a content that all see and a content that was synced. A power cut tears what was not
  synced: the file is there (if its entry is) and its bytes are not.
- A kill takes nothing from the files. What a dead process left is *seen* but need not be *kept*:
  most of the mistakes in `wrong.py` that people would really make come from taking one for the other.

Inner tables are replaced, never changed in place, so that a clone is three shallow copies.
"""

from functools import cache

TORN = "torn"
TOP = 0  # inode of the folder that holds everything
RECENT = 5  # changed entries that the exhaustive exploration loses or keeps one by one


class Missing(Exception):
    """A process wanted a file or folder that is not there."""


@cache
def split(path):
    return tuple(path.split("/")) if path else ()


@cache
def folder_and_name(path):
    folder, _, name = path.rpartition("/")
    return folder, name


class Files:
    __slots__ = ("tree", "disk", "data", "last", "recent", "paths", "parts", "stale")

    def __init__(self):
        self.tree = {TOP: {}}
        self.disk = {TOP: {}}
        self.data = {}  # inode of a file: (content, synced content or None)
        self.last = TOP
        self.recent = ()  # the last entries that changed, as (folder, name)
        self.paths = {TOP: ""}  # inode of a folder: where it stands
        self.parts = {}  # inode of a folder: its part of key()
        self.stale = {TOP}  # folders whose part is to be worked out again

    def clone(self):
        other = Files.__new__(Files)
        other.tree, other.disk = self.tree.copy(), self.disk.copy()
        other.data, other.last, other.recent = self.data.copy(), self.last, self.recent
        other.paths, other.parts, other.stale = self.paths.copy(), self.parts.copy(), self.stale.copy()
        return other

    # Looking: no step of its own, everybody may do it at any time.

    def find(self, path, base=TOP):
        tree, node = self.tree, base
        try:
            for name in split(path):
                node = tree[node][name]
        except KeyError:
            return None
        return node

    def need(self, path, base):
        node = self.find(path, base)
        if node is None:
            raise Missing(path)
        return node

    def read(self, path, base=TOP):
        return self.data[self.need(path, base)][0]

    def names(self, path, base=TOP):
        return sorted(self.tree[self.need(path, base)])

    def contents(self, path, base=TOP):
        """Name and content of every file in a folder."""
        data = self.data
        return {name: data[node][0] for name, node in self.tree[self.need(path, base)].items() if node in data}

    def is_folder(self, path, base=TOP):
        return self.find(path, base) in self.tree

    # Operations: each is one step, between two of which the power may fail.

    def mkdir(self, path, base=TOP):
        self.last += 1
        self.tree[self.last], self.disk[self.last] = {}, {}
        self.paths[self.last] = f"{self.paths[base]}/{path}".lstrip("/")
        self.stale.add(self.last)
        self._enter(path, base, self.last)

    def create(self, path, content, base=TOP):
        """A new file under a name of the writer's own (O_EXCL with a unique name, or O_TMPFILE)."""
        self.last += 1
        self.data[self.last] = (content, None)
        self._enter(path, base, self.last)

    def write(self, path, content, base=TOP):
        """Empty and write in place: who else links to the inode sees it, and nothing of it is synced."""
        node = self.find(path, base)
        if node is None:
            self.create(path, content, base)
        else:
            self._fill(path, base, node, content, None)

    def truncate(self, path, length, base=TOP):
        """Cut a tail off."""
        node = self.need(path, base)
        content, synced = self.data[node]
        self._fill(path, base, node, content[:length], synced)

    def append(self, path, record, base=TOP):
        node = self.need(path, base)
        content, synced = self.data[node]
        self._fill(path, base, node, content + (record,), synced)

    def fsync(self, path, base=TOP):
        node = self.need(path, base)
        content = self.data[node][0]
        self._fill(path, base, node, content, content)

    def sync(self, path, base=TOP):
        node = self.need(path, base)
        self.disk[node] = self.tree[node]
        self.stale.add(node)

    def link(self, old, new, base=TOP):
        """True if `new` was made, False if it was there already: the one test-and-set of the protocol."""
        if self.find(new, base) is not None:
            return False
        self._enter(new, base, self.need(old, base))
        return True

    def rename(self, old, new, base=TOP):
        node = self.need(old, base)
        self._enter(old, base, None)
        self._enter(new, base, node)

    def unlink(self, path, base=TOP):
        self.need(path, base)
        self._enter(path, base, None)

    def rmdir(self, path, base=TOP):
        node = self.need(path, base)
        if self.tree[node]:
            raise Missing(f"{path} is not empty")
        self._enter(path, base, None)
        self.parts.pop(node, None)
        self.stale.discard(node)

    def _enter(self, path, base, node):
        folder, name = folder_and_name(path)
        parent = self.need(folder, base)
        entries = dict(self.tree[parent])
        if node is None:
            del entries[name]
        else:
            entries[name] = node
        self.tree[parent] = entries
        self.stale.add(parent)
        self.recent = ((parent, name), *self.recent[: RECENT - 1])

    def _fill(self, path, base, node, content, synced):
        self.data[node] = (content, synced)
        self.stale.add(self.find(folder_and_name(path)[0], base))

    # The power cut.

    def pending(self):
        """Entries that a power cut may or may not keep, as (folder, name), in a fixed order."""
        return [
            (node, name)
            for node in self.reached(self.tree, self.disk)
            if (seen := self.tree[node]) is not (kept := self.disk[node])
            for name in sorted(seen.keys() | kept.keys())
            if seen.get(name) != kept.get(name)
        ]

    def reached(self, *tables):
        """The folders that can be reached from the top by the entries of these tables."""
        reached = {TOP: None}
        queue = [TOP]
        for node in queue:  # grows while we walk it
            for table in tables:
                for child in table[node].values():
                    if child in self.tree and child not in reached:
                        reached[child] = None
                        queue.append(child)
        return queue

    def cut(self, survivors, contents_survive=False):
        """The power fails: of the pending entries only `survivors` have reached the disk."""
        self.disk = self.disk.copy()
        for node, name in survivors:
            entries = dict(self.disk[node])
            if name in self.tree[node]:
                entries[name] = self.tree[node][name]
            else:
                entries.pop(name, None)
            self.disk[node] = entries
        self.disk = {node: self.disk[node] for node in self.reached(self.disk)}
        self.tree = self.disk.copy()
        files = {node for entries in self.disk.values() for node in entries.values() if node in self.data}
        self.data = {node: torn(self.data[node], contents_survive) for node in files}
        self.recent, self.parts, self.stale = (), {}, set(self.disk)

    # Comparing.

    def key(self):
        """A hash of all that can matter later: inode numbers cannot, so they stay out."""
        for node in self.stale:
            self.parts[node] = self._part(node)
        self.stale = set()
        return hash(tuple(sorted(self.parts.values())))  # not their sum: hashes of tuples are too regular for that

    def _part(self, node):
        seen, kept = self.tree[node], self.disk[node]
        part = [self.paths[node]]
        for name in sorted(seen if seen is kept else seen.keys() | kept.keys()):
            now, old = seen.get(name), kept.get(name)
            part.append((name, now == old, self.data.get(now)))
            if old is not None and old != now:
                part.append(self._image(old))
        return hash(tuple(part))

    def _image(self, node):
        if node in self.data:
            return hash(self.data[node][1])
        return hash(tuple((name, self._image(child)) for name, child in sorted(self.disk[node].items())))


def torn(data, survives):
    """What a power cut makes of a file; of one that only grew or shrank at its end the rest stays."""
    content, synced = data
    if content == synced or survives:
        return content, content
    if isinstance(synced, tuple) and isinstance(content, tuple):
        if content[: len(synced)] == synced:
            return (*synced, TORN), (*synced, TORN)
        if synced[: len(content)] == content:
            return synced, synced
    return TORN, TORN


class View:
    """What one process may look at: the files under its crawl folder."""

    __slots__ = ("files", "base")

    def __init__(self, files, base):
        self.files, self.base = files, base

    def has(self, path):
        return self.files.find(path, self.base) is not None

    def read(self, path):
        return self.files.read(path, self.base)

    def names(self, path):
        return self.files.names(path, self.base)

    def is_folder(self, path):
        return self.files.is_folder(path, self.base)

    def contents(self, path):
        return self.files.contents(path, self.base)
