# Bulk flows and transfers over paths of their own in ns-2 2.35: `runs` copies of one case side by
# side, which share nothing, so that ns-2 starts once for all of them.
#
#   ns flows.tcl family=Sack1 rate_bps=1e8 delay_s=0.32 ber=1.56e-5 errors=both runs=30
#       A plain cell (no ETEN) of BBN report 8333, simulation 1.
#   ns flows.tcl family=FullTcp hops=3 ...       Three identical links in a row: simulation 2.
#   ns flows.tcl family=Linux/westwood ...       A congestion control of ns-2's Linux code.
#   ns flows.tcl segments=1,10,100 ...           A copy for each size of a transfer.
#   ns flows.tcl segments=2000 down_s=0.1,1 ...  A copy for each time that the link is down.
#   ns flows.tcl also=bugfix_:false,... ...      With other defaults of the family.
#
# Prints one line of JSON with a value for each copy. Every argument is key=value; the keys and their
# defaults:
array set arg {
  family Sack1 rate_bps 1.5e6 delay_s 0.010 hops 1 ber 0 errors forward runs 1 first 0 duration 120
  window 20 mss 536 tick 0.1 minrto 0.2 initial_window 1 initial_rto 6.0 limited_transmit 0
  timestamps 0 segments {} down_at 2.0 down_s {} backbone_s {} also {} trace {}
}
foreach word $argv {
  if {![regexp {^([a-z_]+)=(.*)$} $word -> key value] || ![info exists arg($key)]} {
    puts stderr "flows.tcl: not an argument: $word (known: [lsort [array names arg]])"
    exit 2
  }
  set arg($key) $value
}
set linux [regexp {^Linux/(.*)$} $arg(family) -> control]
if {!$linux && [lsearch {Reno Newreno Sack1 FullTcp FullTcp/Newreno FullTcp/Sack} $arg(family)] < 0} {
  puts stderr "flows.tcl: unknown family $arg(family)"
  exit 2
}
if {[lsearch {forward both} $arg(errors)] < 0} {
  puts stderr "flows.tcl: errors is forward or both, not $arg(errors)"
  exit 2
}
# What differs from copy to copy: a single value is all copies'.
set sizes [split $arg(segments) ,]
set downs [split $arg(down_s) ,]
foreach values [list $sizes $downs] {
  if {[llength $values] > 1} {
    set arg(runs) [llength $values]
  }
}
proc of_copy {values copy} {
  return [lindex $values [expr {[llength $values] > 1 ? $copy : 0}]]
}

set mss $arg(mss)
set header [expr {$arg(timestamps) ? 52 : 40}]
set wire [expr {$mss + $header}]
set two_way [string match FullTcp* $arg(family)]

# Agents read most of these once, when they are made: ssthresh from window_, the first timeout from
# rtxcur_init_. So they are set for the classes, before any agent exists; setting them on an agent
# would leave those two at ns-2's defaults.
Agent/TCP set window_ $arg(window)
Agent/TCP set windowInit_ $arg(initial_window)
Agent/TCP set tcpTick_ $arg(tick)
Agent/TCP set minrto_ $arg(minrto)
Agent/TCP set rtxcur_init_ $arg(initial_rto)
Agent/TCP set singledup_ $arg(limited_transmit)
Agent/TCP set timestamps_ $arg(timestamps)
Agent/TCP set ts_option_size_ 12
Agent/TCP set ecn_ 0
# One-way agents add the header to packetSize_, but not for packet 0, the SYN, which is a header
# alone. Where a transfer's time counts, its answer does not open the window.
Agent/TCP set useHeaders_ true
Agent/TCP set packetSize_ $mss
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set delay_growth_ [llength $sizes]
foreach setting [split $arg(also) ,] {
  Agent/TCP/$arg(family) set {*}[split $setting :]
}
Agent/TCPSink set packetSize_ $header
Agent/TCPSink set ts_echo_rfc1323_ true
Agent/TCP/FullTcp set segsize_ $mss
Agent/TCP/FullTcp set segsperack_ 1
Agent/TCP/FullTcp set interval_ 0

