"""Publishing a folder whole or not at all, and taking it away again (rules 1 and 7)."""

from .files import folder_and_name


class Publishing:
    """Part of the protocol: the orders of file operations that everything else is made of."""

    def put_new(self, path, content):
        """Put-if-absent: write aside, sync, link, sync folder. If it is there, it has these bytes.

        The name aside goes before the last sync, which so leaves no litter and costs nothing more.
        The file aside is a *new* inode each time. A writer that died after its link left the name
        aside pointing at the published file; truncating that name would tear what is published.
        """
        aside = path + ".new"
        return (
            ("create", aside, content),
            ("fsync", aside),
            ("link", aside, path, (), ()),
            ("unlink", aside),
            ("sync", folder_and_name(path)[0]),
        )

    def open_folder(self, look, folder):
        """Make a folder, and make sure that a power cut keeps it, whoever made it.

        The entries above are synced even when the folder is there: the process that made it may
        have died before its own sync.
        """
        above = folder_and_name(folder)[0]
        steps = () if look.has(folder) else (("mkdir", folder),)
        return (*steps, ("sync", above))

    def publish(self, look, folder, files):
        if look.has(f"{folder}/manifest"):
            return self.adopt(look, folder)
        steps = []
        for name, content in files:
            steps += [("create", f"{folder}/{name}", content), ("fsync", f"{folder}/{name}")]
        return (*self.open_folder(look, folder), *steps, ("sync", folder), *self.seal(folder, files))

    def adopt(self, look, folder):
        """A manifest that is seen need not be kept: its writer may have died before the last sync."""
        aside = f"{folder}/manifest.new"
        return (*((("unlink", aside),) if look.has(aside) else ()), ("sync", folder))

    def seal(self, folder, files):
        """The manifest names every file with its checksum; the model's checksum is the content."""
        return self.put_new(f"{folder}/manifest", tuple(files))

    def remove_folder(self, look, folder):
        """Manifest first; it must be gone for good before anything goes that stood because of it.

        The sync is for a manifest that is gone already as well: its remover may have died before it.
        """
        names = look.names(folder)
        steps = []
        if "manifest" in names:
            names.remove("manifest")
            steps.append(("unlink", f"{folder}/manifest"))
        steps += self.settle_removal(folder)
        return (*steps, *(("unlink", f"{folder}/{name}") for name in names), ("rmdir", folder))

    def settle_removal(self, folder):
        return [("sync", folder)]
