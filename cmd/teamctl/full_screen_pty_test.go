package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends/pty/vt"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// console is a terminal of a person without tmux: what programs write is read by the terminal
// emulator, which answers their queries, too.
type console struct {
	*faultRig
	tty    *os.File
	scan   vt.Scanner
	screen *vt.Screen
	output *terminalOutput
}

// console opens a terminal and runs a command in it.
func (r *faultRig) console(cols, rows uint16, c *exec.Cmd) *console {
	r.Helper()
	o := &console{faultRig: r, screen: vt.New(int(cols), int(rows), 100)}
	c.Dir, c.Env = r.dir, append(r.env, "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	o.tty = startOnTerminal(r.T, c, cols, rows)
	o.output = readTerminal(o.tty, o)
	r.Cleanup(func() {
		if r.Failed() {
			r.Logf("the screen:\n%s", o.text())
			_ = c.Process.Kill() // if it still runs
			_ = c.Wait()
		}
		o.output.close()
	})
	return o
}

// Write passes output to the terminal emulator.
func (o *console) Write(p []byte) (int, error) {
	o.scan.Scan(p, func(k vt.Kind, piece []byte) {
		if k != vt.Query {
			_, _ = o.screen.Write(piece)
			return
		}
		if a := o.screen.Answer(piece); a != nil {
			_, _ = o.tty.Write(a)
		}
	})
	return len(p), nil
}

func (o *console) text() string { return o.output.see(func() string { return o.screen.Text(0) }) }

// modes returns the modes in which the terminal is, other than those of a new one.
func (o *console) modes() string {
	mode := regexp.MustCompile(`\x1b(\[[?>][0-9;]+[hmu]|\[[0-9]+ q|\[(4|20)h|=)`)
	list := func(s *vt.Screen) string { return strings.Join(mode.FindAllString(string(s.Redraw(0)), -1), " ") }
	return o.output.see(func() string {
		if was, now := list(vt.New(80, 24, 0)), list(o.screen); now != was {
			return fmt.Sprintf("%q, and were %q", now, was)
		}
		return ""
	})
}

// types writes keys to the terminal.
func (o *console) types(keys string) {
	o.Helper()
	if _, err := o.tty.WriteString(keys); err != nil {
		o.Fatal(err)
	}
}

func (o *console) sees(what string, ok func(text string) bool) {
	o.Helper()
	o.until(what, func() bool { return ok(o.text()) })
}

func (o *console) shows(want string) {
	o.Helper()
	o.sees("a screen with "+want, func(text string) bool { return strings.Contains(text, want) })
}

// says types a text into the field of the screen.
func (o *console) says(text string) {
	o.Helper()
	o.types(text)
	o.shows("▏ " + text)
}

// has returns the first line of the left half of the screen that contains all words, and the line with the
// selected row; -1 for none.
func (o *console) has(words ...string) (at, selected int) {
	at, selected = -1, -1
	y := 0
	for line := range strings.Lines(o.text()) {
		left, _, _ := strings.Cut(line, "│")
		all := true
		for _, w := range words {
			all = all && strings.Contains(left, w)
		}
		if all && at < 0 {
			at = y
		}
		if strings.HasPrefix(left, " › ") {
			selected = y
		}
		y++
	}
	return at, selected
}

// at waits until the selected row contains all words.
func (o *console) at(words ...string) {
	o.Helper()
	o.until(fmt.Sprintf("a selected row with %q", words), func() bool {
		at, selected := o.has(words...)
		return at >= 0 && at == selected
	})
}

// goes moves the selection, row by row, to the row that contains all words.
func (o *console) goes(words ...string) {
	o.Helper()
	o.until(fmt.Sprintf("a row with %q to go to", words), func() bool {
		at, selected := o.has(words...)
		return at >= 0 && selected >= 0
	})
	for {
		at, was := o.has(words...)
		switch {
		case at == was:
			return
		case at > was:
			o.types("j")
		default:
			o.types("k")
		}
		o.until("another selected row", func() bool { _, y := o.has(); return y != was })
	}
}

// answers types a key that answers what is shown, once it has been shown for long enough to be read. It
// types the key again only if the screen reports that it was too early.
func (o *console) answers(key, want string) {
	o.Helper()
	early := false
	for {
		read := time.NewTimer(700 * time.Millisecond)
		<-read.C
		o.types(key)
		o.sees("a screen with "+want, func(text string) bool {
			early = strings.Contains(text, "nothing was answered") || strings.Contains(text, "still being read")
			return early || strings.Contains(text, want)
		})
		if !early {
			return
		}
		o.types("\x0c") // draws the screen anew, without that report
		o.sees("the end of the report", func(text string) bool {
			return !strings.Contains(text, "nothing was answered") && !strings.Contains(text, "still being read")
		})
	}
}

// decoded returns the output of a command of the team as data.
func decoded[T any](r *faultRig, args ...string) T {
	r.Helper()
	var v T
	if err := json.Unmarshal([]byte(r.teamctl(append(args, "--json")...)), &v); err != nil {
		r.Fatal(err)
	}
	return v
}

// TestFullScreenOnTerminal checks a day at the full screen on a terminal without tmux, in one run of the
// program: the ledger has what the keys did, and the terminal is left as it was.
func TestFullScreenOnTerminal(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "cart", "--backend", "tmux", "--", "sh", "-c",
		`printf 'package cart\nvar digits = 2\nvar rate = 3\n' >cart.go; git add cart.go && git commit -q -m 'add the cart'; `+
			`until `+r.exe+` inbox --unread | grep '1.2 cart.go:3'; do sleep 0.3; done; `+
			r.exe+` inbox --consume; `+r.exe+` review answer 1.1 --handled 'by the currency now'; `+r.exe+` review answer 1.2 --handled`)
	r.asks("ann", `permission Bash --input '{"command":"npm publish --tag next"}' --description 'publish the package'`)
	r.asks("bob", `plan 'rename the flag'`)
	r.teamctl("task", "add", "integration")
	r.teamctl("task", "claim", "1")
	r.teamctl("task", "fail", "1", "--error", "2 of 40 failed")
	r.until("the commit of cart", func() bool {
		_, err := r.try("git", "-C", "repo", "show", "teamctl/f/cart:cart.go")
		return err == nil
	})

	c := exec.Command("sh", "-c", `echo before; stty -g >modes.before; PATH="$0:$PATH" teamctl; echo "teamctl exits with $?"; stty -g >modes.after`, filepath.Dir(r.exe))
	o := r.console(120, 36, c)
	o.shows("3 NEED YOU")
	if strings.Contains(o.text(), "before") {
		t.Error("the screen is not the alternate one")
	}
	o.at("permission", "ann")
	o.types(".")
	o.at("plan", "bob")
	o.types(",")
	o.at("permission", "ann")

	o.shows("permission 1 of ann") // with the whole request
	o.shows("a approve")
	o.answers("a", "request 1 of ann is approved")
	if x := r.approval(1); x.State != ledger.ApprovalApproved || x.AnsweredBy != team.LeadName {
		t.Errorf("permission 1 is %s by %q", x.State, x.AnsweredBy)
	}
	if x := r.approval(2); x.State != ledger.ApprovalPending {
		t.Errorf("plan 2 is %s", x.State)
	}
	o.shows("2 NEED YOU")
	o.at("plan", "bob") // the row of the permission is gone

	o.shows("plan 2 of bob")
	o.shows("x reject")
	o.answers("x", "reason, or what to change")
	o.says("keep the old one")
	o.answers("\r", "request 2 of bob is rejected")
	if x := r.approval(2); x.State != ledger.ApprovalRejected || x.Feedback != "keep the old one" {
		t.Errorf("plan 2 is %s with %q", x.State, x.Feedback)
	}
	o.shows("1 NEED")
	o.at("failed", "integration")

	o.types("\r")
	o.shows("WHY IT FAILED")
	o.types("\x1b")
	o.at("failed", "integration")
	o.types("r")
	o.shows("NOTHING NEEDS YOU")
	if x := decoded[struct{ Status string }](r, "task", "show", "1"); x.Status != "pending" {
		t.Errorf("task 1 is %q", x.Status)
	}

	o.goes("ann ")
	o.types("m")
	o.shows("message ann: what to tell it")
	o.says("look at task 1")
	o.types("\r")
	o.shows("to ann: mailed")
	receipt := func() (state string) {
		t.Helper()
		sent := decoded[struct {
			Messages []struct {
				Text       string
				Deliveries []struct{ State string }
			}
		}](r, "message", "ls", "--to", "ann")
		for _, m := range sent.Messages {
			for _, d := range m.Deliveries {
				if m.Text == "look at task 1" {
					state += d.State
				}
			}
		}
		return state
	}
	if got := receipt(); got != "mailed" {
		t.Errorf("the message to ann is %q", got)
	}

	o.types("o")
	o.shows("teamctl attach ann")
	o.types("attach")
	o.shows("what can be done  /attach")
	o.types("\r")
	o.shows("C-b d: back")
	o.shows("it has asked")
	o.types("\r") // makes ann read its mail
	o.shows("look at task 1")
	o.types("\x02d")
	o.shows("MEMBERS 3")
	o.shows("to ann: read")
	if got := receipt(); got != "read" {
		t.Errorf("the message to ann is %q", got)
	}

	o.goes("cart ")
	o.types("d")
	o.shows("CHANGES of cart")
	o.shows("var rate = 3")
	o.types("\r")
	o.shows("n next change")
	for i, text := range []string{"why two?", "whose rate?"} {
		o.types("j")
		o.types("c")
		o.shows(fmt.Sprintf("comment on cart.go:%d of cart", i+2))
		o.says(text)
		o.types("\r")
		o.shows(fmt.Sprintf("draft 1.%d: %s", i+1, text))
	}
	type comment struct {
		Name, Path, Text, State, Answer string
		Line                            int
	}
	comments := func(want ...comment) {
		t.Helper()
		got := decoded[struct {
			Reviews []struct{ Comments []comment }
		}](r, "review", "show", "cart")
		if len(got.Reviews) != 1 || !slices.Equal(got.Reviews[0].Comments, want) {
			t.Errorf("the comments are %+v, want %+v", got.Reviews, want)
		}
	}
	one := comment{"1.1", "cart.go", "why two?", "draft", "", 2}
	two := comment{"1.2", "cart.go", "whose rate?", "draft", "", 3}
	comments(one, two)
	o.types("S")
	o.shows("handled 1.1: why two?")
	o.shows("by the currency now")
	o.shows("handled 1.2: whose rate?")
	one.State, two.State, one.Answer = "handled", "handled", "by the currency now"
	comments(one, two)

	r.until("the branch to be ready", func() bool {
		out, err := r.try(r.exe, "merge", "--ready", "--dry-run") // fails while cart runs
		return err == nil && strings.Contains(out, "cart would be merged")
	})
	o.types("M")
	o.shows("cart would be merged into main")
	o.answers("M", "cart merged into main")
	merges := decoded[struct {
		Merges []struct{ Member, Target, State string }
	}](r, "merge", "queue", "--all")
	if fmt.Sprint(merges.Merges) != "[{cart main landed}]" {
		t.Errorf("the merges are %v", merges.Merges)
	}
	if log := r.command("git", "-C", "repo", "log", "--format=%s", "main"); !strings.Contains(log, "add the cart") {
		t.Errorf("main has\n%s", log)
	}

	o.types("q")
	o.shows("teamctl exits with 0")
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	<-o.output.done
	if text := o.text(); o.screen.Alternate() || !strings.HasPrefix(text, "before\n") {
		t.Errorf("the screen is\n%s", text)
	}
	if modes := o.modes(); modes != "" {
		t.Errorf("the modes of the terminal are %s", modes)
	}
	if before, after := r.file("modes.before"), r.file("modes.after"); before != after {
		t.Errorf("the modes of the line are %s, and were %s", after, before)
	}
}