set ns [new Simulator]
if {$arg(trace) ne ""} {
  set trace [open $arg(trace) w]
  $ns trace-all $trace
}

# One seed, of which every error model takes the next stream: neighbouring seeds would make runs start
# almost alike. Copy n has the streams 2 hops n and on, whether or not it uses all of them.
$defaultRNG seed 8333
proc skip {streams} {
  for {set i 0} {$i < $streams} {incr i} {
    delete [new RNG]
  }
}
skip [expr {2 * $arg(hops) * $arg(first)}]

# An error model sits behind the delay element, so that a corrupted packet has used the link. Its
# unit is the byte: it drops a packet of n bytes with probability 1-(1-rate)^n, which is
# 1-(1-ber)^(8n) for the rate below. (The unit "bit" of ns-2 counts something else.)
proc add_errors {from to} {
  global arg ns
  set uniform [new RandomVariable/Uniform]
  $uniform use-rng [new RNG]
  set model [new ErrorModel]
  $model unit byte
  $model ranvar $uniform
  $model set rate_ [expr {1 - pow(1 - $arg(ber), 8)}]
  $ns link-lossmodel $model $from $to
}

# While a link is down, whatever comes to its head or its end is lost.
proc add_outage {from to lasts} {
  global arg ns
  foreach place {lossmodel link-lossmodel} {
    set model [new ErrorModel]
    $model unit pkt
    $model set rate_ 0
    $ns $place $model $from $to
    $ns at $arg(down_at) "$model set rate_ 1"
    $ns at [expr {$arg(down_at) + $lasts}] "$model set rate_ 0"
  }
}

# Delivered bytes, in order, as the receiving agent reports them to its application. A two-way agent
# keeps no count of its own.
Class Counter -superclass Application
Counter instproc init {copy goal} {
  $self instvar copy_ goal_ delivered_
  set copy_ $copy
  set goal_ $goal
  set delivered_ 0
  $self next
}
Counter instproc recv {bytes} {
  global ns completed
  $self instvar copy_ goal_ delivered_
  incr delivered_ $bytes
  if {$goal_ && $delivered_ >= $goal_ && ![info exists completed($copy_)]} {
    set completed($copy_) [$ns now]
  }
}

# When a sender's acknowledgments go on after an outage: ns-2 writes every change of ack_.
if {[llength $downs]} {
  set acks [file tempfile acks_path]
}
proc resumed {copy} {
  global arg acks acks_path downs firsts resumed
  if {![array exists resumed]} {
    close $acks
    set file [open $acks_path]
    while {[gets $file line] >= 0} {
      lassign $line now node
      set of $firsts($node)
      if {$now >= $arg(down_at) + [of_copy $downs $of] && ![info exists resumed($of)]} {
        set resumed($of) $now
      }
    }
    close $file
    file delete $acks_path
  }
  return [expr {[info exists resumed($copy)] ? $resumed($copy) : "null"}]
}

