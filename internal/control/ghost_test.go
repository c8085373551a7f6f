package control

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/strays"
)

// ghostMain listens, hands its listener to a child that never accepts, says the
// child's pid and is killed.
func ghostMain(socket string) int {
	l, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f, err := l.(*net.UnixListener).File()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command("sleep", "1000")
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stdout, cmd.Process.Pid)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	return 1
}

// A child that a killed supervisor was just starting has its socket open until it
// has executed its program: what one can connect to is no supervisor for that.
func TestDeadListenerIsNotReached(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp(strays.Short(), "tc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "ghost", socket)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // it kills itself
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	if err := cmd.Wait(); err == nil {
		t.Fatal("the listener was not killed")
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatalf("the child has the socket open: %v", err)
	}
	_ = conn.Close()
	if who, err := reach(t.Context(), socket, ""); who != nobody || err != nil {
		t.Errorf("reached %v, %v, and who listens is dead", who, err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "l"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute} // of a version that knows no ping
	done := make(chan error)
	go func() { done <- srv.Serve(l) }()
	defer func() { _ = srv.Close(); <-done }()
	if who, err := reach(t.Context(), l.Addr().String(), ""); who != present || err != nil {
		t.Errorf("reached %v, %v, and who listens lives", who, err)
	}
}
