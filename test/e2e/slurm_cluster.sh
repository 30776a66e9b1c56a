# What: a real Slurm on this one machine for the end-to-end scripts: munged, slurmctld and N slurmd, each node with a host
# name of its own and the machine's loopback network.
# Usage: source it after assertions.sh; slurm_missing; slurm_up FOLDER NODES CPUS; on ctl sbatch …; node_dies n2; slurm_down.
# Needs: root, namespaces, and the packages slurmctld slurmd slurm-client munge libpmix-dev. The path of FOLDER without spaces.

PATH=$PATH:/usr/sbin:/sbin

# Why there can be no cluster here, on stdout; fails where there can.
slurm_missing() {
    local tool
    [[ $(id -u) == 0 ]] || { echo "not root"; return; }
    for tool in munged slurmctld slurmd srun sbatch unshare; do
        command -v "$tool" > /dev/null || { echo "no $tool (setup.sh --long installs Slurm)"; return; }
    done
    [[ -e /usr/lib/x86_64-linux-gnu/libpmix.so || -n $(find /usr/lib -name libpmix.so -print -quit) ]] || { echo "no libpmix.so"; return; }
    unshare --uts --mount true 2> /dev/null || { echo "no right to make namespaces"; return; }
    return 1
}

# on HOST COMMAND…: as on that host, ctl for the clients. A host is a UTS namespace; a PMIx folder of its own keeps the
# servers of two nodes apart.
on() {
    local host=$1
    shift
    SLURM_CONF=$cluster/slurm.conf unshare --uts --mount -- sh -ec \
        'hostname "$0"; mount -t tmpfs none "$1"; shift; exec "$@"' "$host" "$cluster/pmix" "$@"
}

# A port of the loopback network that is free, with the next ones.
free_ports() {
    local base
    for ((base = 21000 + RANDOM % 20000; ; base += 100)); do
        ss -Hltn 2> /dev/null | awk '{ sub(/.*:/, "", $4); print $4 }' |
            awk -v from=$base -v to=$((base + $1)) '$1 >= from && $1 <= to { taken = 1 } END { exit taken }' && break
    done
    echo $base
}

slurm_up() {
    cluster=$1 cluster_nodes=$2
    local cpus=$3 base i
    base=$(free_ports "$cluster_nodes")
    mkdir -p "$cluster"/{state,spool,log,pmix,munge}
    cat > "$cluster/slurm.conf" << CONF
ClusterName=lockstep
SlurmctldHost=ctl(127.0.0.1)
SlurmctldPort=$base
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool/%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.%n.pid
SlurmctldLogFile=$cluster/log/slurmctld
SlurmdLogFile=$cluster/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
SlurmdTimeout=5
MailProg=/bin/true
GresTypes=gpu
NodeName=n[1-$cluster_nodes] NodeHostname=n[1-$cluster_nodes] NodeAddr=127.0.0.1 Port=[$((base + 1))-$((base + cluster_nodes))] CPUs=$cpus RealMemory=1000 Gres=gpu:2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE
CONF
    echo "CgroupAutomount=no" > "$cluster/cgroup.conf"
    printf "Name=gpu File=/dev/%s\n" null zero > "$cluster/gres.conf" # in name only: enough to accept a job
    # Direct connections between nodes crash some multi-node starts in MPI_Init on a busy machine.
    printf 'PMIxCliTmpDirBase=%s\nPMIxDirectConn=no\n' "$cluster/pmix" > "$cluster/mpi.conf"
    (umask 077; head -c 1024 /dev/urandom > "$cluster/munge/key")
    munged --force --key-file="$cluster/munge/key" --socket="$cluster/munge/socket" --pid-file="$cluster/munge/pid" \
        --log-file="$cluster/log/munged" --seed-file="$cluster/munge/seed" 2> "$cluster/log/munged.err" || return 1
    on ctl slurmctld -c 2>> "$cluster/log/start"
    for ((i = 1; i <= cluster_nodes; ++i)); do node_starts "n$i"; done
    for ((i = 0; i < 200; ++i)); do
        [[ $(on ctl sinfo -h -t idle -o %D 2> /dev/null) != "$cluster_nodes" ]] || return 0
        sleep 0.1
    done
    tail -n 5 "$cluster"/log/* >&2
    return 1
}

node_starts() { mkdir -p "$cluster/spool/$1"; on "$1" slurmd -N "$1" 2>> "$cluster/log/start"; }

# The processes of a host: those that share the UTS namespace of its slurmd.
host_processes() {
    local name process daemon
    daemon=$(cat "$cluster/slurmd.$1.pid" 2> /dev/null) || return 0
    name=$(readlink "/proc/$daemon/ns/uts") || return 0
    [[ $name != "$(readlink /proc/self/ns/uts)" ]] || return 0
    for process in /proc/[0-9]*; do
        [[ $(readlink "$process/ns/uts" 2> /dev/null) != "$name" ]] || echo "${process#/proc/}"
    done
}
# Everything on the node ends at once, as when its power fails.
node_dies() { kill -s KILL $(host_processes "$1") 2> /dev/null || true; rm -f "$cluster/slurmd.$1.pid"; }

slurm_down() {
    [[ -n ${cluster:-} && -e $cluster/slurm.conf ]] || return 0
    local i file
    timeout 10 unshare --uts -- sh -c 'hostname ctl; exec "$@"' - env SLURM_CONF="$cluster/slurm.conf" scancel --state=RUNNING -u root 2> /dev/null || true
    for ((i = 1; i <= cluster_nodes; ++i)); do node_dies "n$i"; done
    for file in "$cluster/slurmctld.pid" "$cluster/munge/pid"; do
        if [[ -e $file ]]; then kill -s KILL "$(cat "$file")" 2> /dev/null || true; fi
    done
}
