"""A mailbox client written from docs/protocol.md and nothing else.
usage: mailbox.py TEAMDIR AGENT send FROM COUNT | mailbox.py TEAMDIR AGENT take COUNT"""
import contextlib, datetime, fcntl, json, os, sys, time, uuid

team, agent, verb = sys.argv[1:4]
box = os.path.join(team, "inboxes", agent + ".json")
guard = os.path.join(team, "locks", agent + ".guard")

@contextlib.contextmanager
def locked():
    fd = os.open(guard, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        while True:
            try:
                os.mkdir(box + ".lock", 0o710)
                break
            except FileExistsError:  # a client of the other kind is at it, or a dead one was
                with contextlib.suppress(FileNotFoundError):
                    st = os.stat(box + ".lock")
                    if st.st_mode & 0o777 == 0o710 or time.time() - st.st_mtime > 10:
                        aside = "%s/.%s.json.lock.stale-%s" % (os.path.dirname(box), agent, os.urandom(8).hex())
                        os.rename(box + ".lock", aside)
                        os.rmdir(aside)
                    else:
                        time.sleep(0.005)
        yield
        os.rmdir(box + ".lock")
    finally:
        os.close(fd)

def load():
    try:
        with open(box, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return []

def store(entries):
    tmp = "%s/.%s.json.tmp-%s" % (os.path.dirname(box), agent, os.urandom(8).hex())
    with open(os.open(tmp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as f:
        json.dump(entries, f, indent=2, ensure_ascii=False)
    os.replace(tmp, box)

if verb == "send":
    for n in range(int(sys.argv[5])):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        with locked():
            store(load() + [{"from": sys.argv[4], "text": "%s-%02d" % (sys.argv[4], n),
                             "timestamp": now.replace("+00:00", "Z"), "msg_id": str(uuid.uuid4()), "read": False}])
else:
    want, deadline = int(sys.argv[4]), time.time() + 60
    while want > 0 and time.time() < deadline:
        with locked():
            entries = load()
            new = [e for e in entries if not e["read"]]
            for e in new:
                e["read"] = True
            if new:
                store(entries)
        for e in new:
            print(e["text"], flush=True)
        want -= len(new)
        time.sleep(0.01)
