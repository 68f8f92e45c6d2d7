"""The stages of a cycle, each a function from its plan and input files to the steps that it takes.

The extractor is left out: it publishes a folder made from another folder, as the scheduler does.
"""

from .files import TORN
from .log import Entry, whole
from .supervisor import Generation, Verification
from .web import block_of, charge, found, merge, outcomes, take_back


class Stages:
    """Part of the protocol: what the workers do. Each may be killed anywhere and run again."""

    def generation(self, look, generation):
        """The rows and `seen` of a generation; a block without one is empty and has seen nothing."""
        if generation is None:
            return Generation(None, None, None, 0, ())
        block, cycle = generation
        look.read(f"R/{block}/{cycle}/manifest")  # without it the folder would be garbage
        return whole(look, f"R/{block}/{cycle}/rows")

    def scheduler(self, look, cycle):
        plan = look.read(f"cycles/{cycle}/plan")
        rows = self.generation(look, plan.generation).rows
        chosen = tuple(self.waiting(rows)[: self.setting.list_max])
        return self.publish(look, f"cycles/{cycle}/scheduler", (("list", chosen),))

    def waiting(self, rows):
        return [row[0] for row in rows if not row[1] and row[2] < self.setting.attempts_max]

    def fetcher(self, look, cycle):
        """Asks each URL once: a page counts from the sync of its record, and that needs its folder."""
        folder = f"cycles/{cycle}/fetcher"
        if look.has(f"{folder}/manifest"):
            return self.adopt(look, folder)
        pages = f"{folder}/pages"
        old = look.read(pages) if look.has(pages) else ()
        kept = old[: old.index(TORN)] if TORN in old else old
        steps = list(self.open_folder(look, folder))
        if old == TORN or not look.has(pages):
            steps.append(("create", pages, kept := ()))
        elif kept != old:
            steps.append(("truncate", pages, len(kept)))
        steps += [("fsync", pages), ("sync", folder)]
        urls = whole(look, f"cycles/{cycle}/scheduler/list")
        wanted = [url for url in urls if url not in self.web.poison]
        for url in wanted:
            if url not in kept:
                steps += [("fetch", url), ("append", pages, url), ("fsync", pages)]
        final = kept + tuple(url for url in wanted if url not in kept)
        for url in self.web.poison.intersection(urls):
            if charge(url) in final:
                continue
            if not look.has(f"{folder}/suspect"):  # it is asked last and alone, and the fetcher dies of it
                return (*steps, ("create", f"{folder}/suspect", url), ("die",))
            steps += [("append", pages, charge(url)), ("fsync", pages)]
            final += (charge(url),)
        if look.has(f"{folder}/suspect"):
            steps.append(("unlink", f"{folder}/suspect"))
        return (*steps, *self.seal(folder, (("pages", final),)))

    def verifier(self, look, cycle):
        """Merge parent + own rows + slices [seen, p); publish the generation and AUX; commit."""
        plan = look.read(f"cycles/{cycle}/verifier.plan")
        block, n, p = plan.block, plan.n, self.absorb_up_to(look, plan)
        parent = self.generation(look, plan.parent)
        pages = ()
        if plan.kind == "crawl":
            look.read(f"cycles/{cycle}/fetcher/manifest")
            pages = whole(look, f"cycles/{cycle}/fetcher/pages")
        state = self.read_log(look)
        out = found(self.web, pages)
        own = [row for row in out if block_of(self.web.keys[row[0]], n) == block]
        aux = tuple(row for row in out if block_of(self.web.keys[row[0]], n) != block)
        arrived = (own, self.slices(look, state, block, n, parent.seen, p))
        rows = self.merge_turn(
            parent.rows, self.decisions(look, state, self.decided_from(parent), p), outcomes(pages), arrived
        )
        entry = Entry(plan.kind, cycle, block, None, (plan.parent,), ((block, cycle),), p, None, pages)
        steps = (("call", "publish_generation", cycle, Generation(cycle, block, n, p, rows, parent.text)),)
        if plan.kind == "crawl":
            steps += (("call", "publish", f"cycles/{cycle}/verifier", (("AUX", aux),)),)
        return (*steps, ("call", "commit", entry))

    def merge_turn(self, rows, decided, happened, arrived):
        """What operators took back comes before the outcomes of the cycle itself."""
        return merge(take_back(rows, decided), happened, *arrived)

    def decided_from(self, parent):
        return parent.seen

    def publish_generation(self, look, cycle, made):
        """The turn's segment of text first: no folder of its own and no manifest says that it is whole.

        Not if the generation is there: its manifest names the segment, which may not be touched again.
        """
        folder, segment, steps = f"R/{made.block}/{cycle}", f"R/text/{cycle}", ()
        if not look.has(f"{folder}/manifest"):
            steps = (("create", segment, cycle), ("fsync", segment), ("sync", "R/text"))
        merged = len(made.text) >= self.setting.segments_max  # then the turn rewrites them as one
        made = made._replace(text=(cycle,) if merged else (*made.text, cycle))
        return (*steps, ("call", "publish", folder, (("rows", made),)))

    def absorb_up_to(self, look, plan: Verification):
        return plan.p

    def splitter(self, look, cycle):
        """Rule 6: two generations of one, with the `seen` of the parent: what it owed, both owe."""
        plan = look.read(f"cycles/{cycle}/plan")
        parent, n = self.generation(look, plan.generation), plan.n + 1
        seen = self.inherited(look, parent)
        steps = (("sync", "R"),) if look.has(f"R/{plan.n}") else (("mkdir", f"R/{plan.n}"), ("sync", "R"))
        children = (plan.block, plan.n)
        for block in children:  # both name the parent's text
            rows = tuple(row for row in parent.rows if block_of(self.web.keys[row[0]], n) == block)
            made = Generation(cycle, block, n, seen, rows, parent.text)
            steps += (("call", "publish", f"R/{block}/{cycle}", (("rows", made),)),)
        made = tuple((block, cycle) for block in children)
        entry = Entry("grow", cycle, plan.block, n, (plan.generation,), made, seen)
        return (*steps, ("call", "commit", entry))

    def inherited(self, look, parent):
        return parent.seen
