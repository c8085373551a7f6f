"""A mailbox client that locks all mailboxes of a team by flock and rewrites in place.
usage: inplace.py TEAMDIR AGENT FROM COUNT"""
import datetime, fcntl, json, os, sys

team, agent, sender, count = sys.argv[1:5]
boxes = os.path.join(team, "inboxes")
box = os.path.join(boxes, agent + ".json")
lock = os.open(os.path.join(boxes, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

for n in range(int(count)):
    fcntl.flock(lock, fcntl.LOCK_EX)
    with open(box, encoding="utf-8") as f:
        entries = json.load(f)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    entries.append({"from": sender, "text": "%s-%02d" % (sender, n), "timestamp": now.replace("+00:00", "Z"), "read": False})
    with open(box, "w", encoding="utf-8") as f:  # empties it
        f.flush()
        os.sched_yield()
        for part in json.JSONEncoder(indent=2).iterencode(entries):
            f.write(part)
    fcntl.flock(lock, fcntl.LOCK_UN)
