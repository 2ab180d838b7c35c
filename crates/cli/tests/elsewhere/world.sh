#!/bin/sh
# Five machines of namespaces: a desk; the bottleneck, reached from it by ssh; and three ends, reached from the bottleneck by ssh. All of it lives in
# namespaces of this process, so nothing is left when it is killed: unshare -n -m -p -f --kill-child --mount-proc.
# $1 is a folder for what the machines know of each other. "up" is printed when all listen.
set -eu
work=$1
mount -t tmpfs none /run
mkdir -p /run/sshd /run/netns "$work/home"
# Where one is after logging in.
mount --bind "$work/home" ~root
for name in key other; do
    ssh-keygen -q -t ed25519 -N '' -f "$work/$name"
done
: > "$work/sshd.conf"
listen() {
    ip netns exec "$1" "$(command -v sshd)" -f "$work/sshd.conf" -E "$work/sshd.$1" -o PidFile=none -o ListenAddress="$2" \
        -o HostKey="$work/key" -o AuthorizedKeysFile="$work/key.pub" -o StrictModes=no -o UsePAM=no
    # It goes to the background before it listens.
    waited=0
    until ip netns exec "$1" ss -Hltn "sport = 22" | grep -q "$2"; do
        waited=$((waited + 1))
        test "$waited" -lt 200 || { echo "sshd of $1: $(cat "$work/sshd.$1")" >&2; exit 1; }
        sleep 0.05
    done
    echo "$2 $(cut -d ' ' -f 1,2 "$work/key.pub")" >> "$work/known"
}
# One way between two machines, with the names of its two interfaces.
way() {
    ip link add "$2" netns "$1" type veth peer name "$4" netns "$3"
    ip -n "$1" link set "$2" up
    ip -n "$3" link set "$4" up
}
for machine in desk bottleneck server client more; do
    ip netns add "$machine"
    ip -n "$machine" link set lo up
done
way desk m0 bottleneck mdesk
ip -n desk address add 192.168.1.1/24 dev m0
ip -n bottleneck address add 192.168.1.2/24 dev mdesk
listen bottleneck 192.168.1.2
subnet=2
for host in server client more; do
    # One for ssh, and one for the experiment.
    way bottleneck "m$host" "$host" m0
    way bottleneck "x$host" "$host" x0
    ip -n bottleneck address add "192.168.$subnet.1/24" dev "m$host"
    ip -n "$host" address add "192.168.$subnet.2/24" dev m0
    listen "$host" "192.168.$subnet.2"
    cat >> "$work/three.toml" <<HOST
[host.$host]
ssh = "root@192.168.$subnet.2"
ssh_options = ["-F", "none", "-i", "$work/key", "-o", "UserKnownHostsFile=$work/known", "-o", "IdentitiesOnly=yes"]
interface = "x0"
here = "x$host"
folder = "$work"
HOST
    subnet=$((subnet + 1))
    # Most studies have two.
    test "$host" = more || cp "$work/three.toml" "$work/hosts.toml"
done
echo up
exec sleep infinity
