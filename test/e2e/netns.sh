# What: several hosts on this machine, for the end-to-end scripts: network namespaces host1 … hostN on a bridge, each with a
# host name of its own, mpirun across them, and links that can be cut and healed.
# Usage: source it after assertions.sh and training.sh; then, in the folder where files may be written,
#   hosts_or_skip; hosts_up 2; on_hosts -np 4 COMMAND…; cut 2; heal 2; on_host 2 COMMAND…; hosts_running; hosts_down (on EXIT).
# Needs: root that may make namespaces, iproute2, util-linux. Processes, /tmp and /dev/shm are shared by all hosts.

hosts_name=lst$$ # namespaces are global to the machine: tests that run at once have their own
hosts_count=0

# Ends the test with the exit code that CTest counts as skipped.
hosts_or_skip() {
    PATH=$PATH:/usr/sbin:/sbin
    if ((EUID != 0)); then
        echo "skipped: hosts as network namespaces need root"
        exit 77
    fi
    if ! command -v ip > /dev/null; then
        echo "skipped: hosts as network namespaces need the command ip (package iproute2)"
        exit 77
    fi
    if ! unshare --net --uts --mount true 2> /dev/null; then
        echo "skipped: namespaces cannot be made here (a container needs SYS_ADMIN and NET_ADMIN)"
        exit 77
    fi
}

# hosts_up N: each with two slots for ranks.
hosts_up() {
    local i space switch=${hosts_name}s
    hosts_count=$1
    hosts_folder=$PWD
    ip netns add "$switch"
    ip -n "$switch" link add br0 type bridge
    ip -n "$switch" link set br0 up
    echo "127.0.0.1 localhost" > "$hosts_folder/addresses"
    : > "$hosts_folder/hosts"
    for ((i = 1; i <= hosts_count; ++i)); do
        space=$hosts_name-$i
        ip netns add "$space"
        ip -n "$space" link set lo up
        ip link add name eth0 netns "$space" type veth peer name "port$i" netns "$switch"
        ip -n "$switch" link set "port$i" master br0 up
        ip -n "$space" addr add "10.99.0.$i/24" dev eth0
        ip -n "$space" link set eth0 up
        echo "10.99.0.$i host$i" >> "$hosts_folder/addresses"
        echo "host$i slots=2" >> "$hosts_folder/hosts"
    done
    # host_shell hostI "COMMAND STRING": on that host, with this environment.
    cat > "$hosts_folder/host_shell" <<SHELL
#!/usr/bin/env bash
PATH=\$PATH:/usr/sbin:/sbin
exec ip netns exec "$hosts_name-\${1#host}" unshare --uts -- sh -c \\
    'hostname "\$0" && mount --bind "\$1" /etc/hosts && exec sh -c "\$2"' "\$1" "$hosts_folder/addresses" "\$2"
SHELL
    # mpirun's way to another host: [OPTIONS] hostI COMMAND STRING…, with an environment of its own, as ssh gives it.
    cat > "$hosts_folder/remote_shell" <<SHELL
#!/usr/bin/env bash
while [[ \${1:-} == -* ]]; do shift; done
host=\$1
shift
exec env -i PATH="\$PATH" HOME="\$HOME" "$hosts_folder/host_shell" "\$host" "\$*"
SHELL
    chmod +x "$hosts_folder/host_shell" "$hosts_folder/remote_shell"
}

# on_host I COMMAND…
on_host() {
    local host=$1
    shift
    "$hosts_folder/host_shell" "host$host" "$(printf '%q ' "$@")"
}

# on_hosts MPIRUN-ARGUMENTS…: mpirun on host1, across all hosts. One that is to be signalled: exec "$hosts_folder/host_shell"
# host1 "$(across …)", which becomes mpirun.
across() {
    printf '%q ' exec mpirun -q --hostfile "$hosts_folder/hosts" --map-by node --oversubscribe --bind-to none \
        --mca plm rsh --mca plm_rsh_agent "$hosts_folder/remote_shell" --mca ras ^slurm --mca pml ob1 --mca btl self,vader,tcp \
        --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 "$@"
}
on_hosts() { "$hosts_folder/host_shell" host1 "$(across "$@")"; }

# The switch's side of a host's link: nothing passes, and nobody is told.
cut() { ip -n "${hosts_name}s" link set "port$1" down; }
# The kernel brings a link up when it finds the time (a second, at worst), and remembers for a while that neighbours did not
# answer: connections made before fail.
heal() {
    local i
    ip -n "${hosts_name}s" link set "port$1" up
    wait_for 10 eval "[[ \$(ip -n ${hosts_name}s -o link show port$1) == *' state UP '* && \$(ip -n $hosts_name-$1 -o link show eth0) == *' state UP '* ]]"
    for ((i = 1; i <= hosts_count; ++i)); do ip -n "$hosts_name-$i" neigh flush dev eth0 > /dev/null 2>&1 || true; done
}

# What runs on any host, one process a line: pid and command. A process that has ended and waits for its parent does not run.
hosts_running() {
    local i process
    for ((i = 1; i <= hosts_count; ++i)); do
        for process in $(ip netns pids "$hosts_name-$i" 2> /dev/null); do
            grep -qs '^State:[[:space:]]*Z' "/proc/$process/status" ||
                { echo "$process $(tr '\0' ' ' < "/proc/$process/cmdline")"; } 2> /dev/null || true
        done
    done
}

hosts_down() {
    local i process
    for ((i = 1; i <= hosts_count; ++i)); do
        for process in $(ip netns pids "$hosts_name-$i" 2> /dev/null); do kill -s KILL "$process" 2> /dev/null || true; done
        ip netns del "$hosts_name-$i" 2> /dev/null || true
    done
    ((hosts_count == 0)) || ip netns del "${hosts_name}s" 2> /dev/null || true
    hosts_count=0
}
