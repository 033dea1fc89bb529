"""Sweeps on many machines, by dask.distributed.

A sweep is cut into parts of up to hundreds of runs. Workers do them and give back their rows as
bytes; nothing is written where they are. What becomes of a run depends on nothing but the
scenario, the point and the seed, so that whose worker is lost is simply done again by another.
"""

from __future__ import annotations

import hashlib
import json
import logging
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lasthop import _lasthop as engine
from lasthop.errors import UserError
from lasthop.results import FORMAT, about
from lasthop.scenario import Scenario, fingerprint

if TYPE_CHECKING:
    from distributed import Client, Future
    from tornado.ioloop import IOLoop

    Part = Future[tuple[bytes, float]]

#: How long the scheduler may take to answer, and a cluster may have no worker, seconds.
PATIENCE = 10.0

#: How long a part takes, about, seconds: long beside the milliseconds that handing it out takes,
#: and no great loss.
_LENGTH = 2.0
#: No part has more runs than this.
_LARGEST = 1000
#: Parts for every thread of the cluster that are handed out at a time. Those that are finished
#: before an earlier one wait for it where they were made.
_AHEAD = 4
#: How often to look whether a part is done, seconds.
_INTERVAL = 0.05

#: The expression that a worker evaluates. Dask unpickles functions at the worker, and a worker that
#: cannot, because lasthop is missing, ends itself; a failing expression is an error at the client.
_DO = "__import__('lasthop.cluster').cluster.do(*job)"

_GONE = "the cluster's scheduler is gone"


@dataclass(frozen=True)
class Job:
    """Some runs of a sweep, as they are sent to a worker."""

    source: str
    name: str
    overrides: tuple[tuple[str, object], ...]
    seeds: int
    first_seed: int
    #: The first run, and that after the last.
    first: int
    end: int
    #: The fingerprints of the files that the scenario names.
    files: dict[str, str | None]
    #: What must be the same there.
    version: dict[str, int | str]


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A connection to the scheduler at an address such as "tcp://host:8786"."""
    try:
        from distributed import Client
        from distributed.utils import LoopRunner
    except ImportError:
        raise UserError("a cluster takes dask: pip install 'lasthop[cluster]'") from None
    with ExitStack() as ends:
        for name in ("distributed", "distributed.client", "asyncio", "tornado.application"):
            # Errors are raised, and not logged as well.
            logger = logging.getLogger(name)
            ends.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        runner = LoopRunner()
        runner.start()
        ends.callback(runner.stop)
        _look(address, runner.loop)
        try:
            client = Client(address, timeout=PATIENCE, loop=runner.loop, set_as_default=False)
        except OSError:
            raise _silent(address) from None
        ends.callback(_leave, client)
        yield client


def _leave(client: Client) -> None:
    # That a dying cluster does not answer then, either, is no news.
    with suppress(Exception):
        client.close(timeout=PATIENCE)


def _look(address: str, loop: IOLoop) -> None:
    """Makes sure that a scheduler is there. A client that finds none says less, much later."""
    from distributed import Security
    from distributed.comm.addressing import get_address_host_port
    from distributed.core import rpc
    from distributed.utils import sync

    async def identity() -> dict[str, Any]:
        async with rpc(address, connection_args=options) as there:
            return cast("dict[str, Any]", await there.identity())

    try:
        get_address_host_port(address)
    except ValueError as error:
        raise UserError(f"a scheduler's address is like tcp://host:8786: {error}") from None
    options = Security().get_connection_args("client")
    if address.startswith("tls:") and options["ssl_context"] is None:
        raise UserError("tls takes certificates, and dask's configuration names none")
    try:
        kind = sync(loop, identity, callback_timeout=PATIENCE)["type"]
    except OSError:
        raise _silent(address) from None
    if kind != "Scheduler":
        raise UserError(f"at {address!r} there is no scheduler, but a {kind.lower()}")


def _silent(address: str) -> UserError:
    return UserError(f"no dask scheduler answers at {address!r}")


def parts(
    client: Client, scenario: Scenario, seeds: int, first_seed: int, first: int, last: int
) -> Iterator[tuple[int, bytes]]:
    """The rows of the runs from `first` up to, but not including, `last`: part by part, in order.

    With each comes the number of the run after it.
    """
    from distributed import KilledWorker
    from distributed.client import ClosedClientError

    said = [about(scenario), _version(), seeds, first_seed]
    sweep = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    files = {str(file.absolute()): fingerprint(file) for file in scenario.files}
    handed_out: deque[tuple[int, int, Part]] = deque()
    runs, seconds = 0, 0.0
    try:
        while first < last or handed_out:
            threads = _threads(client)
            while first < last and len(handed_out) < _AHEAD * threads:
                # At first one run, to see how long it takes; less towards the end, which all
                # workers shall reach together.
                size = int(_LENGTH * runs / seconds) if runs else 1
                size = max(1, min(size, _LARGEST, (last - first) // (2 * threads)))
                job = Job(
                    scenario.source,
                    # From where the names of files are looked at.
                    str(Path(scenario.name).absolute()) if files else scenario.name,
                    scenario.overrides,
                    seeds,
                    first_seed,
                    first,
                    first + size,
                    files,
                    _version(),
                )
                # The same runs have the same name, for every client.
                name = f"lasthop-{sweep}-{job.first}-{job.end}"
                with _undisturbed():
                    part = client.submit(eval, _DO, {"job": astuple(job)}, key=name)
                handed_out.append((job.first, job.end, part))
                first = job.end
            begun, end, part = handed_out[0]
            if not part.done():
                time.sleep(_INTERVAL)
                continue
            try:
                rows, took = part.result(timeout=PATIENCE)
            except TimeoutError:
                # Its worker is gone, and another repeats it.
                continue
            handed_out.popleft()
            runs, seconds = runs + end - begun, seconds + took
            yield end, rows
    except (CancelledError, ClosedClientError):
        raise UserError(_GONE) from None
    except KilledWorker as error:
        died = error.allowed_failures + 1
        raise UserError(f"{died} workers died of the same runs: look into their logs") from None
    except ImportError as error:
        raise UserError(
            f"a worker has no lasthop, or another one: install {engine.__version__} there ({error})"
        ) from None


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Lets an interruption wait until this is done.

    Dask prints useless messages when a half-made future is discarded.
    """
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread is interrupted.
        yield
        return
    came: list[Any] = []
    usual = signal.signal(signal.SIGINT, lambda *signalled: came.append(signalled))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came and callable(usual):
            usual(*came[0])


