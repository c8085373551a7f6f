package main

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
)

// TestPlainScreen checks that a person can see what is needed, answer it, send a message, retry
// from a numbered list and quit with words in labelled lines. Changes are reported once, and only
// text is written.
func TestPlainScreen(t *testing.T) {
	r := newFaultRig(t)
	r.asks("ann", `permission Bash --input '{"command":"npm publish --tag next"}'`)
	r.teamctl("task", "add", "integration")
	r.teamctl("task", "claim", "1")
	r.teamctl("task", "fail", "1", "--error", "2 of 40 failed")

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, r.exe)
	c.Dir, c.Env = r.dir, append(r.env, "TERM=xterm-256color", "TEAMCTL_PLAIN=1")
	tty := startOnTerminal(t, c, 80, 24)
	var written strings.Builder
	output := readTerminal(tty, &written)
	said := func() string { return strings.ReplaceAll(output.see(written.String), "\r\n", "\n") }
	shows := func(pattern string) []string {
		t.Helper()
		re := regexp.MustCompile("(?m)^" + pattern)
		r.until(pattern+" in the lines", func() bool { return re.MatchString(said()) || ctx.Err() != nil })
		if m := re.FindStringSubmatch(said()); m != nil {
			return m
		}
		t.Fatalf("no %q in\n%s", pattern, said())
		return nil
	}
	types := func(line string) {
		t.Helper()
		hand := time.NewTimer(600 * time.Millisecond)
		<-hand.C
		if _, err := tty.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	shows(`teamctl, plain screen: on by TEAMCTL_PLAIN\. Team f\. 2 need you, 0 of 1 tasks done\. help lists the words\.$`)
	shows(`needs you 1 of 2: permission 1, ann, Bash, "npm publish --tag next", waits \d+ (second|minute)`)
	shows(`needs you 2 of 2: task 1, `)
	types("approve 1")
	shows(`request 1 of ann is approved\.$`)
	if x := r.approval(1); x.State != ledger.ApprovalApproved {
		t.Errorf("permission 1 is %s", x.State)
	}
	types("approve 1")
	shows(`nothing was answered: permission 1 of ann is already approved by person, by the screen\.$`)
	types("frobnicate")
	shows(`there is no word "frobnicate": help lists them\.$`)
	types("say ann look at task 1")
	shows(`message to ann: mailed `)
	types("show task 1")
	shows(`task 1  integration$`)
	types("log 1")
	shows(`why it failed: 2 of 40 failed$`)
	types("menu task 1")
	number := shows(`(\d+): retry$`)[1]
	types(number)
	r.until("the retry", func() bool { return strings.Contains(r.teamctl("task", "show", "1", "--json"), `"status": "pending"`) })
	r.teamctl("task", "add", "from elsewhere")
	shows(`changed \d\d:\d\d: team-lead added 2 from elsewhere\.$`)
	r.teamctl("task", "add", "by a worker", "--run", "echo what it printed; exit 3")
	r.teamctl("spawn", "wes", "--worktree", "none")
	r.until("the failure", func() bool { return strings.Contains(r.teamctl("task", "show", "3", "--json"), `"status": "failed"`) })
	types("log task 3")
	shows(`task 3, attempt 1 by wes: failed, `)
	shows(`output: \$ echo what it printed; exit 3$`)
	shows(`output: what it printed$`)
	shows(`output: ── task 3 failed after `)
	types("delete 2")
	shows(`delete 2: this cannot be taken back\. Type 2 to do it\.$`)
	types("3")
	shows(`nothing was done: that is not its name\.$`)
	types("quit")
	if err := c.Wait(); err != nil {
		t.Errorf("teamctl: %v\n%s", err, said())
	}
	output.close()
	if n := strings.Count(said(), "added 2 from elsewhere"); n != 1 {
		t.Errorf("a change was reported %d times", n)
	}
	if strings.ContainsAny(said(), "\x1b\a\b") {
		t.Errorf("more than text was written: %q", said())
	}
}
