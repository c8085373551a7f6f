package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/team"
)

// appends: one message into mailboxes of different lengths, against the way in which
// a program does it that reads, parses, writes and renames the whole file under a
// lock directory.
var appends = benchmark{name: "append", title: "One message into a mailbox", run: runAppend}

// goalsRewrite are the goals by the length of the mailbox: how many times faster an append is than
// a rewrite.
var goalsRewrite = map[int]float64{1_000: 20, 10_000: 200}

func runAppend(ctx context.Context, e env) (string, error) {
	type line struct {
		n        int
		ours     *inbox.Box
		whole    string
		in, over []time.Duration
	}
	var lines []*line
	for _, n := range []int{10, 1_000, 10_000, 100_000} {
		l := team.Home{Dir: filepath.Join(e.dir, fmt.Sprint("a", n))}.Team("b")
		for _, d := range []string{l.Inboxes(), l.Locks()} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				return "", err
			}
		}
		if err := fillBox(ctx, l, "ours", n); err != nil {
			return "", err
		}
		if err := fillBox(ctx, l, "whole", n); err != nil {
			return "", err
		}
		box, err := inbox.Open(l.Inboxes(), l.Locks(), "ours")
		if err != nil {
			return "", err
		}
		lines = append(lines, &line{n: n, ours: box, whole: filepath.Join(l.Inboxes(), "whole.json")})
	}
	rounds := max(e.rounds, 20)
	for r := range rounds {
		for i := range lines {
			l := lines[(i+r)%len(lines)]
			entry := inbox.Entry{From: "bench", Text: "a message of an ordinary length, as people write them", Timestamp: inbox.Timestamp(time.Now())}
			for range 20 {
				entry.ID = team.NewUUID()
				began := time.Now()
				if err := l.ours.Append(ctx, entry); err != nil {
					return "", err
				}
				l.in = append(l.in, time.Since(began))
			}
			began := time.Now()
			if err := rewriteAppend(l.whole, entry); err != nil {
				return "", err
			}
			l.over = append(l.over, time.Since(began))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s Both under the lock directory of other programs.\n\n| messages there | in place, ms | p99 ms | x 10 messages | rewriting all, ms | x rewriting | goal |\n|---|---|---|---|---|---|---|\n", where(rounds))
	for _, l := range lines {
		x, gain := float64(median(l.in))/float64(median(lines[0].in)), float64(median(l.over))/float64(median(l.in))
		ok, goal := x <= goalHistory, fmt.Sprintf("<= %.1f x", goalHistory)
		if g := goalsRewrite[l.n]; g > 0 {
			ok, goal = ok && gain >= g, goal+fmt.Sprintf(", >= %.0f x rewriting", g)
		}
		fmt.Fprintf(&b, "| %d | %.3f | %.3f | %.2f | %s | %.0f | %s |\n", l.n, float64(median(l.in))/1e6, float64(quantile(l.in, 0.99))/1e6, x,
			ms(median(l.over)), gain, reached(ok, goal))
	}
	return b.String(), nil
}

// rewriteAppend is what the recorded clients do, without their retries.
func rewriteAppend(path string, e inbox.Entry) (err error) {
	lock := path + ".lock"
	if err := os.Mkdir(lock, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(lock)) }()
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var all []map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	all = append(all, map[string]any{"from": e.From, "text": e.Text, "timestamp": e.Timestamp, "msg_id": e.ID, "read": false})
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", out.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
