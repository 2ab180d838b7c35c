"""Runs a study into a folder of an S3 server on this machine (moto), stops it in the middle, goes on, reads it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_DEFAULT_REGION="us-east-1")

import boto3
import s3fs
from moto.server import ThreadedMotoServer

import sojourn as sj


def main() -> None:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    os.environ["AWS_ENDPOINT_URL"] = address
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    boto3.client("s3", endpoint_url=address).create_bucket(Bucket="bucket")
    world = {
        "duration": "1s",
        "path": {"rate": "20Mbps", "rtt": "20ms", "queue": "pfifo limit 50"},
        "flow": [{"name": "cubic", "app": "bulk", "start_jitter": "50ms"}],
    }
    claim = {"id": "full", "text": "The link is full", "expect": "tcp_goodput_sum() > 10 Mbps"}
    study = sj.Study(title="many", scenario=world, repeat={"seeds": 400}, claim=[claim])
    alone = study.run(Path(tempfile.mkdtemp()) / "out", progress=False).folder
    url = "s3://bucket/results/many"

    def stop(progress: sj.Progress) -> None:
        if progress.done > 40:
            raise KeyboardInterrupt

    try:
        study.run(url, progress=stop, jobs=1)
    except KeyboardInterrupt:
        pass
    there = sj.Results(url)
    missing = len(there.missing)
    assert 0 < missing < 400
    print(f"stopped: {400 - missing} runs of 400 are in the bucket")
    told: list[sj.Progress] = []
    with ThreadPoolExecutor(2) as pool:
        results = study.run(url, executor=pool, progress=told.append)
    assert told[0].resumed == 400 - missing and results.missing == []
    results.report()
    storage = s3fs.S3FileSystem()
    listed = {name.rsplit("/", 1)[-1] for name in storage.ls("bucket/results/many")}
    assert "report.html" in listed and "journal.bin" not in listed, listed
    for name in ("runs.parquet", "series.parquet", "delays.parquet", "plan.json", "study.toml", "claims.json"):
        assert storage.cat(f"bucket/results/many/{name}") == (alone / name).read_bytes(), name
    print("the folder in the bucket is that of one machine, byte for byte")
    words = [sys.executable, "-m", "sojourn", "run", "study.toml", "--out", "s3://bucket/command", "--seeds", "3"]
    scratch = Path(tempfile.mkdtemp())
    (scratch / "study.toml").write_text(study.to_toml())
    ended = subprocess.run(words, cwd=scratch, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    print(ended.stdout, end="")
    server.stop()
    try:
        sj.Results(url)
    except sj.ResultsError as error:
        assert error.is_of_machine
        print(f"without the server: {error}")


if __name__ == "__main__":
    main()
