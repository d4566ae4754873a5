"""The launcher: a program between the harness and one command, run by path (`python -I -S`) with nothing of ours.

It adopts every orphan of the command (child subreaper), says on a status pipe when the command itself ends, and ends
the whole tree when told to, or when the harness is gone: the control pipe closes with it.
"""

# Arguments: control, status and exec fd, tty (0|1), most processes, most resident bytes, largest file (0: no limit), a
# count and as many words (see Hold), then the command. Status lines: `forked PID TICKS`, `exit CODE LEFT`, `left LEFT`,
# `over processes|memory`. The exec pipe carries an errno, or closes as the command begins: whatever that does to its
# launcher, nobody waits for a word.
# ruff: noqa: SIM105  (start-up time is the command's latency: no contextlib, and not `signal`, which imports enum)
import _signal as signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

GRACE = 0.5
TICK = 0.2
CROWD = 1000  # threads on the machine
LOOKS = 4
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"
_LOCK_SECONDS = 2.0
MARK = 1
POINTER = b".\n"
_PAGE = os.sysconf("SC_PAGE_SIZE")


def stat(pid: int) -> "tuple[int, int, int, bool] | None":
    """(start time in ticks, session, resident bytes, running) of a process, or None when it is gone."""
    try:
        data = read(f"/proc/{pid}/stat")
    except OSError:
        return None
    fields = data[data.rindex(b")") + 2 :].split()
    return int(fields[19]), int(fields[3]), int(fields[21]) * _PAGE, fields[0] not in b"ZX"


def children(pid: int) -> "list[int]":
    """The direct children of a process, zombies too."""
    listed = b""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:
                while block := file.read(65536):
                    listed += block
    except OSError:
        pass
    return [int(child) for child in listed.split()]


def descendants(root: int) -> "dict[int, tuple[int, int]]":
    """Every living descendant: pid -> (start time, resident bytes). Zombies are looked through, not counted."""
    living: dict[int, tuple[int, int]] = {}
    seen = {root}
    todo = children(root)
    while todo:
        pid = todo.pop()
        if pid in seen:
            continue
        seen.add(pid)
        state = stat(pid)
        if state is not None and state[3]:
            living[pid] = (state[0], state[2])
        todo += children(pid)
    return living


def machine() -> "tuple[int, int] | None":
    """(threads, bytes of memory in use) of the whole machine, in two reads; None where it does not say."""
    try:
        threads, lines = read("/proc/loadavg").split()[3].partition(b"/")[2], read("/proc/meminfo").split(b"\n")
        total, available = (int(line.split()[1]) * 1024 for line in (lines[0], lines[2]))
        return int(threads), total - available
    except (OSError, ValueError, IndexError):
        return None


def read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(4096)


