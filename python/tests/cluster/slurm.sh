#!/usr/bin/env bash
# Starts SLURM on this machine (Debian: slurmctld slurmd slurm-client munge; as root), runs a study as a job array with
# `sojourn run --shard`, kills one of its tasks, submits that one again, joins the shards, and compares the tables with
# those of one machine. Give the command as $1.
set -euo pipefail
sojourn=$(realpath "${1:-target/debug/sojourn}")
scratch=$(mktemp -d)
cleanup() {
    for name in slurmctld slurmd; do
        [ ! -e "$scratch/$name.pid" ] || kill "$(cat "$scratch/$name.pid")" || true
    done
    [ ! -e "$scratch/munged.pid" ] || kill "$(cat "$scratch/munged.pid")" || true
}
trap cleanup EXIT
mkdir -p "$scratch"/{state,spool} /run/munge
chown munge: /run/munge
chmod 755 "$scratch"
[ -e /etc/munge/munge.key ] || /usr/sbin/mungekey
pgrep -x munged >/dev/null || /usr/sbin/munged --force
host=$(hostname -s)
cat >"$scratch/slurm.conf" <<CONF
ClusterName=here
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
SlurmctldLogFile=$scratch/slurmctld.log
SlurmdLogFile=$scratch/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$scratch/slurm.conf
slurmctld
slurmd
for _ in $(seq 50); do
    ! sinfo --noheader --format %t 2>/dev/null | grep -q idle || break
    sleep 0.2
done
sinfo

cd "$scratch"
cat >study.toml <<'TOML'
schema = 1
title = "Many runs"
[scenario]
duration = "5s"
path = { rate = "50Mbps", rtt = "20ms", queue = "pfifo limit 50" }
[[scenario.flow]]
name = "cubic"
app = "bulk"
start_jitter = "50ms"
[[scenario.flow]]
name = "bbr"
app = "bulk"
cca = "bbr3"
[repeat]
seeds = 96
[[claim]]
id = "full"
text = "The link is full"
expect = "tcp_goodput_sum() > 40 Mbps"
TOML
cat >job.sh <<JOB
#!/bin/bash
#SBATCH --array=1-8
#SBATCH --cpus-per-task=1
#SBATCH --output=task-%a.log
$sojourn run study.toml --shard "\$SLURM_ARRAY_TASK_ID/8" --jobs 1 --out "shards/\$SLURM_ARRAY_TASK_ID" --no-report
JOB
job=$(sbatch --parsable job.sh)
echo "job array $job"
# A task whose machine dies: it is killed once it has finished some runs.
for _ in $(seq 200); do
    [ ! -s shards/1/journal-1-of-8.bin ] || [ "$(stat -c %s shards/1/journal-1-of-8.bin)" -lt 20000 ] || break
    sleep 0.05
done
scancel --signal=KILL --full "${job}_1" && echo "task 1 was killed"
while squeue --noheader --job "$job" 2>/dev/null | grep -q .; do sleep 0.3; done
killed=$(ls shards/1)
again=$(sbatch --parsable --array=1 job.sh)
while squeue --noheader --job "$again" 2>/dev/null | grep -q .; do sleep 0.3; done
echo "after the kill: $killed"
tail -n 4 task-1.log
"$sojourn" join shards/* --out joined --no-report
"$sojourn" run study.toml --out alone --no-report --quiet
for name in runs.parquet series.parquet delays.parquet plan.json study.toml claims.json; do
    cmp "joined/$name" "alone/$name"
done
echo "tables are equal to those of one machine, byte for byte"
