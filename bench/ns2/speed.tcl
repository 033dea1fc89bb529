# How fast ns-2 2.35 is: bulk SACK flows over one link, 1448-byte segments, an ACK for each,
# timestamps, no tracing.
#
#   ns speed.tcl case=one family=Sack1
#       One flow over 100 Mb/s, 10 ms one way, window 250 and queue 1000 packets: no losses.
#   ns speed.tcl case=fifty family=FullTcp/Sack headers=used
#       50 flows over 100 Mb/s, 20 ms one way, window 64 each and queue 500 packets: sharing, with
#       losses.
#   ns speed.tcl case=1000
#       The same for so many flows: 2 Mb/s and a queue of 10 packets for each.
#
# Prints one line of JSON: the segments delivered and the CPU time that the simulation itself took,
# without ns-2's start.
array set arg {case one family Sack1 duration 120 headers all}
foreach word $argv {
  if {![regexp {^([a-z_]+)=(.*)$} $word -> key value] || ![info exists arg($key)]} {
    puts stderr "speed.tcl: not an argument: $word (known: [lsort [array names arg]])"
    exit 2
  }
  set arg($key) $value
}
if {$arg(case) eq "one"} {
  set flows 1; set rate 100e6; set delay 0.010; set window 250; set queue 1000
} else {
  set flows [expr {$arg(case) eq "fifty" ? 50 : $arg(case)}]
  if {![string is integer -strict $flows] || $flows < 1} {
    puts stderr "speed.tcl: case is one, fifty or a number of flows, not $arg(case)"
    exit 2
  }
  set rate [expr {2e6 * $flows}]; set delay 0.020; set window 64; set queue [expr {10 * $flows}]
}
if {[lsearch {Sack1 FullTcp/Sack} $arg(family)] < 0} {
  puts stderr "speed.tcl: unknown family $arg(family)"
  exit 2
}
set mss 1448
# A two-way agent numbers bytes in an int: one flow at 100 Mb/s must end before byte 2^31.
if {$arg(duration) > 170 && $arg(case) eq "one" && $arg(family) eq "FullTcp/Sack"} {
  puts stderr "speed.tcl: sequence numbers would overflow after 176 s"
  exit 2
}

# For the classes, before an agent exists: ssthresh is taken from window_ when an agent is made.
Agent/TCP set window_ $window
Agent/TCP set packetSize_ $mss
Agent/TCP set timestamps_ true
Agent/TCP/FullTcp set segsize_ $mss
Agent/TCP/FullTcp set segsperack_ 1
Agent/TCP/FullTcp set interval_ 0

# As scripts usually run, a packet has every header that ns-2 knows. With headers=used it is small,
# and the run a third faster.
switch $arg(headers) {
  all { }
  used { remove-all-packet-headers; add-packet-header IP TCP Flags }
  default { puts stderr "speed.tcl: headers is all or used, not $arg(headers)"; exit 2 }
}

set ns [new Simulator]
set sender [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $receiver $rate $delay DropTail
$ns queue-limit $sender $receiver $queue
$ns queue-limit $receiver $sender $queue
set sources {}
for {set i 0} {$i < $flows} {incr i} {
  set source [new Agent/TCP/$arg(family)]
  if {$arg(family) eq "Sack1"} {
    set sink [new Agent/TCPSink/Sack1]
  } else {
    set sink [new Agent/TCP/$arg(family)]
  }
  $ns attach-agent $sender $source
  $ns attach-agent $receiver $sink
  $ns connect $source $sink
  if {$arg(family) ne "Sack1"} {
    $sink listen
  }
  set ftp [new Application/FTP]
  $ftp attach-agent $source
  # Flows that start together stay in step; within half a second (10 ms apart, if there are fifty)
  # they mix.
  $ns at [expr {0.5 * $i / $flows}] "$ftp start"
  lappend sources $source
}

# User and system time of this process so far, in nanoseconds: /proc/self/stat has ticks of 10 ms,
# two in a hundred of what a run takes.
proc cpu_ns {} {
  set file [open /proc/self/schedstat]
  set ns [lindex [read $file] 0]
  close $file
  return $ns
}

# Delivered is what the senders know of, so that nothing is counted while the clock runs. A one-way
# agent numbers segments, the SYN being 0; a two-way agent numbers bytes, the SYN being byte 0, and
# keeps the next one.
proc finish {} {
  global arg sources mss before
  set cpu_s [format %.4f [expr {([cpu_ns] - $before) / 1e9}]]
  set segments 0
  foreach source $sources {
    set acked [$source set ack_]
    incr segments [expr {$arg(family) eq "Sack1" ? $acked : ($acked - 1) / $mss}]
  }
  set retransmitted 0
  foreach source $sources {
    incr retransmitted [$source set nrexmitpack_]
  }
  puts "{\"case\": \"$arg(case)\", \"family\": \"$arg(family)\", \"duration_s\": $arg(duration),\
    \"delivered_segments\": $segments, \"retransmitted\": $retransmitted, \"cpu_s\": $cpu_s}"
  exit 0
}
$ns at $arg(duration) finish
set before [cpu_ns]
$ns run
