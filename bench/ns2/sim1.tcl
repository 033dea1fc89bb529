# One bulk flow over one link with errors: a plain cell (no ETEN) of BBN report 8333, simulation 1,
# in ns-2 2.35.
#
#   ns sim1.tcl family=Sack1 rate_bps=1e8 delay_s=0.32 ber=1.56e-5 errors=both run=7
#
# Prints one line of JSON. Every argument is key=value; the keys and their defaults:
array set arg {
  family Sack1 rate_bps 1.5e6 delay_s 0.010 ber 0 errors forward run 0 duration 120
  tick 0.1 minrto 0.2 initial_window 1 initial_rto 6.0 trace {}
}
foreach word $argv {
  if {![regexp {^([a-z_]+)=(.*)$} $word -> key value] || ![info exists arg($key)]} {
    puts stderr "sim1.tcl: not an argument: $word (known: [lsort [array names arg]])"
    exit 2
  }
  set arg($key) $value
}
if {[lsearch {Reno Newreno Sack1 FullTcp FullTcp/Newreno FullTcp/Sack} $arg(family)] < 0} {
  puts stderr "sim1.tcl: unknown family $arg(family)"
  exit 2
}
if {[lsearch {forward both} $arg(errors)] < 0} {
  puts stderr "sim1.tcl: errors is forward or both, not $arg(errors)"
  exit 2
}

set mss 536
set header 40
set wire [expr {$mss + $header}]
set two_way [string match FullTcp* $arg(family)]

# One seed and a sub-stream for each run: neighbouring seeds would make runs start almost alike.
proc at_run {rng} {
  global arg
  for {set i 0} {$i < $arg(run)} {incr i} {
    $rng next-substream
  }
  return $rng
}
$defaultRNG seed 8333
at_run $defaultRNG

# Agents read most of these once, when they are made: ssthresh from window_, the first timeout from
# rtxcur_init_. So they are set for the classes, before any agent exists; setting them on an agent
# would leave those two at ns-2's defaults.
Agent/TCP set window_ 20
Agent/TCP set windowInit_ $arg(initial_window)
Agent/TCP set tcpTick_ $arg(tick)
Agent/TCP set minrto_ $arg(minrto)
Agent/TCP set rtxcur_init_ $arg(initial_rto)
Agent/TCP set singledup_ 0
Agent/TCP set timestamps_ false
Agent/TCP set ecn_ 0
# One-way agents add the header to packetSize_, but not for packet 0, the SYN, which is a header
# alone.
Agent/TCP set useHeaders_ true
Agent/TCP set packetSize_ $mss
Agent/TCP set tcpip_base_hdr_size_ $header
Agent/TCPSink set packetSize_ $header
Agent/TCP/FullTcp set segsize_ $mss
Agent/TCP/FullTcp set segsperack_ 1
Agent/TCP/FullTcp set interval_ 0

set ns [new Simulator]
if {$arg(trace) ne ""} {
  set trace [open $arg(trace) w]
  $ns trace-all $trace
}
set sender [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $receiver $arg(rate_bps) $arg(delay_s) DropTail
$ns queue-limit $sender $receiver 50
$ns queue-limit $receiver $sender 50

# The error model sits behind the delay element, so that a corrupted packet has used the link. Its
# unit is the byte: it drops a packet of n bytes with probability 1-(1-rate)^n, which is
# 1-(1-ber)^(8n) for the rate below. (The unit "bit" of ns-2 counts something else.)
proc add_errors {from to} {
  global arg ns
  set uniform [new RandomVariable/Uniform]
  $uniform use-rng [at_run [new RNG]]
  set model [new ErrorModel]
  $model unit byte
  $model ranvar $uniform
  $model set rate_ [expr {1 - pow(1 - $arg(ber), 8)}]
  $ns link-lossmodel $model $from $to
}
if {$arg(ber) > 0} {
  add_errors $sender $receiver
  if {$arg(errors) eq "both"} {
    add_errors $receiver $sender
  }
}

# A two-way agent keeps no count of delivered bytes, but tells its application of them, in order.
Class Counter -superclass Application
Counter instproc recv {bytes} {
  global delivered
  incr delivered $bytes
}
set delivered 0

set source [new Agent/TCP/$arg(family)]
if {$two_way} {
  set sink [new Agent/TCP/$arg(family)]
  set counter [new Counter]
  $counter attach-agent $sink
  $counter start
} elseif {$arg(family) eq "Sack1"} {
  set sink [new Agent/TCPSink/Sack1]
} else {
  set sink [new Agent/TCPSink]
}
$ns attach-agent $sender $source
$ns attach-agent $receiver $sink
$ns connect $source $sink
if {$two_way} {
  $sink listen
}
set ftp [new Application/FTP]
$ftp attach-agent $source

# A one-way sink counts whole packets, in order, the 40-byte SYN among them; a two-way agent counts
# payload.
proc finish {} {
  global arg ns source sink delivered mss header wire two_way trace
  if {$two_way} {
    set segments [expr {$delivered / $mss}]
  } else {
    set bytes [$sink set bytes_]
    set segments [expr {$bytes < $header ? 0 : ($bytes - $header) / $wire}]
  }
  set fields [list \
    "\"family\": \"$arg(family)\"" \
    "\"rate_bps\": [format %.0f $arg(rate_bps)]" \
    "\"one_way_delay_s\": $arg(delay_s)" \
    "\"bit_error_rate\": $arg(ber)" \
    "\"errors\": \"$arg(errors)\"" \
    "\"run\": $arg(run)" \
    "\"duration_s\": $arg(duration)" \
    "\"tick_s\": $arg(tick)" \
    "\"rto_min_s\": $arg(minrto)" \
    "\"initial_window\": $arg(initial_window)" \
    "\"initial_rto_s\": $arg(initial_rto)" \
    "\"goodput_bps\": [format %.3f [expr {$segments * $wire * 8.0 / $arg(duration)}]]" \
    "\"segments\": $segments" \
    "\"timeouts\": [$source set nrexmit_]" \
    "\"retransmitted\": [$source set nrexmitpack_]" \
    "\"window_cuts\": [$source set ncwndcuts_]" \
  ]
  puts "{[join $fields {, }]}"
  if {$arg(trace) ne ""} {
    $ns flush-trace
    close $trace
  }
  exit 0
}
$ns at 0.0 "$ftp start"
$ns at $arg(duration) finish
$ns run
