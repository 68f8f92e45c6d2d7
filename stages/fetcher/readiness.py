"""Which sockets are ready: all of them in one epoll, whose descriptor trio waits for together with a deadline."""

import select

import trio

READABLE, WRITABLE, ERROR, HANGUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR, select.EPOLLHUP
EVENTS_MAX = 32  # sockets handled before time, bandwidth and new requests are looked at again


class Readiness:
    def __init__(self):
        self._epoll = select.epoll()
        self._watched: set[int] = set()
        self._nap: trio.CancelScope | None = None
        self.failure: OSError | None = None  # kept, because the callbacks of libcurl must not raise

    def watch(self, descriptor: int, events: int) -> None:
        self._watched.add(descriptor)
        try:
            self._epoll.modify(descriptor, events)
        except FileNotFoundError:  # a new socket, or one whose number a closed one had
            try:
                self._epoll.register(descriptor, events)
            except OSError as error:
                self.failure = error

    def unwatch(self, descriptor: int) -> None:
        """The socket stays in the epoll: a kept connection is watched again soon."""
        self._watched.discard(descriptor)

    async def wait(self, wait_s: float) -> list[tuple[int, int]]:
        """Watched sockets that are ready, with their events; none where the time is over or wake() was called."""
        if events := self._epoll.poll(0, EVENTS_MAX):
            await trio.lowlevel.checkpoint()
        else:
            with trio.move_on_after(max(0.0, wait_s)) as self._nap:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
            self._nap = None
            events = self._epoll.poll(0, EVENTS_MAX)
        return events

    def is_watched(self, descriptor: int) -> bool:
        return descriptor in self._watched

    def forget(self, descriptor: int) -> None:
        """Takes out a kept connection with an event that no transfer waits for: its server closes it."""
        try:
            self._epoll.unregister(descriptor)
        except OSError:
            pass  # closed meanwhile, which takes it out as well

    def wake(self) -> None:
        if self._nap is not None:
            self._nap.cancel()

    def close(self) -> None:
        self._epoll.close()
