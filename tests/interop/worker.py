"""Runs one Python client: worker.py <client> <ports> <name of the lock>

Several ports are separated by commas, for clients that lock on a majority of servers.

The first line of output names the version. Then every line of input is a request, and every line of output is its
answer. The process ends with its input.

    take <ttl in ms>      asks once for the lock: yes, or no if another client holds it
    take-renewed <ttl>    the same, with the client's own renewal: yes, no, or none if it has no renewal
    wait <ttl>            waits for the lock as the client does by default: yes
    extend <ttl>          yes, no if the lock is lost, or none if the client cannot
    release               yes, or no if the lock is lost
    count <rounds>        increments the counter that often under the lock, in steps that are not atomic: done
"""

import logging
import sys
import time
from importlib.metadata import version

import redis

PAUSE = 0.003
TTL = 10_000


class RedisPy:
    package = "redis"

    def __init__(self, servers, name):
        self.servers, self.name, self.lock = servers, name, None

    def acquire(self, ttl, **how):
        lock = self.servers[0].lock(self.name, timeout=ttl / 1000, **how)
        taken = lock.acquire()
        self.lock = lock if taken else self.lock
        return taken

    def take(self, ttl):
        return self.acquire(ttl, blocking=False)

    def wait(self, ttl):
        return self.acquire(ttl)

    def wait_impatiently(self, ttl):
        return self.acquire(ttl, sleep=PAUSE)

    def take_renewed(self, ttl):
        return None

    def extend(self, ttl):
        return self.lock.extend(ttl / 1000, replace_ttl=True)

    def release(self):
        self.lock.release()
        return True


class RedlockPy:
    package = "redlock-py"

    def __init__(self, servers, name):
        self.servers, self.name, self.lock = servers, name, None

    def acquire(self, ttl, **how):
        from redlock import Redlock

        self.locks = Redlock(self.servers, **how)
        lock = self.locks.lock(self.name, ttl)
        self.lock = lock or self.lock
        return bool(lock)

    def take(self, ttl):
        return self.acquire(ttl, retry_count=1, retry_delay=PAUSE)

    def wait(self, ttl):
        return self.acquire(ttl, retry_count=1000)

    def wait_impatiently(self, ttl):
        return self.acquire(ttl, retry_count=1_000_000, retry_delay=PAUSE)

    def take_renewed(self, ttl):
        return None

    def extend(self, ttl):
        return None

    def release(self):
        # The client does not say whether it still held the lock.
        self.locks.unlock(self.lock)
        return True


class PythonRedisLock:
    package = "python-redis-lock"

    def __init__(self, servers, name):
        self.servers, self.name, self.lock = servers, name, None

    def make(self, ttl, **how):
        import redis_lock

        return redis_lock.Lock(self.servers[0], self.name, expire=-(-ttl // 1000), **how)

    def keep(self, lock, taken):
        self.lock = lock if taken else self.lock
        return taken

    def take(self, ttl):
        lock = self.make(ttl)
        return self.keep(lock, lock.acquire(blocking=False))

    def wait(self, ttl):
        lock = self.make(ttl)
        return self.keep(lock, lock.acquire())

    def wait_impatiently(self, ttl):
        # The client waits for a signal that only its own releases send.
        while not self.take(ttl):
            time.sleep(PAUSE)
        return True

    def take_renewed(self, ttl):
        lock = self.make(ttl, auto_renewal=True)
        return self.keep(lock, lock.acquire(blocking=False))

    def extend(self, ttl):
        self.lock.extend(-(-ttl // 1000))
        return True

    def release(self):
        self.lock.release()
        return True


class Pottery:
    package = "pottery"

    def __init__(self, servers, name):
        self.servers, self.name, self.lock = servers, name, None

    def acquire(self, ttl, pause=None, **how):
        from pottery import Redlock

        class Impatient(Redlock):
            _RETRY_DELAY = PAUSE

        kind = Impatient if pause else Redlock
        lock = kind(key=self.name, masters=set(self.servers), auto_release_time=ttl / 1000)
        taken = lock.acquire(**how)
        self.lock = lock if taken else self.lock
        return taken

    def take(self, ttl):
        return self.acquire(ttl, blocking=False)

    def wait(self, ttl):
        return self.acquire(ttl)

    def wait_impatiently(self, ttl):
        return self.acquire(ttl, pause=PAUSE)

    def take_renewed(self, ttl):
        return None

    def extend(self, ttl):
        self.lock.auto_release_time = ttl / 1000
        self.lock.extend()
        return True

    def release(self):
        self.lock.release()
        return True


CLIENTS = {kind.package: kind for kind in (RedisPy, RedlockPy, PythonRedisLock, Pottery)}
# The exceptions by which the clients say that the lock is not theirs any more.
LOST = {"LockNotOwnedError", "NotAcquired", "ExtendUnlockedLock", "ReleaseUnlockedLock"}


def count(server, client, rounds):
    for _ in range(rounds):
        if not client.wait_impatiently(TTL):
            raise RuntimeError("the client gave up")
        number = int(server.get("counter") or 0)
        time.sleep(0.001)
        server.set("counter", number + 1)
        client.release()
        time.sleep(PAUSE)
    return "done"


def answer(server, client, request):
    verb, *numbers = request.split()
    try:
        if verb == "count":
            return count(server, client, int(numbers[0]))
        outcome = getattr(client, verb.replace("-", "_"))(*map(int, numbers))
    except Exception as error:
        if type(error).__name__ in LOST and verb != "count":
            return "no"
        return f"failed: {type(error).__name__}: {error}"
    return {True: "yes", False: "no", None: "none"}[outcome]


def main():
    _, name, ports, lock = sys.argv
    # python-redis-lock waits in one command of the server, for longer than the default timeout of redis-py 8.
    servers = [
        redis.Redis(host="127.0.0.1", port=int(port), socket_timeout=None)
        for port in ports.split(",")
    ]
    logging.disable()
    kind = CLIENTS[name]
    client = kind(servers, lock)
    print(version(kind.package), flush=True)
    for request in sys.stdin:
        print(answer(servers[0], client, request).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