for {set copy 0} {$copy < $arg(runs)} {incr copy} {
  set first [$ns node]
  set node $first
  for {set hop 0} {$hop < $arg(hops)} {incr hop} {
    set next [$ns node]
    $ns duplex-link $node $next $arg(rate_bps) $arg(delay_s) DropTail
    $ns queue-limit $node $next 50
    $ns queue-limit $next $node 50
    if {$arg(ber) > 0} {
      add_errors $node $next
      if {$arg(errors) eq "both"} {
        add_errors $next $node
      } else {
        skip 1
      }
    }
    if {[llength $downs]} {
      add_outage $node $next [of_copy $downs $copy]
      add_outage $next $node [of_copy $downs $copy]
    }
    set node $next
  }
  # A fast link behind, for what is propagation beyond the link that goes down.
  if {$arg(backbone_s) ne ""} {
    set next [$ns node]
    $ns duplex-link $node $next 1e9 $arg(backbone_s) DropTail
    $ns queue-limit $node $next 8333
    $ns queue-limit $next $node 8333
    set node $next
  }
  set source [new Agent/TCP/[expr {$linux ? "Linux" : $arg(family)}]]
  if {$two_way} {
    set sink [new Agent/TCP/$arg(family)]
  } elseif {$linux || $arg(family) eq "Sack1"} {
    set sink [new Agent/TCPSink/Sack1]
  } else {
    set sink [new Agent/TCPSink]
  }
  if {$two_way || [llength $sizes]} {
    # A two-way agent reports payload, a one-way agent whole packets, the SYN included.
    set goal [expr {[llength $sizes] ? [of_copy $sizes $copy] * ($two_way ? $mss : $wire) : 0}]
    if {$goal && !$two_way} {
      incr goal $header
    }
    set counter [new Counter $copy $goal]
    $counter attach-agent $sink
    $counter start
    lappend counters $counter
  }
  $ns attach-agent $first $source
  $ns attach-agent $node $sink
  $ns connect $source $sink
  if {[llength $downs]} {
    set firsts([$first id]) $copy
    $source attach $acks
    $source tracevar ack_
  }
  if {$linux} {
    $ns at 0.0 "$source select_ca $control"
  }
  if {$two_way} {
    $sink listen
  }
  set ftp [new Application/FTP]
  $ftp attach-agent $source
  if {[llength $sizes] && $two_way} {
    $ns at 0.0 "$source advance-bytes [expr {[of_copy $sizes $copy] * $mss}]"
  } elseif {[llength $sizes]} {
    $ns at 0.0 "$ftp produce [of_copy $sizes $copy]"
  } else {
    $ns at 0.0 "$ftp start"
  }
  lappend sources $source
  lappend sinks $sink
}

# Segments delivered in order, without the SYN.
proc delivered {copy} {
  global sinks counters two_way mss header wire
  if {$two_way} {
    return [expr {[[lindex $counters $copy] set delivered_] / $mss}]
  }
  set bytes [[lindex $sinks $copy] set bytes_]
  return [expr {$bytes < $header ? 0 : ($bytes - $header) / $wire}]
}

# Segments sent more than once. The count of a two-way agent has new segments in it, those that
# duplicate ACKs let out: all segments but the different ones.
proc retransmitted {source} {
  global two_way mss
  if {!$two_way} {
    return [$source set nrexmitpack_]
  }
  set different [expr {([$source set maxseq_] - 1 + $mss - 1) / $mss}]
  return [expr {[$source set ndatapack_] - $different}]
}

proc list_of {values} {
  return "\[[join $values {, }]\]"
}

proc finish {} {
  global ns arg sources completed wire trace sizes downs
  for {set copy 0} {$copy < $arg(runs)} {incr copy} {
    set source [lindex $sources $copy]
    lappend goodputs [format %.3f [expr {[delivered $copy] * $wire * 8.0 / $arg(duration)}]]
    lappend timeouts [$source set nrexmit_]
    lappend again [retransmitted $source]
    lappend completed_s [expr {[info exists completed($copy)] ? $completed($copy) : "null"}]
    if {[llength $downs]} {
      lappend resumed_s [resumed $copy]
    }
  }
  set fields [list "\"goodput_bps\": [list_of $goodputs]" "\"timeouts\": [list_of $timeouts]" \
    "\"retransmitted\": [list_of $again]"]
  if {[llength $sizes]} {
    lappend fields "\"completed_s\": [list_of $completed_s]"
  }
  if {[llength $downs]} {
    lappend fields "\"resumed_s\": [list_of $resumed_s]"
  }
  # ns-2's Linux code prints words of its own, before.
  puts "{[join $fields {, }]}"
  if {$arg(trace) ne ""} {
    $ns flush-trace
    close $trace
  }
  exit 0
}
$ns at $arg(duration) finish
$ns run
