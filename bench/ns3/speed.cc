// How fast ns-3 (3.37) is: bulk SACK flows over one 100 Mb/s link, 1448-byte segments, an ACK for
// each, no tracing.
//
//   speed one     One flow, 10 ms one way, window 250 and queue 1000 packets: no losses.
//   speed fifty   50 flows, 20 ms one way, window 64 each and queue 500 packets: with losses.
//
// An optional second argument is the duration in seconds (120). Prints one line of JSON: the
// segments delivered and the CPU time that the simulation itself took, without the program's start.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdlib>
#include <iostream>
#include <string>
#include <sys/resource.h>

using namespace ns3;

static double CpuSeconds()
{
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    const timeval& user = used.ru_utime;
    const timeval& system = used.ru_stime;
    return user.tv_sec + system.tv_sec + 1e-6 * (user.tv_usec + system.tv_usec);
}

int main(int argc, char** argv)
{
    const std::string chosen = argc > 1 ? argv[1] : "";
    const bool one = chosen == "one";
    if (argc > 3 || (!one && chosen != "fifty"))
    {
        std::cerr << "usage: speed one|fifty [seconds]" << std::endl;
        return 2;
    }
    const double duration = argc > 2 ? std::atof(argv[2]) : 120;
    const uint32_t mss = 1448;
    const uint32_t flows = one ? 1 : 50;
    const uint32_t window = one ? 250 : 64;

    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::TcpLinuxReno")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    // The sender's buffer is the window. With a receive buffer that limits, 3.37 crashes once
    // packets are lost.
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(window * mss));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 * window * mss));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    NodeContainer nodes;
    nodes.Create(2);
    // The device's own queue is the only one. PointToPoint adds 2 bytes of PPP to a packet: 1490 on
    // the wire for ns-2's 1488.
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    link.SetChannelAttribute("Delay", TimeValue(MilliSeconds(one ? 10 : 20)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(one ? "1000p" : "500p"));
    // Without flow control towards the stack a full device queue drops, and no FqCoDel is put in
    // front of it.
    link.DisableFlowControl();
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);

    const uint16_t port = 9;
    const std::string tcp = "ns3::TcpSocketFactory";
    PacketSinkHelper sink(tcp, InetSocketAddress(Ipv4Address::GetAny(), port));
    ApplicationContainer sinks = sink.Install(nodes.Get(1));
    sinks.Start(Seconds(0));
    BulkSendHelper bulk(tcp, InetSocketAddress(interfaces.GetAddress(1), port));
    bulk.SetAttribute("SendSize", UintegerValue(mss));
    // Flows that start together stay in step; 10 ms apart they mix.
    for (uint32_t i = 0; i < flows; ++i)
    {
        bulk.Install(nodes.Get(0)).Start(MilliSeconds(10 * i));
    }

    Simulator::Stop(Seconds(duration));
    const double before = CpuSeconds();
    Simulator::Run();
    const double cpu = CpuSeconds() - before;
    const uint64_t segments = DynamicCast<PacketSink>(sinks.Get(0))->GetTotalRx() / mss;
    const uint64_t drops =
        DynamicCast<PointToPointNetDevice>(devices.Get(0))->GetQueue()->GetTotalDroppedPackets();
    std::cout << "{\"case\": \"" << chosen << "\", \"duration_s\": " << duration
              << ", \"delivered_segments\": " << segments << ", \"drops\": " << drops
              << ", \"cpu_s\": " << cpu << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