class TreeLimits:
    """How many processes and how much resident memory a tree may have (0: any), and when to look: never while the whole
    machine has less, then whenever that has grown by an eighth of the bound, and now and then: the more runs, the more
    seldom, for a thousand launchers may look at one machine. `pause` is the seconds to the next question."""

    def __init__(self, processes: int, memory: int) -> None:
        self.most = (processes, memory)
        self.pause = TICK
        self.seen = (0, 0)
        self.next = 0.0

    def crossed(self, root: int) -> str:
        """The bound that the descendants have crossed: processes, memory or ""."""
        processes, memory = self.most
        if not (processes or memory) or not self._due():
            return ""
        tree = descendants(root)
        if processes and len(tree) > processes:
            return "processes"
        return "memory" if memory and sum(resident for _, resident in tree.values()) > memory else ""

    def _due(self) -> bool:
        used = machine()
        if used is None:
            return True
        self.pause = TICK * max(1.0, used[0] / CROWD)
        self.seen = (min(self.seen[0], used[0]), min(self.seen[1], used[1]))
        if not any(most and now > most for most, now in zip(self.most, used, strict=True)):
            return False
        grown = any(most and now - seen > most // 8 for most, now, seen in zip(self.most, used, self.seen, strict=True))
        if not grown and time.monotonic() < self.next:
            return False
        self.seen = used
        self.next = time.monotonic() + LOOKS * self.pause
        return True


def send(pid: int, started: int, *numbers: int) -> None:
    """Signal a process if it is still the one that began at `started`: a reused pid is never touched."""
    try:
        fd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
    except OSError:
        return
    try:
        state = stat(pid)
        if state is None or state[0] != started:
            return
        for number in numbers:
            if fd >= 0:
                signal.pidfd_send_signal(fd, number)
            else:
                os.kill(pid, number)
    except OSError:
        pass
    finally:
        if fd >= 0:
            os.close(fd)


def freeze(root: int) -> None:
    """Stop every descendant before any is killed, so that none can fork its way past the killing."""
    seen: set[int] = set()
    for _ in range(50 if _LINUX else 0):
        fresh = {pid: state for pid, state in descendants(root).items() if pid not in seen}
        if not fresh:
            break
        for pid, (started, _) in fresh.items():
            send(pid, started, signal.SIGSTOP)
        seen |= set(fresh)


def kill_inits(root: int) -> None:
    """KILL the sandbox below a launcher and the first process of its namespace, which takes all others with it."""
    for pid in children(root):
        for one in (*children(pid), pid):
            state = stat(one)
            if state is not None and state[3]:
                send(one, state[0], signal.SIGKILL)


def prctl(option: int, value: int) -> None:
    if _LINUX:
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Hold:
    """What a sandbox needs around its command, from words: `filter=HEX` (the seccomp program whose descriptor replaces
    `{filter}`), `mask=PATH` (covered in the place of `{masks}`, if it is still there), `lock=DIR` (shared by all
    commands that hold names below it), `folder=PATH` and `pointer=PATH` (names taken while any of them runs, so that
    nothing can be put there), `inits=N` (processes of the sandbox itself), `broker=PATH` (modules; the last makes names
    for the command) and `serve=WORD` (what it is given)."""

    def __init__(self, words: "list[str]") -> None:
        pairs = [word.partition("=")[::2] for word in words]
        options = dict(pairs)
        self.given = bool(pairs)
        self.filter = bytes.fromhex(options.get("filter", ""))
        self.inits = int(options.get("inits", "0"))
        self.broker = [value for name, value in pairs if name == "broker"]
        self.served = [value for name, value in pairs if name == "serve"]
        self.link = vars(self).get("link")  # of the broker
        self.masks = [path for name, path in pairs if name == "mask"]
        self.names = [(name, path) for name, path in pairs if name in ("folder", "pointer")]
        self.times: dict[str, tuple[int, int]] = {}
        self.lock = os.open(options["lock"], os.O_RDONLY | os.O_DIRECTORY) if self.names else -1

    def take(self) -> None:
        if self.broker:
            sys.dont_write_bytecode = True  # beside our own code nothing is left
            sys.path += [os.path.dirname(path) for path in self.broker]
            self.link = __import__("broker").BrokerLink(self.served)
        if self.lock < 0:
            return
        self._share()
        folders = {os.path.dirname(path) for _, path in self.names}
        before = {folder: os.stat(folder).st_mtime_ns for folder in folders}
        for name, path in self.names:
            try:
                if name == "folder":
                    os.mkdir(path, 0o700)
                else:
                    self._point(path)
                os.utime(path, (MARK, MARK))
            except FileExistsError:
                pass
        self.times = {folder: (was, os.stat(folder).st_mtime_ns) for folder, was in before.items()}

    def _point(self, path: str) -> None:
        """Whole or not at all: git stops at an empty one."""
        draft = f"{path}.{os.getpid()}"
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(fd, POINTER)
            os.link(draft, path)
        finally:
            os.close(fd)
            os.unlink(draft)

    def ready(self, argv: "list[str]") -> "list[str]":
        """In the process that becomes the command: open the filter."""
        if not self.filter:
            return self.link.fill(argv) if self.link is not None else argv
        fd = os.memfd_create("filter", 0)
        os.write(fd, self.filter)
        os.lseek(fd, 0, os.SEEK_SET)
        return self.fill(argv, fd)

    def fill(self, argv: "list[str]", fd: int) -> "list[str]":
        """The command with what only now is known; `fd` is the filter's. Only before its `--`."""
        end = argv.index("--")
        filled = []
        for word in argv[:end]:
            if word == "{masks}":
                present = [path for path in self.masks if os.path.lexists(path)]
                filled += [part for path in present for part in ("--ro-bind", "/dev/null", path)]
            else:
                filled.append(str(fd) if word == "{filter}" else word)
        return filled + argv[end:]

    def _share(self) -> None:
        """A shared lock; held alone by whoever tidies up, for a moment."""
        import fcntl

        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                return fcntl.flock(self.lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)

    def release(self) -> None:
        """Give the names back, if no other command holds them and nobody has put anything there; folders then have the
        time of their last change by others."""
        if self.lock < 0:
            return
        import fcntl

        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        times = {folder: (os.stat(folder), *both) for folder, both in self.times.items() if os.path.isdir(folder)}
        for name, path in reversed(self.names):
            try:
                status = os.lstat(path)
                if int(status.st_mtime) == MARK and name == "folder":
                    os.rmdir(path)
                elif int(status.st_mtime) == MARK and status.st_size == len(POINTER):
                    os.unlink(path)
            except OSError:
                pass
        for folder, (now, was, taken) in times.items():
            try:
                os.utime(folder, ns=(now.st_atime_ns, was if now.st_mtime_ns == taken else now.st_mtime_ns))
            except OSError:
                pass


class Launcher:
    def __init__(self, control: int, status: int, most: "tuple[int, int, int]", hold: Hold) -> None:
        self.control = control
        self.status = status
        self.hold = hold
        self.bounds = TreeLimits(*most[:2])
        self.file_size = most[2]
        self.command = 0
        self.running = False
        self.ending = False
        self.left = 0

    def say(self, line: str) -> None:
        """One status line; the harness may be gone."""
        try:
            os.write(self.status, line.encode() + b"\n")
        except OSError:
            pass

    def start(self, argv: "list[str]", tty: bool, began: int) -> None:
        """Fork, say so, and let the command begin."""
        # The child waits at the gate: no byte and no end may come from a command whose pid the harness was not told,
        # for it could not be ended then.
        gate, opened = os.pipe()
        launcher = os.getpid()
        refused = self._take()
        self.command = os.fork()
        if self.command == 0:
            try:
                os.close(opened)
                os.read(gate, 1)
                if refused is not None:
                    raise refused
                self._become(argv, tty, launcher)
            except OSError as error:
                os.write(began, str(error.errno).encode())
            finally:
                os._exit(127)
        if self.hold.link is not None:
            self.hold.link.start()
        self.running = True
        state = stat(self.command)
        self.say(f"forked {self.command} {state[0] if state else 0}")
        os.close(began)
        os.close(gate)
        os.close(opened)

    def _take(self) -> "OSError | None":
        try:
            self.hold.take()
        except OSError as error:
            return error
        return None

    def _become(self, argv: "list[str]", tty: bool, launcher: int) -> None:
        os.setsid()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(127)
        if tty:
            import fcntl
            import termios

            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if self.file_size or self.hold.given:
            import resource

            if self.file_size:
                resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_size, self.file_size))
            if self.hold.given:
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if _LINUX:
            _prefer_for_oom()
        argv = self.hold.ready(argv)
        os.execvp(argv[0], argv)

    def reap(self) -> bool:
        """Collect what has ended; True while anything of the tree is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return self._group_left()
            if pid == 0:
                return True
            if pid == self.command:
                self.running = False
                self.left = 0 if self.ending else self._count()
                self.say(f"exit {os.waitstatus_to_exitcode(status)} {self.left}")

    def _count(self) -> int:
        if not _LINUX:
            return int(self._group_left())
        return max(0, len(descendants(os.getpid())) - self.hold.inits)

    def _group_left(self) -> bool:
        if _LINUX:
            return False
        try:
            os.killpg(self.command, 0)
        except OSError:
            return False
        return True

    def watch(self, wake: int) -> None:
        """Until the tree is gone, or must go."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(wake, select.POLLIN)
        idle = not _LINUX or any(self.bounds.most)
        while self.reap():
            if not self.running:
                self._tell_left()
            ready = dict(poll.poll(self.bounds.pause * 1000 if idle else None))
            ordered = self.control in ready
            if wake in ready:
                ordered = ordered or bool({signal.SIGTERM, signal.SIGINT, signal.SIGHUP} & set(os.read(wake, 512)))
            if ordered or self._over():
                return self.end(wake)
        return None

    def _tell_left(self) -> None:
        left = self._count()
        if left != self.left:
            self.left = left
            self.say(f"left {left}")

    def _over(self) -> bool:
        crossed = self.bounds.crossed(os.getpid())
        if crossed:
            self.say(f"over {crossed}")
        return bool(crossed)

    def end(self, wake: int) -> None:
        """TERM to all, a grace, then KILL until nothing is left."""
        self.ending = True
        self._signal_all(signal.SIGTERM, signal.SIGCONT)
        pause = GRACE
        while self._left_after(pause, wake):
            # The first process of a sandbox takes all others with it. Without one, whoever was not killed yet could
            # fork: so all stand still before the first is killed, and this goes on until a look finds nobody.
            if self.hold.inits:
                kill_inits(os.getpid())
            else:
                freeze(os.getpid())
                self._signal_all(signal.SIGKILL)
            pause = 0.005 if pause == GRACE else min(pause * 2, 0.2)

    def _left_after(self, seconds: float, wake: int) -> bool:
        """Whether anything is left when so much time has passed; woken by each child's end."""
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        deadline = time.monotonic() + seconds
        while self.reap():
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            if poll.poll(left * 1000 if _LINUX else 5):
                os.read(wake, 512)
        return False

    def _signal_all(self, *numbers: int) -> None:
        if not _LINUX:
            for number in numbers:
                try:
                    os.killpg(self.command, number)
                except OSError:
                    pass
            return
        for pid, (started, _) in descendants(os.getpid()).items():
            send(pid, started, *numbers)


def _prefer_for_oom() -> None:
    """When memory runs out the kernel takes the command before the harness."""
    try:
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
            file.write(b"500")
    except OSError:
        pass


def main(args: "list[str]") -> None:
    """Run one command to the end of its tree."""
    control, status, began, tty, *most = (int(arg) for arg in args[:7])
    words = 8 + int(args[7])
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wake, waker = os.pipe()
    for fd in (wake, waker):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    launcher = Launcher(control, status, (most[0], most[1], most[2]), Hold(args[8:words]))
    launcher.start(args[words:], bool(tty), began)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    launcher.watch(wake)
    launcher.hold.release()


if __name__ == "__main__":
    for passed in sys.argv[1:4]:
        os.set_inheritable(int(passed), False)
    main(sys.argv[1:])
    os._exit(0)
