#!/bin/sh
# Installs the Debian package in a new Debian 12 that runs systemd in a container, lets a download go through the
# gateway, and replaces the package by others: one that goes on with the download, one that cannot, and one beside a
# configuration that has an error. The service has a queue of SYNs, unless it may not have one. At the end, the package
# is removed.
#
#   sudo crates/gateway/tests/package/try.sh build/gateway/lasthopd_*_amd64.deb
#
# It needs debootstrap, systemd-nspawn, curl and python3. Everything is below build/package and in two network
# namespaces, and is removed at the end, except the system that debootstrap has made.
# shellcheck disable=SC2016 # Others expand these.
set -eu
package=$(realpath "$1")
cd "$(dirname "$0")/../../../.."
base=$PWD/build/package
user=lasthop-user-$$
server=lasthop-server-$$
mkdir -p "$base"
work=$(mktemp -d "$base/try.XXXXXX")

say() { echo "== $(date +%T) $*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }

end() {
    code=$?
    # The second time, a container ends at once.
    for child in ${http:-} ${nspawn:-} ${nspawn:-}; do kill "$child" 2>/dev/null || true; done
    wait 2>/dev/null || true
    ip netns del "$user" 2>/dev/null || true
    ip netns del "$server" 2>/dev/null || true
    rm -rf "$work"
    exit $code
}
trap end EXIT
trap 'exit 1' INT TERM

# wait_for SECONDS COMMAND...
wait_for() {
    seconds=$1
    shift
    for _ in $(seq $((seconds * 5))); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.2
    done
    return 1
}

inside() {
    nsenter --target "$manager" --all --wdns=/ -- \
        env PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# repacked REVISION [CHANGE]: the package as another revision, changed by a command in its unpacked folder.
repacked() {
    rm -rf "$work/unpacked"
    dpkg-deb --raw-extract "$package" "$work/unpacked"
    version=$(dpkg-deb --field "$package" Version)
    sed -i "s/^Version: .*/Version: $version.$1/" "$work/unpacked/DEBIAN/control"
    (cd "$work/unpacked" && eval "${2:-:}")
    dpkg-deb --root-owner-group -Znone --build "$work/unpacked" "$root/opt/$1.deb" >/dev/null
}

# installed REVISION: apt's words, in $work/said.
installed() {
    inside apt-get install --quiet=2 --yes "/opt/$1.deb" >"$work/said" 2>&1 ||
        { cat "$work/said"; fail "apt-get install $1.deb"; }
}

pid() { inside systemctl show --property MainPID --value lasthopd; }
program() { inside readlink "/proc/$(pid)/exe"; }
status() { inside lasthopd status --json | python3 -c "import json,sys; print(json.load(sys.stdin)['counters']['$1'])"; }

# download NAME: in the background; downloaded NAME waits until it is whole.
download() {
    ip netns exec "$user" curl --silent --show-error --limit-rate 3M --output "$work/$1" \
        "http://192.0.2.2:8000/file" &
    downloading=$!
    wait_for 10 test -s "$work/$1" || fail "no download begins"
}
downloaded() {
    wait "$downloading" || return 1
    cmp "$work/file" "$work/$1"
}

# The queues of both devices that the process has.
queues() { inside sh -c "grep --files-with-matches '^iff:.*lh-' /proc/$(pid)/fdinfo/* | wc -l"; }
floods() { inside journalctl --unit lasthopd --output cat | grep --count "flood of SYNs" || true; }

say "a new system"
packages=systemd,systemd-sysv,dbus,iproute2,nftables,procps
if [ "$(cat "$base/system/done" 2>/dev/null)" != "$packages" ]; then
    rm -rf "$base/system"
    debootstrap --variant=minbase --include="$packages" bookworm "$base/system" \
        http://deb.debian.org/debian >"$base/debootstrap.log" 2>&1 || fail "see $base/debootstrap.log"
    echo "$packages" >"$base/system/done"
fi
root=$work/root
cp --archive "$base/system" "$root"
rm -f "$root/etc/machine-id"
# It would wait until its interfaces are configured, which is done here by hand.
ln -sf /dev/null "$root/etc/systemd/system/systemd-networkd-wait-online.service"
repacked 1
repacked 2
repacked 3 'mv usr/bin/lasthopd usr/bin/lasthopd.real && printf "#!/bin/sh\n[ \"\$1\" = handover-format ] && exec echo 0-another\nexec /usr/bin/lasthopd.real \"\$@\"\n" >usr/bin/lasthopd && chmod 755 usr/bin/lasthopd'
repacked 4

# Where systemd does not run here, it knows of no units and machines.
[ -d /run/systemd/system ] || alone="--keep-unit --register=no"
# shellcheck disable=SC2086 # Two words.
systemd-nspawn --quiet ${alone:-} --directory "$root" --private-network \
    --capability=CAP_BPF --system-call-filter=bpf --suppress-sync=yes --console=pipe --boot </dev/null >"$work/console" 2>&1 &
nspawn=$!
# Another process of systemd-nspawn's comes before the one that becomes systemd.
booted() {
    for manager in $(pgrep --parent "$nspawn"); do
        grep -q '^NSpid:.*[[:space:]]1$' "/proc/$manager/status" && inside systemctl is-active multi-user.target &&
            return
    done
    return 1
}
wait_for 60 booted || { cat "$work/console"; fail "systemd does not start"; }

# As udev makes it.
inside chmod 666 /dev/net/tun
ip netns add "$user"
ip netns add "$server"
ip link add eth0 netns "$user" type veth peer name lan0 netns "$manager"
ip link add eth0 netns "$server" type veth peer name sat0 netns "$manager"
ip -n "$user" addr add 198.51.100.2/24 dev eth0
ip -n "$server" addr add 192.0.2.2/24 dev eth0
ip -n "$user" link set eth0 up
ip -n "$server" link set eth0 up
inside ip addr add 198.51.100.1/24 dev lan0
inside ip addr add 192.0.2.1/24 dev sat0
inside ip link set lan0 up
inside ip link set sat0 up
ip -n "$user" route add default via 198.51.100.1
ip -n "$server" route add default via 192.0.2.1
inside sysctl --quiet --write net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
head -c 60000000 /dev/urandom >"$work/file"
ip netns exec "$server" python3 -m http.server --directory "$work" 8000 >/dev/null 2>&1 &
http=$!

say "installing: it does not run"
installed 1
inside systemctl is-active lasthopd && fail "it runs"
inside systemctl is-enabled lasthopd && fail "it is enabled"
inside lasthopd doctor || fail "doctor"
inside systemctl enable --now lasthopd || { inside journalctl -u lasthopd; fail "it does not start"; }
first=$(pid)
[ "$(queues)" = 4 ] || { inside journalctl -u lasthopd; fail "SYNs have no queue of their own"; }
inside lasthopd doctor | grep "queue of SYNs: the gateway has one" || fail "the doctor does not see it"

say "a newer package: the process and the download go on"
download one
before=$(status "split connections")
[ "$before" -ge 1 ] || fail "the download is not split"
installed 2
grep lasthopd "$work/said"
[ "$(pid)" = "$first" ] || fail "another process: $(pid), not $first"
[ "$(program)" = /usr/bin/lasthopd ] || fail "it executes $(program)"
[ "$(status "connections taken over")" = 1 ] || fail "nothing was taken over"
[ "$(queues)" = 4 ] || fail "SYNs have no queue of their own any more"
inside systemctl is-active lasthopd || fail "it does not run"
[ "$(stat --format %s "$work/one")" -lt 60000000 ] || fail "the download ended too early to say anything"
downloaded one || fail "the download was changed or broken"

say "one that cannot go on: it is restarted, and says so"
download two
installed 3
grep lasthopd "$work/said"
grep -q "restarting it, which resets its connections" "$work/said" || fail "not said"
[ "$(pid)" != "$first" ] || fail "the same process"
inside systemctl is-active lasthopd || fail "it does not run"
downloaded two 2>/dev/null && fail "the download was not reset"
second=$(pid)

say "one beside a configuration with an error: the program before goes on"
inside sh -c 'echo "wan = 7" >>/etc/lasthop/lasthopd.toml'
download three
installed 4
grep lasthopd "$work/said"
grep -q "goes on with the program before" "$work/said" || fail "not said"
[ "$(pid)" = "$second" ] || fail "another process"
downloaded three || fail "the download was changed or broken"
inside sed -i '$d' /etc/lasthop/lasthopd.toml
inside systemctl restart lasthopd

say "without CAP_BPF, or the system call: it runs, and says what is missing"
[ "$(floods)" = 0 ] || fail "it said so before"
rights=/etc/systemd/system/lasthopd.service.d/rights.conf
inside mkdir "$(dirname $rights)"
for without in CapabilityBoundingSet=~CAP_BPF SystemCallFilter=~bpf; do
    printf '[Service]\n%s\n' "$without" >"$root$rights"
    inside systemctl daemon-reload
    before=$(floods)
    inside systemctl restart lasthopd || fail "it does not start with $without"
    [ "$(queues)" = 2 ] || fail "$without takes no right away"
    [ "$(floods)" = $((before + 1)) ] || fail "it does not say once that SYNs have no queue"
    inside lasthopd doctor | grep "queue of SYNs: none" || fail "the doctor does not say so"
done
inside rm "$rights"
inside systemctl daemon-reload

say "removing it: nothing is left but the configuration"
inside apt-get remove --quiet=2 --yes lasthopd >"$work/said" 2>&1 || { cat "$work/said"; fail "apt-get remove"; }
inside systemctl is-active lasthopd && fail "it runs"
inside ip link show lh-lan 2>/dev/null && fail "its devices are left"
inside ip rule | grep -q 'lookup 20[12]' && fail "its rules are left"
inside test -f /etc/lasthop/lasthopd.toml || fail "no configuration"
say "all as expected"
