"""Work in a thread of its own, told of in the event loop."""

import asyncio
import threading

from horolog.broker.network.background import in_thread


def test_what_comes_of_it_is_told_in_the_event_loop():
    async def run():
        told = asyncio.Queue()
        loop = asyncio.get_running_loop()
        threads = []

        def work():
            threads.append(threading.current_thread())
            return 7

        def fail():
            raise OSError("no answer")

        in_thread(loop, work, told.put_nowait)
        assert await told.get() == 7
        assert threads[0].daemon
        assert threads[0] is not threading.current_thread()
        in_thread(loop, fail, told.put_nowait)
        assert isinstance(await told.get(), OSError)

    asyncio.run(run())


def test_a_loop_that_has_ended_is_told_nothing():
    loop = asyncio.new_event_loop()
    loop.close()
    told = []
    in_thread(loop, lambda: 7, told.append)
    for thread in threading.enumerate():
        if thread.name == "fetch":
            thread.join(60)
    assert told == []
