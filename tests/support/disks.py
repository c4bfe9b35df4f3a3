"""Disks that can fail, for tests: file systems in a file whose power can be cut, and small ones in memory that fill up. Needs root."""

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

SHUTDOWN = 0x8004587D
"""The call that ends a mounted ext4 or xfs as a loss of power does: bytes that are not on the disk by now never will be."""
WITHOUT_LOG = 2
UNMOUNT_TRIES = 50
IMAGE_BYTES = {"ext4": 96 << 20, "xfs": 320 << 20}
"""xfs is not made smaller than 300 MiB."""


def why_not(kind: str) -> str | None:
    """What this machine lacks for a disk of a kind; None if nothing."""
    if os.geteuid() != 0:
        return "mounting needs root"
    tools = ["mount", "umount"] if kind == "tmpfs" else ["mount", "umount", "losetup", f"mkfs.{kind}"]
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not found"
    if kind != "tmpfs" and not Path("/dev/loop-control").exists():
        return "there are no loop devices"
    return None


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


class Disk:
    """A mounted file system; `close` always leaves nothing mounted."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "disk"
        self.root.mkdir()
        self.mounted = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.root}{'' if self.mounted else ', not mounted'}>"

    def unmount(self) -> None:
        """Unmount; processes with open files there must have ended, which the kernel may take a moment to notice."""
        for left in reversed(range(UNMOUNT_TRIES)):
            try:
                run("umount", str(self.root))
                break
            except OSError:
                if not left:
                    run("umount", "--lazy", str(self.root))
                    raise
                time.sleep(0.1)
        self.mounted = False

    def close(self) -> None:
        if self.mounted:
            self.unmount()


class LoopDisk(Disk):
    """A file system in a file of its own."""

    def __init__(self, folder: Path, kind: str) -> None:
        super().__init__(folder)
        self.kind = kind
        image = folder / "image"
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES[kind])
        run(f"mkfs.{kind}", "-q", str(image))
        self.device = run("losetup", "--find", "--show", str(image))
        try:
            self.mount()
        except BaseException:
            self.close()
            raise

    def mount(self) -> None:
        run("mount", "-t", self.kind, self.device, str(self.root))
        self.mounted = True

    def cut_power(self) -> None:
        """Fail every operation from now on; after `replace` the disk has its contents of this moment."""
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, WITHOUT_LOG.to_bytes(4, "little"))
        finally:
            os.close(descriptor)

    def restore_power(self) -> None:
        self.unmount()
        self.mount()

    def close(self) -> None:
        try:
            super().close()
        finally:
            run("losetup", "--detach", self.device)


class MemoryDisk(Disk):
    """A file system in memory, with a size in bytes."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        super().__init__(folder)
        run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "horolog-test", str(self.root))
        self.mounted = True

    def resize(self, size_bytes: int) -> None:
        run("mount", "-o", f"remount,size={size_bytes}", str(self.root))
