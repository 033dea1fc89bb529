"""The simulator: scenario files in, columns out.

A scenario is TOML text; `name` is what error messages call it, usually its path. `overrides` are
put into it before it is looked at, one after the other: pairs of a dotted key, such as
"links.0.errors.bit" or "links.*.rate", and a value of TOML (bool, int, float, str, list or dict).
An override of a swept key takes the place of all its values; the key keeps its column. One of
"sweep" replaces the whole sweep.

Columns are lists of one length, by name, in a fixed order. A number that is not there is None.
The same scenario and seed give the same columns on every machine and any number of threads.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

__all__ = [
    "RunError",
    "ScenarioError",
    "Shell",
    "TestbedError",
    "TransferError",
    "__version__",
    "applications",
    "box_remedies",
    "boxes",
    "check",
    "clean_testbed",
    "congestion_controllers",
    "document",
    "increase_functions",
    "mechanisms",
    "open_journal",
    "part",
    "profiles",
    "queue_remedies",
    "record",
    "recoveries",
    "remedies",
    "run",
    "run_testbed",
    "schema",
    "sweep",
    "transfer",
]

__version__: str

class RunError(RuntimeError):
    """A check inside a run failed: an error of the simulator."""

class TestbedError(RuntimeError):
    """A scenario or a transfer cannot be run on real packets here; the message says why, in one
    sentence."""

class TransferError(RuntimeError):
    """The connection of a transfer failed; the message says how, in one sentence."""

class ScenarioError(ValueError):
    """A scenario that cannot be run.

    Its text is a report of several lines: the key, the value, what was expected, and the place in
    the file, of everything that is wrong.
    """

    findings: list[dict[str, Any]]
    """The same for programs, in the order of the file: `file`, `line` and `column` (int, or None
    if it is about the whole file), `key` (the dotted path, or None), `value` (as it is written, or
    None if that is long), `message` (what is wrong, and what was expected), `help` (or None)."""

def check(
    source: str, name: str, *, overrides: Sequence[tuple[str, object]] = ()
) -> dict[str, object]:
    """Makes sure that the scenario can be run at every point of its sweep, and describes it.

    `title` (str), `duration_s` (float, simulated time of a run), `points` (int, combinations of
    swept values, 1 without a sweep), `seeds` (int, runs of each), `runs` (int, points times
    seeds), `flows` (list[str], names), `links` (list[str], both directions of every link, as in
    the keys of queue series: "a->b", "b->a"), `columns` (dict[str, str], those of `sweep`, each
    with what its values are: "text", "integer", "float" or "boolean"). Title, duration, flows and
    links are those of the first point.

    Raises ScenarioError, or KeyboardInterrupt.
    """

def document(
    source: str, name: str, *, overrides: Sequence[tuple[str, object]] = ()
) -> dict[str, Any]:
    """The scenario as one dict of plain values, with the overrides in their places.

    Only the sweep is looked at. Raises ScenarioError if that makes no sense, if the text is no
    TOML, or if an override has no place.
    """

def run(
    source: str,
    name: str,
    *,
    overrides: Sequence[tuple[str, object]] = (),
    seed: int = 1,
    trace: bool = False,
    byte_mode: bool = False,
    pcap: str | PathLike[str] | None = None,
    pcap_at: Sequence[str] = (),
    events: str | PathLike[str] | None = None,
) -> dict[str, object]:
    """Runs the scenario once, as it stands without its sweep.

    `rows` (dict[str, list]): the columns of `sweep` without those of swept keys, a row per flow.

    `digest` (str, 16 hexadecimal digits): a fingerprint of every packet that arrived anywhere, and
    when.

    `fast_path_share` (float, 0 to 1): the share of segments that hosts took in on their fast path;
    None if no segment arrived.

    `links`: a row for each direction of a link, with the columns `link` ("a->b"), `packets` and
    `bytes` (accepted for transmission), and packets that were `dropped` (by the queue, or because
    the link went down), `marked` (as having met congestion), `corrupted`, `corrected` (by their own
    codes), `lost`, `duplicated` and `reordered` (they arrived after one that was sent later).

    `box_drops`: packets that boxes dropped, a row for each `node` and `reason`, with the number of
    `packets`. Reasons are "hop-limit", "sequence-exhausted" (of a security association), "replay",
    "congestion" (a mark that an inner packet cannot carry) and "loss" (of a modelled device).

    `series`: None unless `trace`, else a dict of four:
    - `flows`, by the flow's name, a row for every change of what its sender thinks: `t_s`,
      `cwnd_bytes`, `cwnd_plus_dupacked_bytes` (the window as RFC 5681 inflates it),
      `ssthresh_bytes` (None while arbitrarily high), `srtt_s` (None before the first sample),
      `rto_s`, `flight_bytes`;
    - `deliveries`, by the flow's name, a row for each hundredth of the duration, or for each
      second: `t_s`, `payload_bytes` (that the receiving application has, in order);
    - `queues`, by direction ("a->b"), a row for every change: `t_s`, `packets` (waiting or in
      transmission);
    - `boxes`, by node, if boxes there hold something, a row for every change: `t_s`, and a column
      for each quantity: `held_bytes` and `split_connections` of spoofers and stations,
      `cached_segments` of Snoop; where a node has several boxes, their sums.

    `distributions` (list of tuples): what it is of ("rtt", "srtt" and "delay" of a flow,
    "queue_delay" of a direction), the name of that, and the columns `time_s`, ascending, and
    `count`, how many samples took so long. One without samples is left out.

    Columns of series and distributions are tuples: the type of the values ("i8" or "f8"), the
    values as bytes, and None or a byte for each that is 0 where there is none.

    With `byte_mode`, every packet is written as bytes and read again before every link, which
    changes nothing but the speed. `pcap` is a file to be written (pcapng) with the packets of
    `pcap_at`: directions of links ("a->b"), whose packets are seen as they are sent, and nodes
    ("a"), of which everything is seen; all links if there are none.

    `events` is a file to be written with the events of all connections, one a line, in JSON:
    `t_s`, `node`, `flow`, `event` (its kind) and its values. Octets are counted from the SYN, which
    is 0; durations are nanoseconds.

    `seed` is 0 to 2**63 - 1. Raises ScenarioError, OSError if a file cannot be written,
    KeyboardInterrupt, or RunError if a check inside the simulation failed.
    """

def run_testbed(
    source: str,
    name: str,
    *,
    overrides: Sequence[tuple[str, object]] = (),
    seed: int = 1,
) -> dict[str, object]:
    """Runs the scenario once on real packets, without its sweep, in as much time as it lasts.

    `rows`, `links`, `box_drops` and `distributions`: as `run` gives them; counts that an end does
    not report are None, and `events` is the number of packets that entered links.

    `health` (dict): `packets` that came to links, how many were `late` or `lost` without a link's
    doing, `median_s`, `p99_s`, `worst_s` (how much later than they should they left a link),
    `limit_s` (from when on one is late), `steal` (the share of the machine's time that a hypervisor
    took), `void` (None, or why the run says nothing about the scenario).

    The seed decides what links do with the packets that come, and what is random about traffic.
    Raises ScenarioError, TestbedError if it cannot be run here, or KeyboardInterrupt. Whatever
    happens, nothing is left of it.
    """

def transfer(
    file: int,
    port: int,
    watch: Callable[[int, list[str]], object],
    *,
    sends: bool,
    peer: str | None = None,
    source: str = "",
    overrides: Sequence[tuple[str, object]] = (),
    address: str | None = None,
    masquerade: bool = False,
) -> dict[str, Any]:
    """Sends what can be read from a file descriptor by our TCP, or writes there what it receives.

    It connects to `port` of `peer`, an IP address, or else waits there for a connection. `source`
    is TOML with `profile` and `tcp`, as a scenario has them. `address` is that of our end. With
    `masquerade` a peer beyond this machine is reached by address translation. `watch` is called
    some twenty times a second with the bytes that have arrived and with new sentences for the user.

    `local` and `remote` (str, address and port), `bytes`, `seconds`, the counts of our sender
    `segments`, `retransmissions` and `timeouts`, `srtt_s` and `min_rtt_s` (None without a sample),
    `peer_end` ("closed", "open" or "reset") and `discarded` (bytes of the peer that a sender had no
    use for). Raises ScenarioError, TestbedError if this machine cannot do it, TransferError if the
    connection fails, OSError if the file does, KeyboardInterrupt. Whatever happens, nothing is left
    of it.
    """

class Shell:
    """The nodes, links and boxes of a scenario on real packets, for programs instead of flows.

    Programs run at the receiver of the flow with this index, the near end. At its sender, the far
    end, is the network of this machine with `machine`, else a namespace for servers. `congestion`
    is the default of the kernels at both ends. The scenario is that without its sweep. When this is
    dropped, its programs are ended, and nothing is left.

    Raises ScenarioError, or TestbedError if it cannot be run here.
    """

    def __init__(
        self,
        source: str,
        name: str,
        *,
        overrides: Sequence[tuple[str, object]] = (),
        seed: int = 1,
        flow: int = 0,
        machine: bool = False,
        congestion: str | None = None,
    ) -> None: ...
    def addresses(self, *, far: bool) -> list[str | None]:
        """The addresses of an end, of IPv4 and IPv6. Those of the far end are the machine's, if
        that is there, of those versions of IP that it has."""

    def words(self) -> list[str]:
        """What was changed on the machine, and what of its network cannot be reached."""

    def launch(
        self,
        words: Sequence[str],
        environment: Sequence[tuple[str, str]],
        *,
        far: bool = False,
        user: tuple[int, int, Sequence[int]] | None = None,
        resolver: str | PathLike[str] | None = None,
        background: bool = False,
    ) -> int:
        """Starts a program at an end, as a child of this process, and returns its process id.

        `environment` is all of it. `user` are the numbers of a user, of the user's group and of all
        groups. The program reads `resolver` at /etc/resolv.conf. One in the background reads
        nothing, and writes to the standard error alone. Raises OSError.
        """

    def is_served(self) -> bool:
        """Whether a program at the far end waits for connections or datagrams."""

    def stop(self) -> dict[str, Any]:
        """Ends all programs that are in the network, and the network; what happened there, as
        `run_testbed` gives it, without rows."""

def clean_testbed() -> list[str]:
    """Removes what is left of runs, transfers and shells on real packets whose process was killed,
    and ends programs that are in their namespaces.

    Returns what was removed: names of network namespaces, and nft tables. Raises TestbedError.
    """

def sweep(
    source: str,
    name: str,
    *,
    overrides: Sequence[tuple[str, object]] = (),
    seeds: int | None = None,
    first_seed: int = 1,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, list[Any]]:
    """Runs every point of the sweep with every seed; without a sweep there is one point.

    `seeds` are runs per point, with seeds from `first_seed` on; None is as many as the file says,
    or 1. `threads` 0 is one for each processor. `progress` is called on the calling thread, some
    twenty times a second at most, with the runs that are done and all there are, the last time
    with all done; what it raises ends the sweep and is raised here.

    A row for every point (the first swept key changes slowest), seed and flow. Columns:
    - every swept key, as written: numbers or bools if all values are, else str;
    - `seed` (int), `flow`, `from`, `to` (str);
    - `duration_s`: from the flow's start to its completion or to the end of the run;
    - `payload_bytes`: bytes that the receiving application got, in order, once; of requests,
      the responses;
    - `payload_bps`: those in bits, per second of `duration_s`;
    - `goodput_bps`: the same with 40 bytes of TCP and IP headers (60 with IPv6) for every
      full-sized segment, as publications of old count;
    - `completed_s`: from the flow's start until the receiver had everything; None for a flow that
      never ends or did not end in time;
    - `acknowledged_s`: from the start of a single transfer until its sender had the acknowledgment
      of everything; None if it had not;
    - `started`, `finished`: transfers, or requests, and how many of them have all their data;
    - `failed`: those that were given up;
    - `time_mean_s`, `time_median_s`, `time_p95_s`: how long those took that have; None without any;
    - `slowdown_mean`, `slowdown_median`, `slowdown_p95`: the same in units of the least possible
      time;
    - `datagrams_sent`, `datagrams_received`, `datagram_loss` (the share that did not arrive): of
      flows of UDP; 0, 0, None for others;
    - `data_dropped`: packets with the flow's data that queues, or links that went down, have
      dropped on the whole path;
    - `rtt_min_s`, `rtt_mean_s`, `rtt_median_s`, `rtt_p95_s`, `rtt_p99_s`: of the sender's
      round-trip samples; None without any, and in a sweep unless the scenario has `latency = true`;
    - `srtt_mean_s`, `srtt_median_s`, `srtt_p95_s`, `srtt_p99_s`: of the smoothed round-trip time
      after each of those samples;
    - `delay_min_s`, `delay_mean_s`, `delay_median_s`, `delay_p95_s`, `delay_p99_s`: one-way delays
      of datagrams that are sent at a constant rate; None like the round trips, and on real packets;
    - `segments`, `retransmissions`, `timeouts`, `reductions` (of the window, those by timeouts
      not counted), `notices` (of corruption that led to a retransmission): counts of the sender;
    - `reprobes`: how often the sender restarted after an indication of a new path;
    - `repairs` (sent), `rebuilt` (by the receiver): packets of erasure coding;
    - `misplaced`: 0, else the run is in error;
    - `dropped` (by queues, and by links that went down), `corrupted`, `corrected` (by their own
      codes), `lost` (vanished): packets on all links of the run;
    - `queue_delay_mean_s`, `queue_delay_median_s`, `queue_delay_p95_s`, `queue_delay_p99_s`: from
      a packet's acceptance by a link to its transmission, at the direction with the largest 95th
      percentile; None like the round trips;
    - `events`: events of the simulation;
    - `rtt_counts`, `srtt_counts`, `delay_counts`, `queue_delay_counts` (str): the distributions
      that those are of, only if the scenario has `latency = "distributions"`: a JSON list of pairs,
      a time in nanoseconds, ascending, and how many samples took so long.

    Raises ScenarioError before the first run, KeyboardInterrupt, or RunError if a check inside
    the simulation failed.
    """

def record(
    source: str,
    name: str,
    journal: str | PathLike[str],
    about: str,
    *,
    overrides: Sequence[tuple[str, object]] = (),
    seeds: int | None = None,
    first_seed: int = 1,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Does as `sweep`, but the rows go into a file as runs finish, in the order of `sweep`.

    The first line of the file is `about`, one line that says what the runs depend on. The rest is
    CSV: a line with the names of the columns, and the rows; the first column, `run`, counts the
    runs from 0. A file that is there with the same `about` is gone on with; what a crash left of a
    run at its end is made anew. Whenever the work ended, the bytes of a whole file are the same.

    Returns how many runs were there. Raises as `sweep` does, FileExistsError if the file is about
    something else, and OSError if it cannot be written; what it has by then are whole runs.
    """

