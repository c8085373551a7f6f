package main

import (
	"bufio"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// remote is a control client of the tmux server of terminals. A command to it starts no process, and
// tests look at a screen some fifty times. It has a session of its own, so that it affects neither the
// size nor the focus of the terminals.
type remote struct {
	client *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
}

// tmux runs a command of the terminal's tmux server.
func (s *seat) tmux(args ...string) string {
	s.Helper()
	control := slices.Contains([]string{"capture-pane", "send-keys", "display-message"}, args[0])
	for _, a := range args {
		control = control && !strings.ContainsAny(a, "'\n;") // those need more than quotes
	}
	if control {
		return s.controlled(args...)
	}
	return s.command(s.server(args...)...)
}

func (s *seat) server(args ...string) []string {
	return append([]string{"tmux", "-u", "-S", s.dir + "/seat", "-f", "/dev/null"}, args...)
}

// controlled runs a command by the control client.
func (s *seat) controlled(args ...string) string {
	s.Helper()
	if s.remote == nil {
		s.remote = s.connect()
	}
	c := s.remote
	limit := time.AfterFunc(2*patience, func() { _ = c.client.Process.Kill() })
	defer limit.Stop()
	_, err := io.WriteString(c.in, "'"+strings.Join(args, "' '")+"'\n")
	var text strings.Builder
	for begun := ""; err == nil; {
		var line string
		line, err = c.out.ReadString('\n')
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case begun == "" && word == "%begin" && strings.HasSuffix(rest, " 1"): // not of the client's own start
			begun = rest
		case begun == "":
		case word == "%end" && rest == begun:
			return text.String()
		case word == "%error" && rest == begun:
			s.Fatalf("tmux %q: %s", args, text.String())
		default:
			text.WriteString(line)
		}
	}
	s.Fatalf("tmux %q by the control client: %v", args, err)
	return ""
}

// connect starts the control client, which ends with the test.
func (s *seat) connect() *remote {
	s.Helper()
	argv := s.server("-C", "new-session", "-s", "control-"+s.name, "exec cat")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.dir, s.env
	in, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	return &remote{cmd, in, bufio.NewReader(out)}
}
