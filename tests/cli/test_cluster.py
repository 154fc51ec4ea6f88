"""Training on a real Dask cluster on the loopback: the same bytes, whoever dies, and a line where it cannot go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clusters import OTHER_KCRF, WITHOUT_KCRF, kill, loopback_cluster, make_certificates, wait_for

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are others there")

OPTIONS = ("--sigma2", "1", "--max-passes", "40")


def command(*arguments):
    return [sys.executable, "-W", "ignore", "-m", "kcrf_cli", *map(str, arguments)]


def run(*arguments):
    found = subprocess.run(command(*arguments), capture_output=True, text=True)
    return found.returncode, found.stdout, found.stderr


@pytest.fixture
def data(sample_data):
    return sample_data / "pitch_accent.conll"


@pytest.fixture
def few(first_accents):
    """So much of it that there are three shards."""
    return first_accents(150)


@pytest.fixture
def expected(data, tmp_path, kcrf):
    """The model of one thread, as bytes."""
    path = tmp_path / "expected.npz"
    assert kcrf("train", data, *OPTIONS, "-q", "--threads", "1", "-o", path).code == 0
    return path.read_bytes()


def passes(log: Path) -> int:
    lines = log.read_text().splitlines() if log.exists() else []
    return sum(json.loads(line)["event"] == "pass" for line in lines)


@pytest.mark.slow
def test_a_frozen_worker_is_dropped(data, expected, tmp_path, kcrf, monkeypatch):
    """Its shards are made again by the other one, with the same bytes."""
    from distributed import Client

    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "10s")  # of the cluster
    output, log = tmp_path / "model.npz", tmp_path / "log.jsonl"
    with loopback_cluster(tmp_path, 2) as cluster:
        frozen = cluster.workers[0]

        def freeze():
            wait_for(lambda: passes(log) >= 2)
            frozen.send_signal(signal.SIGSTOP)

        with Client(cluster.address) as client:
            client.wait_for_workers(2, timeout=600)
        freezing = threading.Thread(target=freeze)
        freezing.start()
        options = (*OPTIONS, "--engine", cluster.engine, "--log", log)
        done = kcrf("train", data, *options, "-o", output)
        freezing.join()
        assert done.code == 0 and output.read_bytes() == expected
        assert "1 worker is gone: what it held is made again by others, 1 is there" in done.err
        code, _, err = run("train", data, *options[:-2], "-o", output)
        assert code == 0, err  # the frozen worker is known to the scheduler no more


@pytest.mark.slow
def test_three_workers_one_of_whom_is_killed(data, expected, tmp_path):
    """The same bytes with all of them and with one killed on the way; a client that is killed leaves nothing there."""
    from distributed import Client

    output, log = tmp_path / "model.npz", tmp_path / "log.jsonl"
    with loopback_cluster(tmp_path, 3) as cluster:
        arguments = ("train", data, *OPTIONS, "--engine", cluster.engine, "-o", output, "--log", log)
        assert run(*arguments, "-q") == (0, "", "")
        assert output.read_bytes() == expected
        assert "cluster: 8 shards" in log.read_text()

        output.unlink()
        log.unlink()
        running = subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True)
        wait_for(lambda: passes(log) >= 3)
        kill(cluster.workers.pop())
        said = running.communicate()[1]
        assert running.returncode == 0 and output.read_bytes() == expected
        assert "1 worker is gone: what it held is made again by others, 2 are there" in said

        output.unlink()
        log.unlink()
        running = subprocess.Popen(command(*arguments, "-q", "--tolerance", "1e-9"))
        wait_for(lambda: passes(log) >= 2)
        kill(running)
        assert not output.exists()
        with Client(cluster.address) as client:
            wait_for(lambda: client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0, 30)

        code, _, err = run("train", data, *OPTIONS, "--engine", cluster.engine, "--memory", "1K", "-o", output)
        last = err.splitlines()[-1]
        assert code == 1 and last.startswith("kcrf: shard ") and "has 1 KiB left of 1 KiB" in last
        assert not output.exists()


def dask_settings(files):
    """Return the certificates of a client as settings of Dask."""
    names = {"ca-file": "ca-file", "client.cert": "cert", "client.key": "key"}
    return {f"distributed.comm.tls.{name}": files[key] for name, key in names.items()}


def environment_name(setting):
    return f"DASK_{setting.upper().replace('.', '__').replace('-', '_')}"


@pytest.mark.slow
def test_certificates(few, kcrf, tmp_path):
    import dask

    files, outputs = make_certificates(tmp_path), (tmp_path / "one.npz", tmp_path / "other.npz")
    arguments = ("train", few, "--sigma2", "1", "--max-passes", "8", "-q", "-o")
    assert kcrf(*arguments, outputs[0], "--threads", "1").code == 0
    with loopback_cluster(tmp_path, 1, files) as cluster:
        assert cluster.engine.startswith("tls://")
        with dask.config.set(dask_settings(files)):
            done = kcrf(*arguments, outputs[1], "--engine", cluster.engine)
    assert (done.code, done.out) == (0, b"") and outputs[0].read_bytes() == outputs[1].read_bytes()


@pytest.mark.slow
def test_certificates_and_who_has_none(data, expected, tmp_path, monkeypatch):
    files, output = make_certificates(tmp_path), tmp_path / "model.npz"
    with loopback_cluster(tmp_path, 1, files) as cluster:
        assert cluster.engine.startswith("tls://")
        arguments = ("train", data, *OPTIONS, "-o", output, "--engine")
        for name, value in dask_settings(files).items():
            monkeypatch.setenv(environment_name(name), value)
        assert run(*arguments, cluster.engine, "-q") == (0, "", "")
        assert output.read_bytes() == expected
        output.unlink()
        code, _, err = run(*arguments, cluster.engine.replace("tls", "dask"), "-q", "--engine-timeout", "2")
        assert code == 1 and "no scheduler answers at dask://127.0.0.1" in err and len(err.splitlines()) == 1
        other = tmp_path / "other"
        other.mkdir()
        strange = make_certificates(other)
        for name, value in dask_settings(strange).items():
            monkeypatch.setenv(environment_name(name), value)
        code, _, err = run(*arguments, cluster.engine, "-q", "--engine-timeout", "2")
        assert code == 1 and "no scheduler answers at tls://127.0.0.1" in err and len(err.splitlines()) == 1
        for name in dask_settings(strange):
            monkeypatch.delenv(environment_name(name))
        code, _, err = run(*arguments, cluster.engine, "-q", "--engine-timeout", "2")
        assert code == 1 and "no scheduler answers at tls://127.0.0.1" in err and len(err.splitlines()) == 1, err
        assert not output.exists()


@pytest.mark.slow
def test_workers_without_this_kcrf_and_nobody_at_all(few, kcrf, tmp_path):
    output = tmp_path / "model.npz"
    with loopback_cluster(tmp_path, 0) as cluster:
        arguments = ("train", few, *OPTIONS, "-q", "-o", output, "--engine", cluster.engine)
        done = kcrf(*arguments, "--engine-timeout", "1")
        assert done.code == 1 and "no worker came" in done.err and "(--engine-timeout)" in done.err
        for before, said in (
            (WITHOUT_KCRF, "has no kcrf: install kcrf"),
            (OTHER_KCRF, "has kcrf 0.0.1, and this is kcrf"),
        ):
            worker = cluster.add_worker(before)
            done = kcrf(*arguments)
            assert (done.code, done.out) == (1, b"") and said in done.err and len(done.err.splitlines()) == 1
            kill(worker)
        kill(cluster.scheduler)
        done = kcrf(*arguments, "--engine-timeout", "1")
        assert done.code == 1 and "no scheduler answers" in done.err and len(done.err.splitlines()) == 1
    assert not output.exists()


@pytest.mark.slow
@pytest.mark.parametrize("which", ["workers", "scheduler"])
def test_all_are_gone(which, data, tmp_path):
    """A clear error, and no model."""
    output, log = tmp_path / "model.npz", tmp_path / "log.jsonl"
    with loopback_cluster(tmp_path, 1) as cluster:
        arguments = ("train", data, "--sigma2", "1", "--tolerance", "1e-9", "--engine", cluster.engine)
        running = subprocess.Popen(command(*arguments, "-o", output, "--log", log), stderr=subprocess.PIPE, text=True)
        wait_for(lambda: passes(log) >= 2)
        kill(cluster.workers[0] if which == "workers" else cluster.scheduler)
        said = running.communicate()[1].splitlines()[-1]
        assert running.returncode == 1 and not output.exists() and "nothing was written" in said
        if which == "workers":
            assert "has no workers any more" in said
        else:
            assert "scheduler" in said or "connection to the cluster is lost" in said


def test_options_that_do_not_go_together(kcrf, data, tmp_path):
    output = tmp_path / "model.npz"
    for arguments, code, said in (
        (("--engine", "dusk://x:1"), 2, "unknown engine 'dusk://x:1'"),
        (("--engine", "dask://x"), 2, "tcp://HOST:PORT"),
        (("--engine", "torch:cpu", "--engine-timeout", "3"), 2, "torch:cpu is none"),
        (("--engine-timeout", "3"), 2, "--engine-timeout is for a cluster"),
    ):
        done = kcrf("train", data, "-o", output, *arguments)
        assert done.code == code and said in done.err, done.err
    done = kcrf("crossval", data, "--engine", "dask", "--jobs", "2")
    assert done.code == 2 and "leave out --jobs" in done.err


@pytest.mark.slow
def test_without_dask(data, tmp_path):
    code = "import sys; sys.modules['distributed'] = None; from kcrf_cli.main import main; main()"
    found = subprocess.run(
        [sys.executable, "-c", code, "train", data, "--engine", "dask", "-q", "-o", tmp_path / "model.npz"],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 2 and found.stderr == (
        "kcrf: the engine 'dask' needs Dask: pip install distributed, or leave out 'engine' (--engine)\n"
    )


DEPLOYMENT = Path(__file__).parents[2] / "docs" / "cluster"


def test_commands_of_deployment_files_are_known():
    """Images, jobs and scripts start commands that exist, with options that they have."""
    import click
    import yaml

    from kcrf_cli.main import main

    documents = list(yaml.safe_load_all((DEPLOYMENT / "kubernetes.yaml").read_text()))
    pods = [one["spec"]["template"]["spec"] for one in documents if one["kind"] != "Service"]
    claims = {volume["persistentVolumeClaim"]["claimName"] for pod in pods for volume in pod.get("volumes", ())}
    assert claims == {"kcrf-data"} and [one["kind"] for one in documents][-1] == "Job"
    arguments = next(pod["containers"][0]["args"] for pod in pods if "args" in pod["containers"][0])
    context = click.Context(main)
    train = main.get_command(context, arguments[0])
    parsed = train.make_context(arguments[0], list(arguments[1:]), parent=context)
    assert parsed.params["engine"] == "tcp://kcrf-scheduler:8786"
    assert {"name": "scheduler", "port": 8786} in documents[0]["spec"]["ports"]
    assert 'ENTRYPOINT ["kcrf"]' in (DEPLOYMENT / "Containerfile").read_text()
    assert subprocess.run(["bash", "-n", DEPLOYMENT / "kcrf.sbatch"]).returncode == 0


@pytest.mark.slow
def test_the_script_for_slurm(few, tmp_path):
    """Scheduler, worker and client of one job; `srun` starts the command here."""
    (tmp_path / "srun").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (tmp_path / "kcrf").write_text(f'#!/bin/sh\nexec {sys.executable} -W ignore -m kcrf_cli "$@"\n')
    (tmp_path / "dask").write_text(f'#!/bin/sh\nexec {sys.executable} -m dask "$@"\n')
    for name in ("srun", "kcrf", "dask"):
        (tmp_path / name).chmod(0o755)
    slurm = {"SLURM_JOB_ID": "1", "SLURM_CPUS_PER_TASK": "1", "SLURM_MEM_PER_NODE": "2000"}
    environment = {**os.environ, **slurm, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = ["bash", DEPLOYMENT / "kcrf.sbatch", few, *OPTIONS, "-o", "model.npz"]
    found = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=180)
    assert found.returncode == 0 and "cluster: 1 worker with 1 thread" in found.stderr, found.stderr
    assert run("train", few, *OPTIONS, "-q", "-o", tmp_path / "expected.npz")[0] == 0
    assert (tmp_path / "model.npz").read_bytes() == (tmp_path / "expected.npz").read_bytes()
    assert not list(tmp_path.glob(".kcrf-*"))


@pytest.mark.parametrize(
    "address",
    [
        "tls://user:hush@host:8786",
        "dask://hush@127.0.0.1:8786",
        "dask://127.0.0.1:8786?token=hush",
        "tcp://user:hush@host:8786",
        "user:hush@host:8786",
        "dask://127.0.0.1:87860?hush",
    ],
)
def test_secrets_in_addresses_are_refused_and_hidden(kcrf, data, tmp_path, address):
    done = kcrf("train", data, *OPTIONS, "--engine", address, "-o", tmp_path / "m.npz")
    assert done.code == 2 and "hush" not in done.err and "***" in done.err