def open_journal(
    source: str,
    name: str,
    journal: str | PathLike[str],
    about: str,
    *,
    overrides: Sequence[tuple[str, object]] = (),
    seeds: int | None = None,
    first_seed: int = 1,
) -> int:
    """Makes the file of `record` ready for more rows, which come from `part`.

    Returns how many runs are there. Raises as `record` does, but looks at no point of the sweep.
    """

def part(
    source: str,
    name: str,
    first: int,
    end: int,
    *,
    overrides: Sequence[tuple[str, object]] = (),
    seeds: int | None = None,
    first_seed: int = 1,
    threads: int = 0,
) -> bytes:
    """Does the runs from `first` up to, but not including, `end`, of those that `record` counts.

    Returns their rows as they are in the file of `record`. Raises as `sweep` does, but looks at no
    other point than those of these runs.
    """

def schema() -> str:
    """What a scenario file may say: a JSON Schema (2020-12), as JSON."""

def remedies() -> list[dict[str, Any]]:
    """What may help a flow to have more of its path, of everything that there is.

    `name` (str, or None if its settings say what it is), `settings` (list of dicts, one for each
    place: `place`, and `toml`, lines for the table there; see below), `needs` (list[str]: "sender",
    "receiver", "middlebox", "host agent": who must change; "hop transport", "clear headers", "both
    directions", "split connection", "warning", "ipsec": what else it takes), `means` (str: how the
    parties change, by a "setting" that operating systems have, or by other "code"), `modes`
    (list[str]: those of `lasthopd` that do what nodes or an agent have to do), `research` (bool; no
    operating system has it, and no mode of `lasthopd`), `buildable` (bool; what cannot be built
    says what knowing every error at once would gain), `lead_s` (float; how long it is to be there
    before a flow starts).

    A place is "tcp", the flow's `tcp` table; "flow", the flow's own; "link", that of the slowest
    link, in the flow's direction; or the table of nodes at the bad hop: "before hop", the node
    before it; "host", the end of the flow at its end; "attachments", every node to which that host
    is attached; "peer", the other end of the flow. `boxes` of a node are added to those that it
    has.
    """