def do(*fields: Any) -> tuple[bytes, float]:
    """Runs a Job at a worker: the rows of its runs, and how long they took, in seconds."""
    # The last field is the version in every version of lasthop.
    if fields[-1] != _version():
        raise UserError(
            f"the worker on {socket.gethostname()!r} has lasthop {_words(_version())}, not"
            f" {_words(fields[-1])} as here: results might differ"
        )
    job = Job(*fields)
    for file, said in job.files.items():
        if fingerprint(Path(file)) != said:
            raise UserError(
                f"the worker on {socket.gethostname()!r} has another {file!r} than here, or none"
            )
    begun = time.perf_counter()
    rows = engine.part(
        job.source,
        job.name,
        job.first,
        job.end,
        overrides=job.overrides,
        seeds=job.seeds,
        first_seed=job.first_seed,
        threads=1,
    )
    return rows, time.perf_counter() - begun


def _threads(client: Client) -> int:
    """How many the cluster has; one without workers may get some soon."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            threads: int = sum(client.nthreads().values())
        except (OSError, AttributeError):
            # Of a client that has given up the scheduler is None.
            raise UserError(_GONE) from None
        if threads:
            return threads
        if time.monotonic() > until:
            raise UserError("the cluster has no workers: start some with `dask worker`")
        time.sleep(_INTERVAL)


@cache
def _version() -> dict[str, int | str]:
    schema = hashlib.sha256(engine.schema().encode()).hexdigest()
    return {"lasthop": engine.__version__, "format": FORMAT, "schema": schema}


def _words(version: dict[str, int | str]) -> str:
    return f"{version['lasthop']} (schema {str(version['schema'])[:8]})"
