package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// conversation returns a member's transcript, as session show exports it.
func (r *faultRig) conversation(name string) (out transcript) {
	r.Helper()
	if err := json.Unmarshal([]byte(r.teamctl("session", "show", name, "--json")), &out); err != nil {
		r.Fatal(err)
	}
	return out
}

// rests reports whether a member has no running or queued turn and has received every message.
func (r *faultRig) rests(name string, sent []string) bool {
	r.Helper()
	c := r.conversation(name)
	if len(c.Waiting) > 0 || slices.ContainsFunc(c.Turns, func(j ledger.TurnJob) bool { return !j.State.Ended() }) {
		return false
	}
	text := wholeOf(c)
	return !slices.ContainsFunc(sent, func(id string) bool { return !strings.Contains(text, id) })
}

// wholeOf returns the content of a transcript.
func wholeOf(c transcript) string {
	var b strings.Builder
	for _, e := range c.Entries {
		b.WriteString(e.Content + "\n")
	}
	return b.String()
}

// revive starts the members that have failed too often in a row, as a person does.
func (r *faultRig) revive() {
	r.Helper()
	for name, m := range r.members() {
		if m.Observed == team.Failed {
			r.teamctl("start", name)
		}
	}
}

// TestFiveAreKilledAgainAndAgain repeatedly kills everything with SIGKILL during the turns of
// five built-in agents, on all backends. Every task is completed once, every message is in a
// transcript once, the sessions stay the same, and a server that refuses what vendors refuse has
// refused nothing.
func TestFiveAreKilledAgainAndAgain(t *testing.T) {
	rounds := 10
	names := []string{"one", "two", "three", "four", "five"}
	if testing.Short() { // one on each backend
		rounds, names = 2, []string{"one", "three", "four"}
	}
	r := newFaultRig(t)
	v := r.strictModel()
	backends := map[string]string{"one": "pty", "two": "pty", "three": "tmux", "four": "in-process", "five": "in-process"}
	for _, name := range names {
		r.thinker(name, backends[name])
	}
	before := r.members()
	owner := map[string]string{} // by task
	sent := map[string][]string{}
	give := func(name, task string) {
		text := fmt.Sprintf("@@call TaskClaim {\"task_id\":%q}\n@@shell echo task-%s >> log; sleep 0.1\n@@call TaskComplete {\"task_id\":%q,\"summary\":\"done\"}", task, task, task)
		sent[name] = append(sent[name], r.send(name, text))
	}
	done := func() map[string]bool {
		var out struct {
			Tasks []struct {
				ID     string          `json:"id"`
				Status team.TaskStatus `json:"status"`
			}
		}
		if err := json.Unmarshal([]byte(r.teamctl("task", "ls", "--json")), &out); err != nil {
			t.Fatal(err)
		}
		is := map[string]bool{}
		for _, x := range out.Tasks {
			is[x.ID] = x.Status == team.TaskCompleted
		}
		return is
	}
	entries := func() (n int) {
		for _, name := range names {
			n += len(r.conversation(name).Entries)
		}
		return n
	}
	for range rounds {
		was := entries() // before the first message, which may be answered at once
		for _, name := range names {
			id := strings.TrimSpace(r.teamctl("task", "add", "for "+name))
			owner[id] = name
			give(name, id)
		}
		r.until("turns to go on", func() bool { return entries() >= was+len(names) })
		for _, name := range names {
			if backends[name] != "in-process" {
				p := r.proc(name)
				r.kill(p.Shim)
				r.kill(p.Agent)
			}
		}
		r.kill(r.supervisor())
		r.revive() // starts a supervisor, too
	}
	// An agent whose claim was lost in a kill is asked again, as by a lead. The time limit is for
	// each task, not for all of them, since many rounds leave many open tasks.
	look := func() (open int) {
		for id, completed := range done() {
			if completed {
				continue
			}
			open++
			if r.rests(owner[id], sent[owner[id]]) {
				give(owner[id], id)
			}
		}
		return open
	}
	for left := look(); left > 0; {
		r.until("another task to be completed", func() bool {
			open := look()
			fewer := open < left
			left = open
			return fewer
		})
	}
	completions := map[string]int{}
	for line := range strings.Lines(r.teamctl("events", "--what", team.EventTaskCompleted, "-o", "jsonl")) {
		var e struct{ ID string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		completions[e.ID]++
	}
	for id, name := range owner {
		if completions[id] != 1 {
			t.Errorf("task %s of %s was completed %d times", id, name, completions[id])
		}
	}
	after := r.members()
	for _, name := range names {
		r.until(name+" to have its mail", func() bool { return r.rests(name, sent[name]) })
		text := wholeOf(r.conversation(name))
		for _, id := range sent[name] {
			if n := strings.Count(text, `message_id="`+id+`"`); n != 1 {
				t.Errorf("message %s is in the transcript of %s %d times", id, name, n)
			}
		}
		if was, is := before[name].SessionKey, after[name].SessionKey; was != is {
			t.Errorf("%s has session %s, had %s", name, is, was)
		}
	}
	if why := v.Refused(); len(why) > 0 {
		t.Errorf("refused %d times: %s", len(why), why[0])
	}
}