def box_remedies(
    neighbour: str, *, rate: str, delay: str, mtus: list[str], flow: str | None = None
) -> list[dict[str, Any]]:
    """What may help flows in the boxes of nodes at a bad hop, of everything that there is.

    `neighbour` is the node behind the hop; its rate, delay and MTUs are as TOML has them. What is
    no quantity is not known; the least of the MTUs counts. `flow` is the name of the flow, if there
    are others. The dicts are those of `remedies`.
    """

def queue_remedies(*, rate: str, round_trip: str) -> list[dict[str, Any]]:
    """What the queue of a flow's slowest link may be instead.

    `rate` is that of the link, `round_trip` that of the path with empty queues, as TOML has them;
    there is nothing if either is no quantity. The dicts are those of `remedies`.
    """

def applications() -> list[str]:
    """The names of the applications, for `traffic = { application = NAME, ... }` of a flow."""

def boxes() -> list[str]:
    """The names of the boxes, for `boxes = [{ box = NAME, ... }]` of a node."""

def mechanisms() -> list[str]:
    """The names of the mechanisms, for `mechanisms = [{ mechanism = NAME, ... }]` of a flow."""

def congestion_controllers() -> list[str]:
    """The names of the controllers that size the congestion window."""

def increase_functions() -> list[str]:
    """The names of the functions by which the window grows in congestion avoidance."""

def recoveries() -> list[str]:
    """The names of the algorithms that detect and repair losses."""

def profiles() -> list[str]:
    """The names of the sets of defaults: ns-2 as it was, and today's RFCs."""
