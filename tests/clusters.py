"""Dask clusters on the loopback, for tests: a scheduler and workers that can be killed one by one."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"
WORKER = "from distributed.cli.dask_worker import main; main()"
WITHOUT_KCRF = "import sys; sys.modules['kcrf_core'] = None; "
OTHER_KCRF = "import kcrf_core._version; kcrf_core._version.__version__ = '0.0.1'; "
PATIENCE = 600.0


class LoopbackCluster:
    """Processes of one cluster; `tls` has files of certificates."""

    def __init__(self, folder: Path, tls: dict[str, str] | None = None):
        self._folder, self._options, self.workers = folder, [], []
        self._processes: list[subprocess.Popen] = []
        where = folder / "scheduler.json"
        for name in ("ca-file", "cert", "key") if tls else ():
            self._options += [f"--tls-{name}", tls[name]]
        protocol = ["--protocol", "tls"] if tls else []
        self.scheduler = self._start(
            SCHEDULER, "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(where), *protocol
        )
        self.address = wait_for(
            lambda: where.exists() and where.read_text() and json.loads(where.read_text())["address"]
        )

    @property
    def engine(self) -> str:
        return self.address.replace("tcp://", "dask://")

    def add_worker(self, before: str = "", memory: str = "0") -> subprocess.Popen:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--memory-limit", memory)
        self.workers.append(self._start(before + WORKER, self.address, *options))
        return self.workers[-1]

    def _start(self, code: str, *arguments: str) -> subprocess.Popen:
        log = open(self._folder / f"{len(self._processes)}.log", "wb")  # noqa: SIM115, it is that of a process
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code, *arguments, *self._options],
            stdout=log,
            stderr=log,
            cwd=self._folder,
        )
        log.close()
        self._processes.append(process)
        return process

    def registered(self) -> int:
        """Count the workers that the scheduler has taken in, by their logs."""
        return sum("Registered to" in log.read_text(errors="replace") for log in self._folder.glob("*.log"))

    def close(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()


@contextmanager
def loopback_cluster(folder: Path, workers: int, tls: dict[str, str] | None = None) -> Iterator[LoopbackCluster]:
    cluster = LoopbackCluster(folder, tls)
    try:
        for _ in range(workers):
            cluster.add_worker()
        wait_for(lambda: cluster.registered() == workers)
        yield cluster
    finally:
        cluster.close()


def kill(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def wait_for(condition, seconds: float = PATIENCE):
    """What a condition gives once it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.05)
    return found


def make_certificates(folder: Path) -> dict[str, str]:
    """An authority, and one certificate with its key that it has signed, for 127.0.0.1."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.datetime.now(datetime.timezone.utc)

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])

    def certificate(name: str, key, issuer: str, signer, authority: bool):
        return (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named(issuer))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=2))
            .add_extension(x509.BasicConstraints(authority, None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .sign(signer, hashes.SHA256())
        )

    signer, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    files = {name: str(folder / f"{name}.pem") for name in ("ca-file", "cert", "key")}
    plain = serialization.Encoding.PEM
    Path(files["ca-file"]).write_bytes(certificate("authority", signer, "authority", signer, True).public_bytes(plain))
    Path(files["cert"]).write_bytes(certificate("kcrf", own, "authority", signer, False).public_bytes(plain))
    Path(files["key"]).write_bytes(
        own.private_bytes(plain, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    os.chmod(files["key"], 0o600)
    return files
