package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/strays"
)

// TestStoppedServerIsContinued: a server that a signal stops while its program runs is continued at
// once. It notes that in a pipe, for which the program that has stopped it waits.
func TestStoppedServerIsContinued(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp(strays.Short(), "tc-b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, pipe := range []string{"goes", "open"} {
		if err := unix.Mkfifo(at(pipe), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := []string{"bash", "-c", `trap 'echo goes >"$0/goes"' CONT; echo $$ >"$0/pid"; squatter '' "$0/s" <>"$0/open" >&2 & until wait; do :; done`, dir}
	program := []string{"timeout", "300", "bash", "-c", `kill -STOP "$(cat "$0/pid")" && read -r x <"$0/goes"`, dir}
	if code, err := beside(t.Context(), at("s"), server, nil, program, io.Discard); code != 0 || err != nil {
		t.Errorf("exit status %d: %v", code, err)
	}
}
