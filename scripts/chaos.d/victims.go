package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// verbs are the parts of this program that are started to be killed.
var verbs = map[string]func([]string) int{
	"agent": agent, "sender": sender, "claimer": claimer,
}

// opened is the team as a victim sees it.
func opened(ctx context.Context, exe string) (*tool.Team, error) {
	home, err := team.FindHome()
	if err != nil {
		return nil, err
	}
	return newEnv(home, exe).Open(ctx, teamName)
}

// sender TEAMCTL SIZE NAME... sends to one after the other, without end, and prints the id of each
// message that it was told is posted.
func sender(args []string) int {
	ctx := context.Background()
	t, err := opened(ctx, args[0])
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	size, err := strconv.Atoi(args[1])
	if err != nil {
		return 64
	}
	text := strings.Repeat("x", size)
	for i := 0; ; i++ {
		to := args[2+i%len(args[2:])]
		out, err := t.Send(ctx, tool.Person(), tool.SendIn{Recipient: to, Content: "from a sender " + text})
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		fmt.Println("posted", out.MessageID)
	}
}

// claimer TEAMCTL OWNER claims a task for a second, reports that and holds it.
func claimer(args []string) int {
	ctx := context.Background()
	t, err := opened(ctx, args[0])
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	task, err := t.Ledger.As("claimer").Claim(ctx, ledger.ClaimIn{Owner: args[1], Lease: time.Second})
	switch {
	case err != nil:
		fmt.Println("error", err)
		return 1
	case task == nil:
		fmt.Println("nothing")
	default:
		fmt.Println("claimed", task.ID)
	}
	select {}
}

// victim is such a part, running.
type victim struct {
	cmd   *exec.Cmd
	lines chan string
}

func (w *world) startVictim(args ...string) (*victim, error) {
	v := &victim{cmd: exec.Command(w.self, args...), lines: make(chan string, 64)}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := v.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(v.lines)
		r := bufio.NewReader(io.LimitReader(out, 1<<20))
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return // a line that was cut by the kill was not said
			}
			v.lines <- strings.TrimSpace(line)
		}
	}()
	return v, nil
}

// next is the next line; false when it ended or took too long.
func (v *victim) next(ctx context.Context) (string, bool) {
	t := time.NewTimer(5 * time.Minute)
	defer t.Stop()
	select {
	case l, ok := <-v.lines:
		return l, ok
	case <-t.C:
	case <-ctx.Done():
	}
	return "", false
}

// kill ends it without notice and returns the lines that it had said.
func (v *victim) kill() []string {
	_ = v.cmd.Process.Kill()
	var rest []string
	for l := range v.lines {
		rest = append(rest, l)
	}
	_ = v.cmd.Wait()
	return rest
}

// gone waits for the death of a process that was killed.
func gone(ctx context.Context, id backends.ProcID) bool {
	return until(ctx, 5*time.Minute, func() bool { return !proc.Alive(id) })
}
